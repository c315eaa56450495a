"""The iteration of a forecast, as a profiler on one of its devices would see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plancast.errors import InputError
from plancast.explaining.work import Item, stages_of
from plancast.run_traces.work import Iteration, Kernel

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Classes of kernels by what the forecast calls them: a family, or the op of one that is bound by
# memory, by how its name begins or what occurs in it.
_FAMILIES = {
    "gemm": "product",
    "grouped_gemm": "product",
    "convolution": "convolution",
    "optimizer": "optimizer",
}
_OPS = (
    (
        "optimizer",
        (
            "adam",
            "sgd",
            "adagrad",
            "rmsprop",
            "lion",
            "lamb",
            "muon",
            "newton-schulz",
            "grad_norm",
            "grad_clip",
            "zero_grad",
        ),
    ),
    ("norm", ("_norm", "batch_norm", "normalisation")),
    ("loss", ("cross_entropy", "nll")),
    ("copy", ("copy", "cast", "repeat_kv", "transpose", "merge_heads", "concat", "slice")),
)


def forecast_iteration(forecast: Forecast, rank: int = 0) -> Iteration:
    """What the device class of a rank does, as simulated; the forecast needs its timeline."""
    if not forecast._core.has_timeline:
        raise InputError("this forecast has no timeline. Predict with `timeline=True`.")
    classes = forecast._core.stages_ps
    if not 0 <= rank < forecast.devices:
        raise InputError(f"rank {rank} of a plan on {forecast.devices} devices; give one of them.")
    index = max(
        (i for i, (_, _, lowest, _, _) in enumerate(classes) if lowest <= rank),
        key=lambda i: classes[i][2],
    )
    items = stages_of(forecast)[index].items
    kernels = {(item.label, item.detail): item for item in items if item.is_kernel}
    groups = {
        (item.label, item.kind, round(item.bytes / max(item.count, 1))): item
        for item in items
        if not item.is_kernel
    }
    lowest = classes[index][2]
    found: list[Kernel] = []
    for event in json.loads(forecast._core.chrome_trace())["traceEvents"]:
        if event["ph"] != "X" or event["pid"] != lowest:
            continue
        name, args = event["name"], event["args"]
        start = 1e-6 * event["ts"]
        end = start + 1e-6 * event["dur"]
        if "kernel" in args:
            item = kernels.get((name, args["kernel"]))
            found.append(_kernel(name, args["kernel"], start, end, item))
        else:
            size = int(args["bytes"])
            item = groups.get((name, args["collective"], size))
            ranks = item.members if item else 0
            factor, sigma = (item.factor, item.sigma) if item else ("", 0.0)
            found.append(
                Kernel(args["collective"], name, start, end, True, size, ranks, factor, sigma)
            )
    found.sort(key=lambda kernel: kernel.start_s)
    return Iteration(forecast.simulated_time, tuple(found))


def _kernel(name: str, detail: str, start: float, end: float, item: Item | None) -> Kernel:
    family = item.kind if item else detail.partition(" ")[0]
    shape = name
    if family in ("gemm", "convolution"):  # its type and sizes; the pass is in the name
        shape = " ".join([name, *detail.split(" ")[1:3]])
    kind = class_of(family, detail)
    factor, sigma = (item.factor, item.sigma) if item else ("", 0.0)
    return Kernel(kind, shape, start, end, factor=factor, sigma=sigma)


def class_of(family: str, detail: str) -> str:
    """The class of a forecast's kernel.

    >>> class_of("gemm", "gemm bf16 1x2x3 forward"), class_of("memory", "memory rms_norm read=1")
    ('product', 'norm')
    """
    if family == "attention":
        return "attention.bwd" if " backward" in detail else "attention"
    if family in _FAMILIES:
        return _FAMILIES[family]
    op = detail.split(" ")[1] if " " in detail else detail
    for kind, words in _OPS:
        if any(word in op for word in words):
            return kind
    return "elementwise"
