"""Where the example files lie."""

from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "launchers"
