"""Fits how collective algorithms and protocols use links.

    python -m plancast.calibrate_collectives ../shared/data -o collectives/data/protocols.textproto

reads measured collectives (``kernels/collective.csv``, one host or NVLink domain;
``oracles/comm_validation.csv``, several hosts) and writes the coefficients of
proto/collective_cost.proto. The formulas are those of collectives/price.cc, explained in
docs/collectives.md. ``truth/collectives.csv`` is never read: it is the check.

Times are microseconds here, rates bytes per microsecond.
"""

from __future__ import annotations

import argparse
import csv
import math
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

# Bandwidth of one device or interface (GB/s = 1e3 bytes/us) and latency of one hop, as in
# cluster/data/links.textproto and machines.textproto.
LINKS = {
    "nvlink3": (300e3, 0.6),
    "nvlink4": (450e3, 0.6),
    "nvlink5": (900e3, 0.6),
    "pcie3": (16e3, 1.0),
    "pcie4": (32e3, 1.0),
}
NDR_INTERFACE = (50e3, 2.7)

# Which measured systems stand for which link.
SYSTEMS = {
    "a100_sxm": "nvlink3",
    "h100_sxm": "nvlink4",
    "h200_sxm": "nvlink4",
    "b200_sxm": "nvlink5",
    "b300_sxm": "nvlink5",
    "gb200": "nvlink5",
    "gb300": "nvlink5",
    "l40s": "pcie4",
    # Eight devices below PCIe switches. M40 and P100 of this source are left as a check.
    "deepbench_GTX1080Ti": "pcie3",
    "deepbench_TitanX-Pascal": "pcie3",
    "deepbench_TitanX-Maxwell": "pcie3",
}
DOMAIN_SYSTEMS = {"GB200 NVL72": "nvlink5"}  # several hosts of one NVLink domain
GPUS_PER_SWITCH = {"pcie4": 2}  # of boxes with a host bridge
# Large messages of one host, which collective.csv lacks.
LARGE = {"H100 1x8": "nvlink4", "A100 p4d 1x8": "nvlink3"}
LARGE_WEIGHT = 6
BLOCKS = {"LL": 16, "Simple": 24, "nvls": 16}  # of a collective's kernel


@dataclass
class Row:
    link: str
    kind: str
    members: int
    bytes: float
    time: float
    nvls: bool = False  # the record may have used reductions in the switches
    nodes: int = 1


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
    sigma: float = 0.0
    records: int = 0
    source: str = ""
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
    elif row.members > GPUS_PER_SWITCH.get(row.link, row.members):
        switches = math.ceil(row.members / GPUS_PER_SWITCH[row.link])
        bridge = port * switches
        if row.kind == "all_to_all":
            bridge = row.members - row.members / switches
    slowest = (port + cost.local) / cost.efficiency / bandwidth
    if bridge:
        slowest = max(slowest, bridge / cost.bridge / bandwidth)
    latencies = hops * (latency + cost.hop)
    transfer = row.bytes * slowest
    return cost.base + latencies + cost.fill * math.sqrt(latencies * transfer) + transfer


