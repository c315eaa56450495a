"""How long a collective takes, and the least squares that find its coefficients.

The formulas are those of collectives/price.cc (docs/collectives.md). Times are microseconds,
rates bytes per microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from plancast._core import portable_exp, portable_log

from .linear import dot, solve

# Bandwidth of one device or interface (GB/s = 1e3 bytes/us) and latency of one hop, as in
# cluster/data/links.textproto and machines.textproto.
LINKS = {
    "nvlink3": (300e3, 0.6),
    "nvlink4": (450e3, 0.6),
    "nvlink5": (900e3, 0.6),
    "pcie3": (16e3, 1.0),
    "pcie4": (32e3, 1.0),
    "xgmi": (448e3, 0.45),  # seven links of 64 GB/s
}
# A shipped machine with that link, whose choices NCCL's tuner makes.
MACHINES = {"nvlink3": "dgx-a100-80g:1", "nvlink4": "dgx-h100:1", "nvlink5": "gb200-nvl72:18"}
GPUS_PER_SWITCH = {"pcie4": 2}  # of boxes with a host bridge


@dataclass
class Row:
    link: str
    kind: str
    members: int
    bytes: float
    time: float
    nvls: bool = False  # the record may have used reductions in the switches
    choice: tuple[str, str] | None = None  # algorithm and protocol; None: the cheapest


@dataclass
class Cost:
    """One entry of proto/collective_cost.proto, in the making."""

    link: str
    algorithm: str
    protocol: str
    kinds: tuple[str, ...]
    base: float
    hop: float
    fill: float
    efficiency: float
    local: float = 0.0
    bridge: float = 0.0  # efficiency of a host bridge, 0 without one
    crowding: float = 0.0  # how its switches disturb each other
    # Of a network that is slower the more hosts a group spans: the hosts that `efficiency` is of,
    # those of most and what it is there.
    falls: tuple[int, int, float] | None = None
    sigma: float = 0.0
    records: int = 0
    source: str = ""
    forecast: bool = False  # latency and rate are NCCL's own forecast
    fixed: tuple[str, ...] = field(default=())  # parameters that are not fitted


# ---------------------------------------------------------------- the formulas


def flow(kind: str, n: float) -> tuple[float, float]:
    """Bytes each member sends per byte of the buffer, and hops."""
    if kind == "all_reduce":
        return 2 * (n - 1) / n, 2 * (n - 1)
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return (n - 1) / n, n - 1
    raise ValueError(kind)


def node_time(cost: Cost, row: Row) -> float:
    """Over one node: collectives/price.cc with `nodes == 1`."""
    bandwidth, latency = LINKS[row.link]
    port, hops = flow(row.kind, row.members)
    bridge = 0.0
    if cost.algorithm == "nvls":
        port, hops = (row.members + 1) / row.members, 2
    elif cost.algorithm == "direct" and row.kind != "all_to_all":
        hops = 2 if row.kind == "all_reduce" else 1
    elif row.members > GPUS_PER_SWITCH.get(row.link, row.members):
        switches = math.ceil(row.members / GPUS_PER_SWITCH[row.link])
        bridge = port * switches
        if row.kind == "all_to_all":
            bridge = row.members - row.members / switches
        bridge *= portable_exp(cost.crowding * portable_log(switches / 2))
    slowest = (port + cost.local / row.members) / cost.efficiency / bandwidth
    if bridge:
        slowest = max(slowest, bridge / cost.bridge / bandwidth)
    latencies = hops * (latency + cost.hop)
    transfer = row.bytes * slowest
    return cost.base + latencies + cost.fill * math.sqrt(latencies * transfer) + transfer


# ------------------------------------------------------------------ the fitting

BOUNDS = {
    "base": (0.5, 40.0),
    "hop": (0.01, 40.0),
    "fill": (0.02, 4.0),
    "efficiency": (0.05, 1.0),
    "local": (1e-3, 1.5),
    "bridge": (0.02, 1.0),
    "crowding": (1e-3, 2.0),
}


def fit(
    costs: list[Cost],
    rows: list[Row],
    time_of: Callable[[Cost, Row], float],
    candidates: Callable[[Row], Iterable[int]],
    shared: Iterable[tuple[str, tuple[int, ...]]] = (),
    steps: int = 60,
) -> None:
    """Least squares of robust log errors by Levenberg-Marquardt, in place.

    The same bits on every processor: exp and log are our own, and sums are rounded once.

    `candidates` gives the costs among which the library chose for a row; `shared` names
    parameters that several costs have in common.
    """
    slots: list[tuple[str, tuple[int, ...]]] = []
    for name, owners in shared:
        slots.append((name, tuple(owners)))
    taken = {(name, i) for name, owners in slots for i in owners}
    for i, cost in enumerate(costs):
        for name in BOUNDS:
            if name in cost.fixed or (name, i) in taken or getattr(cost, name) == 0:
                continue
            slots.append((name, (i,)))

    def put(x: np.ndarray) -> None:
        for value, (name, owners) in zip(x, slots, strict=True):
            low, high = BOUNDS[name]
            for i in owners:
                setattr(costs[i], name, low + (high - low) / (1 + portable_exp(-value)))

    def get() -> np.ndarray:
        x = []
        for name, owners in slots:
            low, high = BOUNDS[name]
            share = (getattr(costs[owners[0]], name) - low) / (high - low)
            share = min(max(share, 1e-4), 1 - 1e-4)
            x.append(portable_log(share / (1 - share)))
        return np.array(x)

    def residuals(x: np.ndarray) -> np.ndarray:
        put(x)
        out = []
        for row in rows:
            # A soft minimum lets every candidate feel the rows near its borders.
            times = [time_of(costs[i], row) for i in candidates(row)]
            shortest = min(times)
            soft = sum(_twelfth_power(shortest / t) for t in times)
            out.append(portable_log(shortest / row.time) - portable_log(soft) / 12)
        return np.array(out)

    x, damping = get(), 1e-2
    start = x.copy()

    def loss(x: np.ndarray, r: np.ndarray) -> float:
        # Huber, and a weak pull to the start for what the rows do not tell.
        a = np.abs(r)
        robust = np.where(a < 0.1, r * r, 0.2 * a - 0.01)
        return math.fsum(robust) + 1e-3 * dot(x - start, x - start)

    r = residuals(x)
    best = loss(x, r)
    for _ in range(steps):
        jacobian = np.empty((len(r), len(x)))
        for j in range(len(x)):
            moved = x.copy()
            moved[j] += 1e-4
            jacobian[:, j] = (residuals(moved) - r) / 1e-4
        weight = np.minimum(1, 0.1 / np.maximum(np.abs(r), 1e-9))
        columns = [weight * column for column in jacobian.T]
        gradient = [dot(column, r) for column in columns] + 1e-3 * (x - start)
        normal = np.array([[dot(column, other) for other in jacobian.T] for column in columns])
        normal += 1e-3 * np.eye(len(x))
        for _ in range(12):
            step = solve(normal + damping * np.diag(np.diag(normal) + 1e-6), -gradient)
            tried = x + np.clip(step, -2, 2)
            r_tried = residuals(tried)
            if loss(tried, r_tried) < best:
                break
            damping *= 4
        else:
            break
        gain = best - loss(tried, r_tried)
        x, r, best = tried, r_tried, loss(tried, r_tried)
        damping = max(damping / 8, 1e-6)
        if gain < 1e-6 * best:
            break
    put(x)
    for cost in costs:
        cost.records = len(rows)
    errors = np.array([predicted(costs, row, time_of, candidates) / row.time - 1 for row in rows])
    kept = np.minimum(np.abs(errors), 0.5)
    spread = math.sqrt(dot(kept, kept) / len(kept))
    for cost in costs:
        cost.sigma = spread


def _twelfth_power(x: float) -> float:
    cube = x * x * x
    return (cube * cube) * (cube * cube)


def predicted(
    costs: list[Cost],
    row: Row,
    time_of: Callable[[Cost, Row], float],
    candidates: Callable[[Row], Iterable[int]],
) -> float:
    return min(time_of(costs[i], row) for i in candidates(row))
