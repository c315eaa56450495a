"""A recorded run, replayed: tests and demonstrations without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plancast import files
from plancast.arguments import word
from plancast.errors import InputError
from plancast.profiling.backend import Timing, UnmeasurableError
from plancast.records.kernel import Kernel


class ReplayBackend:
    """Answers from a JSON file: `gpu`, `library`, `version`, `source`, `date` and `kernels`.

    Each kernel has `op`, `shape`, `dtype`, `layout`, `seconds`, `seconds_min`, `seconds_max`,
    `repetitions` and `how`.
    """

    def __init__(self, path: str | Path) -> None:
        run: dict[str, Any] = files.read_mapping(path)
        try:
            self.gpu = word(run["gpu"], "gpu")
            self.library = word(run["library"], "library")
            self.version = word(run["version"], "version")
            self.source = word(run["source"], "source")
            self.date = word(run["date"], "date")
            self._timings = {
                Kernel(row["op"], row["shape"], row["dtype"], row["layout"]): Timing(
                    float(row["seconds"]),
                    float(row["seconds_min"]),
                    float(row["seconds_max"]),
                    int(row["repetitions"]),
                    word(row["how"], "how"),
                )
                for row in run["kernels"]
            }
        except KeyError as error:
            raise InputError(f"`{path}` is no recorded run: it has no field {error}.") from None
        except InputError as error:
            raise InputError(f"`{path}` is no recorded run: {error}") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"`{path}` is no recorded run: {error}.") from None

    @property
    def kernels(self) -> list[Kernel]:
        """What was timed."""
        return list(self._timings)

    def measure(self, kernel: Kernel) -> Timing:
        """The recorded timing."""
        if kernel not in self._timings:
            raise UnmeasurableError("not in the recorded run")
        return self._timings[kernel]