def network_time(cost: Cost, row: Row, node: dict[tuple[str, str], Cost]) -> float:
    """All-reduce over several hosts of 8 devices and 8 interfaces."""
    interface, interface_latency = NDR_INTERFACE
    bandwidth, latency = LINKS[row.link]
    k, hosts = row.members / row.nodes, row.nodes
    if cost.algorithm == "ring":
        port, _ = flow("all_reduce", row.members)
        nic, network_hops = port / k, 2 * (hosts - 1)
        node_hops = 2 * (row.members - 1) - network_hops
        port *= (k - 1) / k
    else:
        nic = {2: 1.0, 3: 1.5}.get(hosts, 2.0) / k
        network_hops = 2 * math.ceil(math.log2(hosts))
        port, node_hops = 2 * (k - 1) / k, 2 * (k - 1)
        if cost.algorithm == "nvls-tree":
            port, node_hops = (k + 1) / k, 2
    inside = node["nvls" if cost.algorithm == "nvls-tree" else "ring", cost.protocol]
    slowest = max(
        (port + inside.local) / inside.efficiency / bandwidth, nic / cost.efficiency / interface
    )
    latencies = node_hops * (latency + inside.hop) + network_hops * (interface_latency + cost.hop)
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
                setattr(costs[i], name, low + (high - low) / (1 + math.exp(-value)))

    def get() -> np.ndarray:
        x = []
        for name, owners in slots:
            low, high = BOUNDS[name]
            share = (getattr(costs[owners[0]], name) - low) / (high - low)
            share = min(max(share, 1e-4), 1 - 1e-4)
            x.append(math.log(share / (1 - share)))
        return np.array(x)

    def residuals(x: np.ndarray) -> np.ndarray:
        put(x)
        out = []
        for row in rows:
            # A soft minimum lets every candidate feel the rows near its borders.
            times = [time_of(costs[i], row) for i in candidates(row)]
            soft = sum(t**-12 for t in times) ** (-1 / 12)
            out.append(math.log(soft / row.time))
        return np.array(out)

    x, damping = get(), 1e-2
    start = x.copy()

    def loss(x: np.ndarray, r: np.ndarray) -> float:
        # Huber, and a weak pull to the start for what the rows do not tell.
        a = np.abs(r)
        return float(np.where(a < 0.1, r * r, 0.2 * a - 0.01).sum() + 1e-3 * ((x - start) ** 2).sum())

    r = residuals(x)
    best = loss(x, r)
    for _ in range(steps):
        jacobian = np.empty((len(r), len(x)))
        for j in range(len(x)):
            moved = x.copy()
            moved[j] += 1e-4
            jacobian[:, j] = (residuals(moved) - r) / 1e-4
        weight = np.minimum(1, 0.1 / np.maximum(np.abs(r), 1e-9))
        gradient = jacobian.T @ (weight * r) + 1e-3 * (x - start)
        normal = jacobian.T @ (weight[:, None] * jacobian) + 1e-3 * np.eye(len(x))
        for _ in range(12):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-6), -gradient)
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
    spread = float(np.sqrt(np.mean(np.minimum(np.abs(errors), 0.5) ** 2)))
    for cost in costs:
        cost.sigma = spread


def predicted(
    costs: list[Cost],
    row: Row,
    time_of: Callable[[Cost, Row], float],
    candidates: Callable[[Row], Iterable[int]],
) -> float:
    return min(time_of(costs[i], row) for i in candidates(row))


# -------------------------------------------------------------------- the data


def read_nodes(path: pathlib.Path) -> list[Row]:
    rows = []
    with path.open(newline="") as file:
        for r in csv.DictReader(file):
            kind, members, size = r["collective"], int(r["gpus"]), float(r["bytes"])
            time = float(r["time_us"])
            if kind not in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
                continue
            if r["source"] == "aic" and r["software"].startswith("NCCL") and r["system"] in SYSTEMS:
                # Integers are not reduced in the switches.
                nvls = kind == "all_reduce" and r["dtype"] == "fp16" and members > 4
                rows.append(Row(SYSTEMS[r["system"]], kind, members, size, time, nvls))
            elif r["source"] == "deepbench" and r["system"] in SYSTEMS and r["nodes"] == "1":
                rows.append(Row(SYSTEMS[r["system"]], kind, members, size, time))
            elif r["source"] == "xla" and r["system"] in DOMAIN_SYSTEMS and members >= 8:
                if size >= 1 << 20:
                    nvls = kind == "all_reduce"
                    rows.append(Row(DOMAIN_SYSTEMS[r["system"]], kind, members, size, time, nvls))
    return rows


def read_large(path: pathlib.Path) -> list[Row]:
    kinds = {"AllReduce": "all_reduce", "AllGather": "all_gather"}
    rows = {}
    with path.open(newline="") as file:
        for r in csv.DictReader(file):
            link = next((LARGE[name] for name in LARGE if r["system"].startswith(name)), None)
            if link and r["nodes"] == "1":
                nvls = "NVSwitch (NVLS)" in r["system"]
                row = Row(link, kinds[r["coll"]], int(r["ranks"]), float(r["bytes"]),
                          float(r["measured_us"]), nvls)  # fmt: skip
                rows[link, row.kind, nvls, row.bytes] = row
    return [row for row in rows.values() for _ in range(LARGE_WEIGHT)]


def read_networks(path: pathlib.Path) -> list[Row]:
    rows = {}
    with path.open(newline="") as file:
        for r in csv.DictReader(file):
            if r["system"].startswith("H100") and "NDR" in r["system"] and int(r["nodes"]) > 1:
                row = Row("nvlink4", "all_reduce", int(r["ranks"]), float(r["bytes"]),
                          float(r["measured_us"]), True, int(r["nodes"]))
                rows[row.nodes, row.bytes] = row  # the file repeats a record per NCCL version
    return list(rows.values())


# --------------------------------------------------------------------- the fits

