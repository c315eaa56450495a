"""The kernels of a plan against what their GPU could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.arguments import dtype as dtype_name
from plancast.question import PlanQuestion, core_of
from plancast.report.page import colours
from plancast.report.page.colours import plain
from plancast.report.page.figures import Figure
from plancast.textual import duration, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Bytes of an element; types of 8 bits that are scaled by block or row are counted without scales.
_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "nvfp4": 0.5}
_FAMILIES = {
    "gemm": "matrix products",
    "attention": "attention",
    "convolution": "convolutions",
    "memory": "memory-bound",
    "optimizer": "optimizer",
}
_FILLS = {
    "gemm": "#3b82c4", "attention": "#d65f8f", "convolution": "#a07cc5", "memory": "#f2a541",
    "optimizer": "#6fb38a",
}  # fmt: skip


@dataclass(frozen=True)
class KernelPoint:
    """One kernel: what it does at least, and how long it takes. FLOPs are 0 where only moved bytes
    are known."""

    family: str
    text: str
    dtype: str
    flops: float
    bytes: float
    seconds: float
    knowledge: str


def kernel_points(forecast: Forecast) -> list[KernelPoint]:
    """The distinct kernels of a plan; none for machines of unlike GPUs and plans of other kinds."""
    question = forecast._question
    if not isinstance(question, PlanQuestion) or len(question.machine.sections) != 1:
        return []
    session, machine = question.session._core, question.machine._core
    keys = _core.plan_kernels(
        question.model._core,
        machine,
        core_of(question.strategy),
        session,
        batch=question.batch,
        dtype=question.dtype,
        profile=question.profile,
    )
    points = []
    for key in keys:
        family = key[0].partition("/")[0]
        flops, moved = work(key)
        if moved <= 0:
            continue
        price = _core.price_kernel(key, machine, session, roofline=False)
        words = " ".join(word for word in key if word)
        points.append(
            KernelPoint(
                family, words, key[2], flops, moved, price["seconds"], str(price["knowledge"])
            )
        )
    return points


def work(key: tuple[str, str, str, str]) -> tuple[float, float]:
    """FLOPs, and the bytes that a kernel reads and writes at least.

    >>> work(("gemm", "batch=1 m=2 n=3 k=4", "bf16", "forward"))
    (48.0, 52.0)
    """
    op, shape, dtype, layout = key
    size = {name: float(v) for name, _, v in (word.partition("=") for word in shape.split())}
    family = op.partition("/")[0]
    each = _BYTES.get(dtype, 1.0)
    if family in ("gemm", "convolution"):
        m, n, k, batch = size["m"], size["n"], size["k"], size["batch"]
        moved = size.get("read", 0.0) + size.get("write", 0.0)
        if not moved:
            # What an fp32 result is added to is read as well; results of 8 bits are 16-bit numbers.
            result = 8.0 if "+fp32" in layout else max(each, 2.0)
            moved = batch * ((m * k + k * n) * each + m * n * result)
        return 2 * batch * m * n * k, moved
    if family == "attention":
        heads, groups, batch = size["heads"], size["kv_heads"], size["batch"]
        pairs = batch * heads * size["q"] * size["kv"] * (0.5 if "causal" in layout else 1.0)
        dims = size["dim"] + size["dim_v"]
        rows = heads * size["q"] * dims + groups * size["kv"] * dims
        backward = "backward" in layout
        # Backward: five products in place of two; reads all and their gradients, writes gradients.
        return pairs * 2 * dims * (2.5 if backward else 1.0), batch * rows * each * (
            2.0 if backward else 1.0
        )
    return 0.0, size.get("read", 0.0) + size.get("write", 0.0)


def peaks(forecast: Forecast) -> tuple[dict[str, float], float]:
    """Dense peaks by type, FLOP/s, and the memory's bytes a second, of the data sheet."""
    question = forecast._question
    assert isinstance(question, PlanQuestion)
    gpu = question.machine.to_dict()["gpu"]
    found = {
        name.removesuffix("_tflops"): value * 1e12
        for name, value in gpu.items()
        if name.endswith("_tflops") and value
    }
    return found, gpu["memory_gb_per_s"] * 1e9


