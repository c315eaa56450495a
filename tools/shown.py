"""Outputs that the documentation shows, as commands print them now.

A line of an output that the command no longer prints is replaced by the one that is most like it;
what is like none is listed, for somebody to look at. Rankings are left alone: they are cut by hand.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Pages, and how wide their outputs are.
PAGES = {"questions.md": 92, "training_runs.md": 80}
_COMMAND = re.compile(r"    (?:\$ )?plancast (.*)$")
_ALIKE = 0.72  # of difflib's ratio: other digits of the same line


def outputs(lines: list[str]) -> list[tuple[str, range]]:
    """Commands of a page, each with the lines that follow it in its block."""
    found = []
    at = 0
    while at < len(lines):
        match = _COMMAND.match(lines[at])
        at += 1
        if match is None:
            continue
        command = match.group(1)
        while command.endswith("\\"):
            command = command[:-1] + lines[at].strip()
            at += 1
        first = at
        while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
            if _COMMAND.match(lines[at]):
                break
            at += 1
        found.append((command, range(first, at)))
    return found


def printed(command: str, width: int) -> list[str]:
    """What the command prints, in a folder of its own beside the examples."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        run = subprocess.run(
            f"{ROOT}/.venv/bin/plancast {command}", shell=True, capture_output=True, text=True,
            cwd=folder, env={**os.environ, "COLUMNS": str(width)}, check=False,
        )  # fmt: skip
    return [line.rstrip() for line in (run.stdout + run.stderr).split("\n")]


def refresh(page: Path, width: int) -> list[str]:
    """Rewrites the page; what it could not place."""
    lines = page.read_text().split("\n")
    left = []
    for command, block in outputs(lines):
        shown = [n for n in block if lines[n].strip() not in ("", "...")]
        if not shown or command.startswith("rank "):
            continue
        now = printed(command, width)
        for n in shown:
            line = lines[n][4:].rstrip()
            if line in now:
                continue
            alike = difflib.get_close_matches(line, now, 1, _ALIKE)
            if alike:
                lines[n] = f"    {alike[0]}"
            else:
                left.append(f"{page.name}:{n + 1}: {line}")
    page.write_text("\n".join(lines))
    return left


if __name__ == "__main__":
    for name, width in PAGES.items():
        for line in refresh(ROOT / "docs" / name, width):
            print(line)
