"""Argument files of training frameworks: read into plans, and written from plans.

One module a framework; what its keys are called, and which of them matter, is a table
of rows that both directions read (tables/*.yaml). docs/launch.md shows examples.
"""

from __future__ import annotations

from plancast.launchers.config import LaunchConfig
from plancast.launchers.frameworks import FRAMEWORKS, read, write

__all__ = ["FRAMEWORKS", "LaunchConfig", "read", "write"]
