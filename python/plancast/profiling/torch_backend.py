"""Times kernels with PyTorch on the GPU at hand."""

from __future__ import annotations

import contextlib
import datetime
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from plancast.errors import InputError
from plancast.profiling.backend import Timing, UnmeasurableError
from plancast.profiling.calls import Calls
from plancast.profiling.grid import read_yaml
from plancast.records.kernel import Kernel

_WARM_UPS = 3
_LEAST_REPEATS, _MOST_REPEATS = 20, 200
_SECONDS = 0.2  # of repeats, where they are short
# Operands lie in so many copies that the caches have forgotten the first when it comes again.
_CACHES = 3
_MOST_COPIES = 64
# Of the memory that is free, what a kernel's copies may take.
_SHARE = 0.5


class TorchBackend:
    """PyTorch's kernels, one at a time, without the host's launch where CUDA graphs can hold them.

    Copies of the operands take turns, so that the L2 cache has forgotten them, as in a training
    step. A timing is the median of many replays, each of as many calls as there are copies. Clocks
    are as they are, and `source` notes them.
    """

    library = "torch"
    device = "cuda"  # where operands lie

    def __init__(self, gpu: str | None = None) -> None:
        try:
            import torch
        except ImportError:
            raise InputError(
                "measuring needs PyTorch, which is not installed. Install it on a machine with "
                "a GPU: pip install torch."
            ) from None
        if not torch.cuda.is_available():
            raise InputError(
                "measuring needs a GPU, and PyTorch sees none. Run this where "
                "`torch.cuda.is_available()` is True."
            )
        self._torch: Any = torch
        self.gpu = gpu or _catalogue_name(torch.cuda.get_device_name())
        self.version: str = torch.__version__
        self.date = datetime.date.today().isoformat()
        self._l2 = getattr(
            torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 0
        )

    @property
    def source(self) -> str:
        """`plancast profile, SM clock 1980 MHz`."""
        with contextlib.suppress(Exception):  # needs NVML
            return f"plancast profile, SM clock {self._torch.cuda.clock_rate()} MHz"
        return "plancast profile"

    def measure(self, kernel: Kernel) -> Timing:
        """Times a kernel. Raises UnmeasurableError."""
        torch = self._torch
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        calls = Calls(torch, self.device)
        bytes_each = calls.bytes_of(kernel)
        if bytes_each > _SHARE * free:
            raise UnmeasurableError("it needs more memory than is free")
        wanted = -(-_CACHES * max(self._l2, 1 << 25) // max(bytes_each, 1))
        copies = max(1, min(wanted, _MOST_COPIES, int(_SHARE * free / max(bytes_each, 1))))
        try:
            with self._precision(kernel.dtype):
                return self._timed([calls.of(kernel) for _ in range(copies)])
        except torch.cuda.OutOfMemoryError:
            raise UnmeasurableError("it needs more memory than is free") from None
        except (RuntimeError, TypeError, AttributeError) as error:  # older releases lack some
            raise UnmeasurableError(f"torch refuses: {str(error).splitlines()[0]}") from None

    @contextlib.contextmanager
    def _precision(self, dtype: str) -> Iterator[None]:
        backends = self._torch.backends
        before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
        tuned = backends.cudnn.benchmark
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = dtype == "tf32"
        backends.cudnn.benchmark = True  # as training loops of fixed sizes have it
        try:
            yield
        finally:
            backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before
            backends.cudnn.benchmark = tuned

    def _timed(self, calls: list[Callable[[], object]]) -> Timing:
        torch = self._torch

        def round_of_calls() -> None:
            for call in calls:
                call()

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                round_of_calls()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        replay, how = self._captured(round_of_calls)
        replay()
        first = self._elapsed(replay)
        repeats = repeats_of(first)
        times = sorted(self._elapsed(replay) / len(calls) for _ in range(repeats))
        return Timing(statistics.median(times), times[0], times[-1], repeats, how)

    def _captured(self, run: Callable[[], None]) -> tuple[Callable[[], None], str]:
        torch = self._torch
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            return graph.replay, "graph"
        except RuntimeError:  # something in it synchronises
            torch.cuda.synchronize()
            return run, "event"

    def _elapsed(self, run: Callable[[], None]) -> float:
        torch = self._torch
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3


def repeats_of(seconds: float) -> int:
    """How often a round of calls that takes so long is timed.

    >>> repeats_of(1e-5), repeats_of(5e-3), repeats_of(1.0)
    (200, 40, 20)
    """
    return min(_MOST_REPEATS, max(_LEAST_REPEATS, int(_SECONDS / max(seconds, 1e-6))))


def _catalogue_name(driver: str) -> str:
    """The catalogue's name of a GPU.

    >>> _catalogue_name("NVIDIA H200")
    'H200-SXM'
    """
    names: dict[str, str] = read_yaml("gpus.yaml")
    if driver not in names:
        raise InputError(
            f"the GPU `{driver}` has no name in the catalogue. "
            "Give its name with --gpu, such as --gpu H100-SXM-80GB."
        )
    return names[driver]
