"""Where the time goes, module by module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from plancast.report.page import colours
from plancast.report.page.colours import plain
from plancast.report.page.figures import LABELS, Figure
from plancast.report.page.slices import COMPUTE, WAITING, Lane
from plancast.textual import duration, percent

# How ends of task names say what a task does for its module.
_ENDS = {
    ".again": "recomputed",
    ".wgrad": "gradients of weights",
    ".accumulate": "accumulation of gradients",
    ".bwd": "backward",
}
_PASSES = {"forward": "forward", "backward": "backward", "recompute": "recomputed"}
_FILLS = (
    "#3b82c4", "#f2a541", "#6fb38a", "#d65f8f", "#a07cc5", "#d9c04f", "#57a5b5", "#e07a5f",
)  # fmt: skip

Seconds = dict[tuple[str, ...], float]


def module_seconds(lane: Lane, parts: Mapping[str, float]) -> Seconds:
    """Seconds of one device by path: module, op, pass; what it waits for is a path, too.

    They sum to the sum of `parts`, which `stage_parts` gives.
    """
    lengths = np.bincount(lane.code, weights=lane.end - lane.start, minlength=len(lane.kinds))
    found: Seconds = defaultdict(float)
    for (stream, purpose, name), seconds in zip(lane.kinds, lengths.tolist(), strict=True):
        if stream == COMPUTE:
            found[_path(purpose, name)] += seconds
    # Kernels of a device do not overlap; if ever they do, shares stay shares.
    kernels = sum(found.values())
    covered = sum(parts.get(part, 0.0) for part in ("compute", "recompute", "optimizer"))
    shrink = min(1.0, covered / kernels) if kernels > 0 else 1.0
    found = {path: seconds * shrink for path, seconds in found.items()}
    for part, seconds in parts.items():
        if part.startswith("exposed_") or part in (WAITING, "other"):
            found[("not covered", LABELS.get(part, part))] = seconds
    return {path: seconds for path, seconds in found.items() if seconds > 0}


def mean_seconds(lanes: Sequence[Lane], each: Sequence[Seconds]) -> Seconds:
    """The mean over all GPUs."""
    ranks = sum(lane.ranks for lane in lanes)
    found: Seconds = defaultdict(float)
    for lane, seconds in zip(lanes, each, strict=True):
        for path, value in seconds.items():
            found[path] += value * lane.ranks / ranks
    return dict(found)


def _path(purpose: str, name: str) -> tuple[str, ...]:
    if purpose == "optimizer":
        return "optimizer step", name
    word = _PASSES.get(purpose, purpose)
    for end, said in _ENDS.items():
        if name.endswith(end):
            name, word = name.removesuffix(end), said
            break
    return *name.split("."), word


def icicle(seconds: Mapping[tuple[str, ...], float], title: str) -> Figure:
    """Every path as a box whose length is its time."""
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for path, value in seconds.items():
        for depth in range(len(path) + 1):
            sums[path[:depth]] += value
    total = sums[()] or 1.0
    firsts = sorted((path for path in sums if len(path) == 1), key=lambda path: -sums[path])
    fills = {path[0]: _FILLS[at % len(_FILLS)] for at, path in enumerate(firsts)}
    fills["not covered"] = colours.PARTS["waiting"]
    order = sorted(sums, key=lambda path: (len(path), -sums[path]))
    ids = {path: str(at) for at, path in enumerate(order)}
    said = {path: f"{duration(sums[path])}, {percent(sums[path] / total)}" for path in order}
    trace = {
        "type": "icicle",
        "ids": [ids[path] for path in order],
        "labels": [plain(path[-1] if path else title) for path in order],
        "parents": [ids[path[:-1]] if path else "" for path in order],
        "values": [float(f"{sums[path]:.9g}") for path in order],
        "branchvalues": "total",
        "text": [said[path] for path in order],
        "textinfo": "label+text",
        "customdata": [plain(".".join(path) or title) for path in order],
        "hovertemplate": "%{customdata}: %{text}<extra></extra>",
        "tiling": {"orientation": "v", "pad": 1},
        "marker": {"colors": [fills[path[0]] if path else "#8b93a0" for path in order]},
        "pathbar": {"visible": True},
        "maxdepth": 5,
    }
    layout = {"height": 420, "margin": {"l": 4, "r": 4, "t": 26, "b": 4}}
    return {"data": [trace], "layout": layout}
