"""What Plancast raises when an input is wrong."""

from __future__ import annotations

_LONGEST = 4000


class InputError(ValueError):
    """Something a user wrote cannot be used; the message says what would be right.

    The command line prints the message alone and exits with status 2. A message that quotes
    thousands of characters is cut in the middle: place and remedy stay.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-(_LONGEST // 4) :]}"
        super().__init__(text)