# Where the fits start: NCCL's own tuning table, and fill as the theory of pipelines has it.
RING_LL = {"base": 5.0, "hop": 0.6, "fill": 1.0, "efficiency": 0.3}
RING_SIMPLE = {"base": 8.0, "hop": 2.5, "fill": 1.2, "efficiency": 0.9, "local": 0.2}
MESSAGE_EFFICIENCY = 0.8  # published sendrecv_perf: 0.78 to 0.82 of NVLink
GATHERS = ("all_gather", "reduce_scatter")


def fit_node(link: str, rows: list[Row]) -> list[Cost]:
    """All algorithms inside one node joined by `link`."""
    bridge = 0.3 if link in GPUS_PER_SWITCH else 0.0
    reduce_costs = [
        Cost(link, "ring", "LL", ("all_reduce",), **RING_LL, bridge=bridge),
        Cost(link, "ring", "Simple", ("all_reduce",), **RING_SIMPLE, bridge=bridge),
    ]
    if any(row.nvls for row in rows) and link in ("nvlink4", "nvlink5"):
        nvls = Cost(link, "nvls", "Simple", (), 15.0, 2.0, 2.0, 0.65)
        reduce_costs.append(nvls)
    count = len(reduce_costs)
    fit(reduce_costs, [r for r in rows if r.kind == "all_reduce"], node_time,
        lambda row: range(count if row.nvls else 2))  # fmt: skip
    if all(row.kind == "all_reduce" for row in rows):
        for cost in reduce_costs:
            cost.kinds = ()  # what is known of the ring is all that is known
            cost.source = "kernels/collective.csv (NCCL 2.0, DeepBench)"
        return reduce_costs
    gather_costs = [
        Cost(link, "ring", "LL", (*GATHERS, "broadcast"), **RING_LL, bridge=bridge),
        Cost(link, "ring", "Simple", (*GATHERS, "broadcast"), **RING_SIMPLE, bridge=bridge),
    ]
    fit(gather_costs, [r for r in rows if r.kind in GATHERS], node_time, lambda row: (0, 1))
    exchanges = [row for row in rows if row.kind == "all_to_all"]
    start = {"base": 6.0, "hop": 0.1, "fill": 1.0}
    pair_costs = [
        Cost(link, "pairwise", "LL", (), **start, efficiency=0.3, bridge=bridge),
        Cost(link, "pairwise", "Simple", (), **start, efficiency=0.9, local=0.1, bridge=bridge),
    ]
    fit(pair_costs, exchanges, node_time, lambda row: (0, 1))
    # One message to one peer is an exchange of two without the copy of one's own part, which the
    # exchange makes meanwhile: fitted, then left out.
    direct_costs = [
        Cost(link, "direct", "LL", (), **start, efficiency=0.3),
        Cost(link, "direct", "Simple", (), **start, efficiency=MESSAGE_EFFICIENCY, local=0.3,
             fixed=("efficiency",)),
    ]  # fmt: skip
    fit(direct_costs, [r for r in exchanges if r.members == 2], node_time, lambda row: (0, 1))
    for cost in direct_costs:
        cost.local, cost.bridge = 0.0, bridge
    costs = reduce_costs + gather_costs + pair_costs + direct_costs
    for cost in costs:
        cost.source = "kernels/collective.csv (NCCL 2.23 to 2.29, nccl-tests)"
        if link in LARGE.values() and cost.algorithm != "pairwise":
            cost.source += ", oracles/comm_validation.csv (1 GB and more)"
    return costs


def fit_network(rows: list[Row], node_costs: list[Cost]) -> list[Cost]:
    """All-reduce between hosts, on the link costs inside them."""
    node = {
        (c.algorithm, c.protocol): c
        for c in node_costs
        if c.link == "nvlink4" and ("all_reduce" in c.kinds or c.algorithm == "nvls")
    }
    fabric = "infiniband"
    costs = [
        Cost(fabric, "ring", "LL", (), 8.0, 2.0, 1.0, 0.4),
        Cost(fabric, "tree", "LL", (), 8.0, 3.0, 1.0, 0.4),
        Cost(fabric, "ring", "Simple", (), 10.0, 10.0, 1.0, 0.9),
        Cost(fabric, "tree", "Simple", (), 10.0, 10.0, 1.0, 0.85),
        Cost(fabric, "nvls-tree", "Simple", (), 20.0, 10.0, 1.0, 0.9),
    ]
    shared = [("base", (0, 1)), ("hop", (0, 1)), ("efficiency", (0, 1)), ("fill", (0, 1)),
              ("base", (2, 3)), ("hop", (2, 3)), ("efficiency", (2, 3))]  # fmt: skip
    fit(costs, rows, lambda cost, row: network_time(cost, row, node), lambda row: range(5), shared)
    for cost in costs:
        cost.source = "oracles/comm_validation.csv (H100, 2 to 8 hosts, NDR InfiniBand)"
    return costs


