"""Times of iterations and memory in the logs of training frameworks."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from plancast import files
from plancast.errors import InputError

# Colours of a terminal, which torchtitan writes around its figures.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Megatron-LM's training_log: `elapsed time per iteration (ms): 18130.4`.
_MEGATRON = re.compile(r"elapsed time per iteration \(ms\): *([0-9.]+)")
# torchtitan's metrics: `step: 10  loss:  7.1  memory: 22.30GiB(28.16%)  tps: 3,890  tflops: ...`,
# tokens a second of one device.
_STEP, _TOKENS = re.compile(r"\bstep: *\d+ "), re.compile(r"\btps: *([0-9][0-9,.]*)")
# What a device's allocator has held at most. Of torchtitan: `memory: 22.30GiB(28.16%)` in the line
# of a step; of Megatron-LM after its first steps: `... | max reserved: 31122.0`, MB of 2^20.
_STEP_MEMORY = re.compile(r"\bmemory: *([0-9.]+) *GiB")
_MEMORY, _MOST_RESERVED = re.compile(r"memory \(MB\)"), re.compile(r"\bmax reserved: *([0-9.]+)")
_RAN_OUT = re.compile(r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory")
# Steps that warm up: allocator, compilation, first collectives.
_WARM_UP = 3
_FEWEST = 3


@dataclass(frozen=True)
class RunLog:
    """Medians over the steps of a log after its first ones; one of the two is None.

    Both are None of a run that ran out of memory. `reserved`: bytes that allocators held at most.
    """

    framework: str
    steps: int
    seconds: float | None
    tokens_per_s_per_gpu: float | None
    reserved: float | None = None
    ran_out: bool = False

    def iteration_s(self, tokens_per_step: int, devices: int) -> float:
        """Seconds of a step with so many tokens on so many devices."""
        if self.seconds is not None:
            return self.seconds
        assert self.tokens_per_s_per_gpu is not None
        return tokens_per_step / (self.tokens_per_s_per_gpu * devices)


def read_log(path: str | Path) -> RunLog:
    """What a log of Megatron-LM or torchtitan says of its steps.

    Raises:
      InputError: it says nothing of any, or of too few: the first three are left out.
    """
    text = _COLOUR.sub("", files.read_text(path))
    if _RAN_OUT.search(text):
        return RunLog("", 0, None, None, ran_out=True)
    for framework, found, per_step, held, unit in (
        ("megatron", _MEGATRON.findall(text), True, (_MEMORY, _MOST_RESERVED), 1 << 20),
        ("torchtitan", _behind(text, _STEP, _TOKENS), False, (_STEP, _STEP_MEMORY), 1 << 30),
    ):
        figures = [float(m.replace(",", "")) for m in found if _is_number(m)]
        if not figures:
            continue
        if len(figures) < _WARM_UP + _FEWEST:
            raise InputError(
                f"{path}: {len(figures)} steps are logged; it takes {_WARM_UP + _FEWEST} or more, "
                f"for the first {_WARM_UP} warm up."
            )
        middle = statistics.median(figures[_WARM_UP:])
        if middle <= 0:
            raise InputError(f"{path}: half of its steps take no time.")
        count = len(figures) - _WARM_UP
        sizes = [float(m) for m in _behind(text, *held) if _is_number(m)]
        reserved = unit * max(sizes) if max(sizes, default=0) > 0 else None
        if per_step:
            return RunLog(framework, count, middle / 1e3, None, reserved)
        return RunLog(framework, count, None, middle, reserved)
    raise InputError(
        f"{path}: no step is logged in it as Megatron-LM (`elapsed time per iteration (ms): ...`) "
        "or torchtitan (`step: ... tps: ...`) do. Give the time in a CSV (docs/learning.md)."
    )


def _behind(text: str, mark: re.Pattern[str], figure: re.Pattern[str]) -> list[str]:
    """The first figure behind a mark, of each line that has both."""
    found = []
    for line in text.splitlines():
        at = mark.search(line)
        told = None if at is None else figure.search(line, at.end())
        if told is not None:
            found.append(told[1])
    return found


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text.replace(",", "")) < 1e12
    except ValueError:
        return False
