"""`python -m plancast`, and the command `plancast`."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Runs the command line; Ctrl-C ends it in one line even while modules are loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from plancast.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"plancast: stopped\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
