"""What Plancast raises when an input is wrong."""

from __future__ import annotations


class InputError(ValueError):
    """Something a user wrote cannot be used; the message says what would be right.

    The command line prints the message alone and exits with status 2.
    """
