"""Parts of an iteration as what was learned from runs has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.learned import Learned

# Factors of kernels, by what stands behind the GPU's name; other factors are of links.
_KERNELS = ("gemm", "attention", "attention.bwd", "memory", "convolution")
_PART_OF = {"bubble": "part/bubble", "launch": "part/launch", "other": "part/launch"}


def learned_of(forecast: Forecast) -> Learned | None:
    """What runs of the user's own told that a forecast goes by."""
    return getattr(getattr(forecast._question, "session", None), "learned", None)


def learned_parts(forecast: Forecast, parts: dict[str, float]) -> dict[str, float]:
    """The parts of the iteration, each by what its kernels, links or gaps were found to take.

    Their sum stays: what the software takes is in all of them.
    """
    learned = learned_of(forecast)
    if learned is None or not forecast.learned_log:
        return parts
    shares = forecast.learnable()
    kernels = _mean(learned, shares, of_kernels=True)
    links = _mean(learned, shares, of_kernels=False) + learned.change("part/exposed")
    times = {}
    for part, seconds in parts.items():
        if part in _PART_OF:
            change = learned.change(_PART_OF[part])
        else:
            change = links if part.startswith("exposed_") else kernels
        times[part] = seconds * math.exp(change)
    before, after = sum(parts.values()), sum(times.values())
    scale = before / after if after > 0 else 1.0
    return {part: seconds * scale for part, seconds in times.items()}


def _mean(
    learned: Learned, shares: Mapping[str, tuple[float, float]], *, of_kernels: bool
) -> float:
    """What was learned of kernels, or of links, by their shares of the time."""
    total = changed = 0.0
    for name, (share, _) in shares.items():
        place, _, kind = name.partition("/")
        if place in ("software", "part") or (kind.partition("/")[0] in _KERNELS) != of_kernels:
            continue
        total += share
        changed += share * learned.change(name)
    return changed / total if total > 0 else 0.0