def stated_network(ring: Cost) -> list[Cost]:
    """Exchanges and messages between hosts, of which only single figures are published."""
    fabric = "infiniband"
    note = "published: send_recv 12 to 34 us when small; all_to_all 48.5 of 50 GB/s per interface"
    return [
        Cost(fabric, "pairwise", "Simple", (), 12.0, 0.2, 1.0, 0.97, sigma=0.2, source=note),
        Cost(fabric, "direct", "Simple", (), 10.0, 8.0, ring.fill, 0.95, sigma=0.2, source=note),
    ]


LIKENESS = [
    ("nvlink2", "nvlink3", "no measurement of NCCL on V100 at hand"),
    ("xgmi", "nvlink3", "no measurement of RCCL that covers sizes at hand"),
    ("pcie3", "pcie4", "exchanges and messages: same protocol, half the rate"),
    ("pcie5", "pcie4", "same protocol, twice the rate"),
    ("pcie6", "pcie4", "same protocol, four times the rate"),
    ("nvlink", "nvlink5", "another generation of NVLink"),
    ("roce", "infiniband", "H200 on 2 hosts with RoCE reaches the rates of InfiniBand"),
    ("omnipath", "infiniband", "no measurement at hand"),
    ("efa", "infiniband", "the latency of links.textproto apart"),
    ("ethernet", "infiniband", "the latency of links.textproto apart"),
]


# ------------------------------------------------------------------- the output


def write(costs: list[Cost], path: pathlib.Path) -> None:
    out = [
        "# proto-file: proto/collective_cost.proto",
        "# proto-message: plancast.proto.CollectiveCosts",
        "#",
        "# Written by python/plancast/calibrate_collectives.py; formulas in docs/collectives.md.",
        "",
    ]
    for c in costs:
        out.append("cost {")
        out.append(f'  link: "{c.link}"')
        out.append(f'  algorithm: "{c.algorithm}"')
        out.append(f'  protocol: "{c.protocol}"')
        out += [f'  collectives: "{kind}"' for kind in c.kinds]
        for name, value in (("base_us", c.base), ("hop_us", c.hop), ("fill", c.fill),
                            ("efficiency", c.efficiency), ("bridge_efficiency", c.bridge),
                            ("local_share", c.local)):  # fmt: skip
            if value:
                out.append(f"  {name}: {value:.4g}")
        blocks = BLOCKS["nvls"] if c.algorithm.startswith("nvls") else BLOCKS[c.protocol]
        out.append(f"  channels: {blocks}")
        out.append(f"  sigma: {c.sigma:.2g}")
        out.append(f'  source: "{c.source}"')
        if c.records:
            out.append(f"  records: {c.records}")
        out.append("}")
    for link, like, source in LIKENESS:
        out += ["likeness {", f'  link: "{link}"', f'  like: "{like}"', f'  source: "{source}"', "}"]
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="folder with kernels/ and oracles/")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    rows = read_nodes(options.data / "kernels" / "collective.csv")
    rows += read_large(options.data / "oracles" / "comm_validation.csv")
    costs: list[Cost] = []
    for link in LINKS:
        fitted = fit_node(link, [row for row in rows if row.link == link])
        costs += fitted
        for c in fitted:
            print(f"{c.link:8} {c.algorithm:9} {c.protocol:6} {'/'.join(c.kinds):40} "
                  f"base {c.base:5.2f} hop {c.hop:5.2f} fill {c.fill:5.2f} "
                  f"eff {c.efficiency:5.3f} local {c.local:5.3f} "
                  f"sigma {c.sigma:.3f} ({c.records})")  # fmt: skip
    network = fit_network(read_networks(options.data / "oracles" / "comm_validation.csv"), costs)
    network += stated_network(network[2])
    for c in network:
        print(f"{c.link:8} {c.algorithm:9} {c.protocol:6} base {c.base:5.2f} hop {c.hop:5.2f} "
              f"fill {c.fill:5.2f} eff {c.efficiency:5.3f} sigma {c.sigma:.3f}")  # fmt: skip
    write(costs + network, options.output)


if __name__ == "__main__":
    main()
