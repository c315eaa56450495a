"""A file of measured kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.progress import Progress, following
from plancast.records.ingest import Ingested, files_of, ingest_file
from plancast.records.kernel import Kernel


class Sample(NamedTuple):
    """One measurement of one kernel; times in seconds.

    `seconds` is the median of `repetitions`, which took from `seconds_min` to
    `seconds_max` (0: not known). `timing` says how: `graph`, `event`, `event_eager`, ...
    """

    seconds: float
    seconds_min: float = 0.0
    seconds_max: float = 0.0
    repetitions: int = 1
    source: str = ""
    timing: str = ""
    date: str = ""


@dataclass(frozen=True)
class Record:
    """A kernel with its whole history, oldest first."""

    kernel: Kernel
    gpu: str
    library: str
    version: str
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """The best sample."""
        return min(sample.seconds for sample in self.samples)


@dataclass(frozen=True)
class KernelTime:
    """What one kernel takes, and how that is known.

    `knowledge` is `measured`, `interpolated`, `calibrated`, `analytic` or `extrapolated`; `sigma`
    the relative error (one standard deviation) of this figure alone, `shared_sigma` that which it
    shares with its neighbours.
    """

    seconds: float
    knowledge: str
    source: str
    sigma: float
    shared_sigma: float


@checked
class Records:
    """A file of measured kernels. Safe beside other threads and processes that read or write it.

    A kernel is known by op, shape, dtype and layout (`Kernel`), GPU, library and version.
    Samples of equal keys are all kept; the best is the answer. Times are seconds.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> records = Records(folder.name + "/kernels.db")
    >>> kernel = Kernel.gemm(4096, 4096, 4096)
    >>> for seconds in (2.1e-4, 2.0e-4):
    ...     records.add(kernel, gpu="H100-SXM-80GB", seconds=seconds, library="cublas")
    >>> records.query(kernel, gpu="H100-SXM-80GB", library="cublas")
    0.0002
    >>> len(records), len(records.history(kernel, gpu="H100-SXM-80GB", library="cublas"))
    (1, 2)
    >>> print(records.query(kernel, gpu="H100-SXM-80GB", library="cublas", version="12.4"))
    None
    """

    __slots__ = ("_core", "_library", "_session", "_version")

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        """Opens a store, or makes one where there is none unless `create` is False."""
        self._core = _core.RecordStore.open(str(path), create)
        self._library = self._version = ""
        self._session: tuple[int, _core.Session] | None = None  # of the process of that number

    def only(self, *, library: str = "", version: str = "") -> Records:
        """The same store, for predictions by one library and version alone."""
        view = object.__new__(Records)
        view._core = self._core
        view._library = arguments.word(library, "library")
        view._version = arguments.word(version, "version")
        view._session = None
        return view

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._core.path)

    def add(
        self,
        kernel: Kernel,
        *,
        gpu: str,
        seconds: float,
        library: str = "",
        version: str = "",
        seconds_min: float = 0.0,
        seconds_max: float = 0.0,
        repetitions: int = 1,
        source: str = "",
        timing: str = "",
        date: str = "",
    ) -> None:
        """Keeps one sample more: the median `seconds` of `repetitions`."""
        arguments.instance(kernel, Kernel, "kernel", "Kernel.gemm(4096, 4096, 4096)")
        if not arguments.is_whole(repetitions):
            raise InputError(f"`repetitions` is `{repetitions!r}`; give a whole number.")
        texts = {"gpu": gpu, "library": library, "version": version, "source": source}
        for name, text in (texts | {"timing": timing, "date": date}).items():
            arguments.word(text, name)
        sample = Sample(
            arguments.number(seconds, "seconds"),
            arguments.number(seconds_min, "seconds_min"),
            arguments.number(seconds_max, "seconds_max"),
            repetitions,
            source,
            timing,
            date,
        )
        self._core.add(kernel.key, (gpu, library, version), sample)

    def ingest(
        self,
        path: str | Path,
        *,
        date: str = "",
        progress: Progress = None,
    ) -> Ingested:
        """Reads a CSV file, or the files of a folder, of measured kernels (docs/records.md).

        Each row enters once, however often and however interrupted. `date` is that of rows
        without one; `progress` is called with rows done and rows in all of each file; by
        default a bar shows them.
        """
        total = Ingested()
        for file in files_of(Path(path)):
            with following(progress, file.name) as tell:
                total += ingest_file(self._core, file, date=date, progress=tell)
        return total

    def query(
        self, kernel: Kernel, *, gpu: str, library: str = "", version: str = ""
    ) -> float | None:
        """The stored seconds of exactly that kernel, bit for bit; None on a miss."""
        return self._core.query(kernel.key, (gpu, library, version))

    def history(
        self, kernel: Kernel, *, gpu: str, library: str = "", version: str = ""
    ) -> list[Sample]:
        """Every sample of exactly that kernel, oldest first."""
        return [Sample(*s) for s in self._core.history(kernel.key, (gpu, library, version))]

    def select(self, *, gpu: str = "", library: str = "", version: str = "") -> Iterator[Record]:
        """Records of a GPU, library and version; empty: of any."""
        for kernel, where, samples in self._core.select(gpu, library, version):
            yield Record(Kernel(*kernel), *where, tuple(Sample(*s) for s in samples))

    def estimate(self, kernel: Kernel, machine: Machine) -> KernelTime:
        """What a kernel takes on a GPU of `machine`: a record, else between records, else the
        shipped model.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> records = Records(folder.name + "/kernels.db")
        >>> machine = Machine.preset("dgx-h100")
        >>> records.estimate(Kernel.gemm(4096, 4096, 4096), machine).knowledge
        'calibrated'
        """
        return KernelTime(**self._estimate(kernel, machine, roofline=False))

    def _estimate(self, kernel: Kernel, machine: Machine, *, roofline: bool) -> dict[str, Any]:
        process, session = os.getpid(), self._session
        if session is None or session[0] != process:
            self._session = session = process, self._make_session()
        return _core.price_kernel(kernel.key, machine._core, session[1], roofline=roofline)

    def _make_session(
        self, *, prior: bool = True, learned: _core.LearnedFields | None = None
    ) -> _core.Session:
        return _core.Session(self._core, self._library, self._version, prior=prior, learned=learned)

    def summary(self) -> list[dict[str, str | int]]:
        """Kernels and samples by GPU, op and source."""
        names = ("gpu", "op", "source", "kernels", "samples")
        return [dict(zip(names, row, strict=True)) for row in self._core.summarise()]

    def __reduce__(self) -> tuple[Any, ...]:
        # The same file, opened again.
        return _reopened, (self._core.path, self._library, self._version)

    def __len__(self) -> int:
        """Distinct kernels."""
        return self._core.size()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Records({str(self.path)!r})"


def _reopened(path: str, library: str, version: str) -> Records:
    return Records(path, create=False).only(library=library, version=version)
