"""Traces of PyTorch's profiler (Kineto): iterations of one rank with their kernels.

Iterations are the spans `ProfilerStep#N` that `profiler.step()` leaves; a kernel is of the one in
which it was launched (`correlation`), or in which it ran where nothing says when it was launched.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plancast import _core, files
from plancast.errors import InputError
from plancast.run_traces.names import collective_of, kernel_class
from plancast.run_traces.work import Iteration, Kernel

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})$")
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{.{0,400}?"rank"\s*:\s*(\d{1,9})', re.DOTALL)
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*\{.{0,400}?"world_size"\s*:\s*(\d{1,9})', re.DOTALL)
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
_LAUNCHES = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime")
_STEPS = ("user_annotation", "gpu_user_annotation", "cpu_op", "operator")
# Bytes of c10d's types, as it names them.
_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "QInt8"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Double", "Long"), 8),
}
_AT_ONCE = 1024
_MOST_KERNELS = 2_000_000
_HOW = (
    "Profile some iterations with `torch.profiler.profile(activities=[CPU, CUDA])`, call "
    "`profiler.step()` after each, and export them with `export_chrome_trace`."
)


@dataclass(frozen=True)
class RankTrace:
    """Iterations of one rank; None where the file does not say which of how many."""

    path: str
    rank: int | None
    world: int | None
    steps: tuple[Iteration, ...]


def is_kineto(path: str | Path) -> bool:
    """Whether a trace is PyTorch's; NCCL's have no steps and no kernels by name."""
    data = files.read_bytes(path)
    return b"ProfilerStep" in data or b"traceEvents" in data or b'"kernel"' in data


def read_kineto(path: str | Path) -> RankTrace:
    """Reads a trace of one rank, compressed or not.

    Raises:
      InputError: no trace, or none with iterations and kernels of a GPU.
    """
    data = files.read_bytes(path)
    rank, world = _RANK.search(data), _WORLD.search(data)
    reading = _Reading(str(path))
    reading.take(_core.ChromeTrace.read(data, f"`{path}`"))
    return RankTrace(
        str(path),
        int(rank[1]) if rank else None,
        int(world[1]) if world else None,
        reading.steps(),
    )


class _Reading:
    """Steps, launches and kernels of a file, as they are met."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._marks: dict[bool, dict[int, tuple[float, float]]] = {True: {}, False: {}}  # on GPU
        self._launched: dict[str, float] = {}
        self._kernels: list[tuple[Kernel, str]] = []  # with its correlation

    def take(self, core: _core.ChromeTrace) -> None:
        """Every span of the file."""
        for begin in range(0, len(core), _AT_ONCE):
            for name, category, _, start, duration, _, _, args in core.spans(
                begin, begin + _AT_ONCE
            ):
                if duration is not None:
                    self._span(name, category.lower(), start, start + duration, args)

    def _span(
        self, name: str, category: str, start: float, end: float, args: Mapping[str, str]
    ) -> None:
        if category in _ON_DEVICE:
            if len(self._kernels) == _MOST_KERNELS:
                raise InputError(
                    f"{self._path}: more than {_MOST_KERNELS:,} kernels. Profile fewer iterations."
                )
            kernel = _kernel(name, category, start, end, args)
            self._kernels.append((kernel, args.get("correlation", "")))
        elif category in _LAUNCHES:
            if "correlation" in args:
                self._launched[args["correlation"]] = start
        elif category in _STEPS and (step := _STEP.search(name)):
            self._marks[category.startswith("gpu")].setdefault(int(step[1]), (start, end))

    def steps(self) -> tuple[Iteration, ...]:
        """Iterations in order; the last one counts where it alone is there."""
        marks = self._marks[False] or self._marks[True]
        if not self._kernels:
            raise InputError(f"{self._path}: no kernel of a GPU is in it. {_HOW}")
        if not marks:
            raise InputError(f"{self._path}: no span `ProfilerStep#N` is in it. {_HOW}")
        owned = self._by_step(marks)
        if not owned:
            raise InputError(f"{self._path}: no kernel was launched in an iteration. {_HOW}")
        firsts = {number: kernels[0].start_s for number, kernels in owned.items()}
        out = []
        for number, kernels in owned.items():
            last = max(kernel.end_s for kernel in kernels)
            if number + 1 in firsts:
                seconds = firsts[number + 1] - firsts[number]
            elif len(owned) == 1:
                begin, end = marks[number]
                seconds = max(end - begin, last - firsts[number])
            else:
                continue  # nothing says when the next one begins
            if seconds > 0:
                out.append(Iteration(seconds, tuple(kernels)))
        if not out:
            raise InputError(f"{self._path}: its iterations take no time. {_HOW}")
        return tuple(out)

    def _by_step(self, marks: Mapping[int, tuple[float, float]]) -> dict[int, list[Kernel]]:
        numbers = sorted(marks, key=lambda number: marks[number])
        begins = [marks[number][0] for number in numbers]
        # Where steps are marked on the GPU alone, launches are of another clock's spans.
        by_launch = self._launched if self._marks[False] else {}
        owned: dict[int, list[Kernel]] = defaultdict(list)
        for kernel, correlation in self._kernels:
            moment = by_launch.get(correlation, kernel.start_s)
            place = bisect.bisect_right(begins, moment + 1e-9) - 1
            if place < 0 or moment > marks[numbers[place]][1] + 1e-9:
                continue
            owned[numbers[place]].append(kernel)
        for kernels in owned.values():
            kernels.sort(key=lambda kernel: kernel.start_s)
        return {number: owned[number] for number in numbers if number in owned}


def _kernel(name: str, category: str, start: float, end: float, args: Mapping[str, str]) -> Kernel:
    kind = "copy" if category != "kernel" else kernel_class(name)
    said = args.get("Collective name", "")
    if kind != "collective" and not said:
        return Kernel(kind, name, start, end)
    which = collective_of(said) or collective_of(name) or "collective"
    width = _BYTES.get(args.get("dtype", ""))
    counts = [_whole(args.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    size = max(counts) * width if width and max(counts) > 0 else None
    return Kernel(which, name, start, end, True, size, _whole(args.get("Group size")))


def _whole(text: Any) -> int:
    """A count as a trace has it; 0 for anything else."""
    return int(text) if text and re.fullmatch(r"\d{1,15}", str(text)) else 0


def typical(traces: list[RankTrace]) -> list[Iteration]:
    """Iterations of several ranks of one run.

    A collective ends for all at once and begins for each when it arrives: where all ranks ran
    the same ones, the last arrival counts, for before that it waits.
    """
    first, *others = traces
    if not others:
        return list(first.steps)
    return [
        _met(step, [t.steps[i] for t in others if i < len(t.steps)])
        for i, step in enumerate(first.steps)
    ]


def _met(step: Iteration, others: list[Iteration]) -> Iteration:
    peers = [list(_collectives(other)) for other in others]
    own = list(_collectives(step))
    alike = [p for p in peers if [_key(k) for k in p] == [_key(k) for k in own]]
    if not alike:
        return step
    shortest = iter(
        min([kernel.seconds, *(p[i].seconds for p in alike)]) for i, kernel in enumerate(own)
    )
    kernels = tuple(
        replace(k, start_s=k.end_s - next(shortest)) if k.is_collective else k for k in step.kernels
    )
    return Iteration(step.seconds, kernels)


def _collectives(step: Iteration) -> Iterator[Kernel]:
    return (kernel for kernel in step.kernels if kernel.is_collective)


def _key(kernel: Kernel) -> tuple[str, int | None, int]:
    return kernel.kind, kernel.size, kernel.ranks
