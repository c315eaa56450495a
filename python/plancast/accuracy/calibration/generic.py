"""What serves all GPUs: the roofline, and how far GPUs differ."""

from __future__ import annotations

import numpy as np

from .textproto import Message

# Where a GPU has rows of one source only, the disagreement between sources
# seen on other GPUs stands in.
DEFAULT_FACTOR_SIGMA = 0.07
# Where tables of a family are absent: what GPUs sustain of either peak (median of the
# measured ones).
USUAL_SHARE = 0.8


def _spread(values: list[float]) -> float:
    """Relative error made by taking the median of the others: its root mean square, since the
    next GPU may be an odd one too."""
    if len(values) < 2:
        return 0.2
    errors = [np.log(np.median(values[:i] + values[i + 1 :]) / v) for i, v in enumerate(values)]
    return float(np.sqrt(np.mean(np.square(errors))))


def _power(tables: dict[str, Message]) -> tuple[float, list[float]]:
    """What long products lose of their share of peak, as a logarithm, for each nominal TFLOP/s
    per watt: the median of the slopes between GPUs of one maker, the one with most (Theil and Sen).
    And the shares at none."""
    makers = [t.get("vendor") for t in tables.values() if "gemm" in t]
    maker = max(sorted(set(filter(None, makers))), key=makers.count, default=None)
    points = [
        (t["speed_grade"] * t["sms"] * t["boost_mhz"] * 1e-6 / t["tdp_watts"],
         np.log(g["mma_fraction"] / (1 + g["sustained_loss"])))
        for t in tables.values()
        for g in t.get("gemm", ())
        if g["dtype"] == "bf16" and t.get("tdp_watts") and not g.get("own_only")
        and t.get("vendor") == maker
    ]  # fmt: skip
    slopes = [
        (y - other_y) / (x - other_x)
        for i, (x, y) in enumerate(points)
        for other_x, other_y in points[:i]
        if abs(x - other_x) > 0.2  # nearer ones tell about other differences
    ]
    slope = max(-float(np.median(slopes)), 0.0) if slopes else 0.0
    return slope, [float(np.exp(y + slope * x)) for x, y in points]


def generic(tables: dict[str, Message], command: str, date: str, floor_s: float) -> Message:
    """The message of generic.textproto."""
    bf16 = [
        g["mma_fraction"]
        for t in tables.values()
        for g in t.get("gemm", ())
        if g["dtype"] == "bf16" and not g.get("own_only")
    ]
    slope, shares = _power(tables)
    flash = [
        a["mma_fraction"] / (1 + a["softmax_dim"] / 128)
        for t in tables.values()
        for a in t.get("attention", ())
        if a["dtype"] == "bf16"
    ]
    fraction = [t["memory"]["memory_fraction"] for t in tables.values() if "memory" in t]
    windows = [
        c["window3"]["forward"]
        for t in tables.values()
        for c in t.get("convolution", ())
        if c["dtype"] == "fp32"
    ]
    return {
        "roofline": {
            "compute_fraction": float(np.median(bf16 or [USUAL_SHARE])) * 0.9,
            "memory_fraction": float(np.median(fraction or [USUAL_SHARE])),
            "floor_s": floor_s,
            "fit": {
                "data": "medians over all GPUs; 0.9 for tile and wave quantisation",
                "command": command,
                "date": date,
                "factor_sigma": 0.15,
                "sigma": 0.1,
            },
        },
        "power_slope": slope,
        "extrapolated_gemm_sigma": _spread(shares),
        "extrapolated_attention_sigma": _spread(flash),
        "extrapolated_memory_sigma": _spread(fraction),
        "extrapolated_convolution_sigma": max(_spread(windows), DEFAULT_FACTOR_SIGMA),
    }
