"""What every trace file that is read says of its reading, whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plancast import _core, files
from plancast.checked import checked


@checked
class TraceFile:
    """A trace that was read from a file."""

    _core: _core.ChromeTrace | _core.NcclTrace

    @property
    def problem_count(self) -> int:
        """How much of the file was not understood."""
        return self._core.problem_count

    @property
    def problems(self) -> list[tuple[int, str]]:
        """Line and reason of the first thousand."""
        return self._core.problems()

    @property
    def mended(self) -> dict[str, tuple[int, int]]:
        """What is no JSON but was understood: how often, and the first line."""
        return self._core.mended()

    def to_perfetto(self, path: str | Path) -> None:
        """Writes a Chrome trace that ui.perfetto.dev opens; `.gz` compresses it.

        Slices are nested or apart on every track.
        """
        files.write_text(path, self._core.perfetto())

    def _reading(self) -> dict[str, Any]:
        """The fields of `--json` that say how the file was read."""
        return {
            "problem_count": self.problem_count,
            "problems": [{"line": line, "reason": reason} for line, reason in self.problems],
            "mended": {
                kind: {"count": count, "first_line": line}
                for kind, (count, line) in self.mended.items()
            },
        }