def _peak_of(dtype: str, found: dict[str, float]) -> float:
    for name in (dtype, dtype.partition("-")[0], dtype[-3:]):
        if name in found:
            return found[name]
    return max(found.values(), default=0.0)


def roofline(forecast: Forecast, points: list[KernelPoint]) -> Figure | None:
    """FLOP/s over FLOPs a byte, with the roofs; None where there is no product."""
    products = [point for point in points if point.flops > 0]
    if not products:
        return None
    found, memory = peaks(forecast)
    most = max(point.seconds for point in products)
    data: list[dict[str, Any]] = []
    intensities = [point.flops / point.bytes for point in products]
    low, high = min(intensities) / 3, max(intensities) * 3
    for name in sorted({dtype_name(point.dtype) for point in products}):
        peak = _peak_of(name, found)
        ridge = peak / memory
        x = sorted({min(low, ridge), ridge, max(high, ridge * 2)})
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": f"roof, {name}", "x": x,
                "y": [min(peak, memory * value) / 1e12 for value in x],
                "line": {"dash": "dash", "width": 1.5, "color": colours.GROUND},
                "hoverinfo": "skip",
            }
        )  # fmt: skip
    for family in dict.fromkeys(point.family for point in products):
        mine = [point for point in products if point.family == family]
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": _FAMILIES.get(family, family),
                "x": [point.flops / point.bytes for point in mine],
                "y": [point.flops / point.seconds / 1e12 for point in mine],
                "text": [_said(point, found, memory) for point in mine],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "color": _FILLS.get(family, colours.GROUND), "opacity": 0.8,
                    "size": [6 + 16 * (point.seconds / most) ** 0.5 for point in mine],
                },
            }
        )  # fmt: skip
    return {"data": data, "layout": _layout("FLOPs per byte", "TFLOP/s")}


def bandwidths(forecast: Forecast, points: list[KernelPoint]) -> Figure | None:
    """Bytes a second over bytes of the kernels that only move memory."""
    movers = [point for point in points if point.flops == 0]
    if not movers:
        return None
    _, memory = peaks(forecast)
    data: list[dict[str, Any]] = []
    for family in dict.fromkeys(point.family for point in movers):
        mine = [point for point in movers if point.family == family]
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": _FAMILIES.get(family, family),
                "x": [point.bytes / 1e6 for point in mine],
                "y": [point.bytes / point.seconds / 1e9 for point in mine],
                "text": [_moved(point, memory) for point in mine],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": _FILLS.get(family, colours.GROUND), "opacity": 0.8, "size": 9},
            }
        )  # fmt: skip
    ends = [min(p.bytes for p in movers) / 2e6, max(p.bytes for p in movers) * 2 / 1e6]
    data.append(
        {
            "type": "scatter", "mode": "lines", "name": "the memory's peak", "x": ends,
            "y": [memory / 1e9] * 2, "hoverinfo": "skip",
            "line": {"dash": "dash", "width": 1.5, "color": colours.GROUND},
        }
    )  # fmt: skip
    return {"data": data, "layout": _layout("MB read and written", "GB/s")}


def _layout(x: str, y: str) -> dict[str, Any]:
    axis = {"type": "log", "automargin": True, "dtick": "D2", "exponentformat": "none"}
    return {
        "height": 400,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {**axis, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}},
    }


def _said(point: KernelPoint, found: dict[str, float], memory: float) -> str:
    roof = min(_peak_of(point.dtype, found), memory * point.flops / point.bytes)
    share = point.flops / point.seconds / roof if roof else 0.0
    return (
        f"{plain(point.text)}<br>{duration(point.seconds)} ({point.knowledge}), "
        f"{point.flops / point.seconds / 1e12:.3g} TFLOP/s, {percent(share, 0)} of the roof"
    )


def _moved(point: KernelPoint, memory: float) -> str:
    rate = point.bytes / point.seconds
    return (
        f"{plain(point.text)}<br>{duration(point.seconds)} ({point.knowledge}), "
        f"{rate / 1e9:,.0f} GB/s, {percent(rate / memory, 0)} of the peak"
    )
