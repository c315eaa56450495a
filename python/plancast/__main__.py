"""`python -m plancast`."""

import sys

from plancast.cli.main import main

sys.exit(main())
