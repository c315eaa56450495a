"""Fits how collective algorithms and protocols use links.

    python -m plancast.calibrate_collectives ../shared/data -o collectives/data/protocols.textproto

reads measured collectives (``kernels/collective.csv``, one host or NVLink domain;
``oracles/comm_validation.csv``, several hosts) and writes the coefficients of
proto/collective_cost.proto. The formulas are those of collectives/price.cc, explained in
docs/collectives.md. ``truth/collectives.csv`` is never read: it is the check.
"""

from __future__ import annotations

import argparse
import csv
import pathlib

from .calibration.collectives import GPUS_PER_SWITCH, LINKS, Cost, Row, fit, network_time, node_time

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
# Large messages of one host, which collective.csv lacks.
LARGE = {"H100 1x8": "nvlink4", "A100 p4d 1x8": "nvlink3"}
LARGE_WEIGHT = 6
BLOCKS = {"LL": 16, "Simple": 24, "nvls": 16}  # of a collective's kernel


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
            elif (
                r["source"] == "xla"
                and r["system"] in DOMAIN_SYSTEMS
                and members >= 8
                and size >= 1 << 20
            ):
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
                row = Row(
                    "nvlink4",
                    "all_reduce",
                    int(r["ranks"]),
                    float(r["bytes"]),
                    float(r["measured_us"]),
                    True,
                    int(r["nodes"]),
                )
                rows[row.nodes, row.bytes] = row  # the file repeats a record per NCCL version
    return list(rows.values())


# --------------------------------------------------------------------- the fits

# Where the fits start: NCCL's own tuning table, and fill as the theory of pipelines has it.
MESSAGE_EFFICIENCY = 0.8  # published sendrecv_perf: 0.78 to 0.82 of NVLink
GATHERS = ("all_gather", "reduce_scatter")


def ring_costs(link: str, kinds: tuple[str, ...], bridge: float) -> list[Cost]:
    return [
        Cost(link, "ring", "LL", kinds, 5.0, 0.6, 1.0, 0.3, bridge=bridge),
        Cost(link, "ring", "Simple", kinds, 8.0, 2.5, 1.2, 0.9, local=0.2, bridge=bridge),
    ]


def fit_node(link: str, rows: list[Row]) -> list[Cost]:
    """All algorithms inside one node joined by `link`."""
    bridge = 0.3 if link in GPUS_PER_SWITCH else 0.0
    reduce_costs = ring_costs(link, ("all_reduce",), bridge)
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
    gather_costs = ring_costs(link, (*GATHERS, "broadcast"), bridge)
    fit(gather_costs, [r for r in rows if r.kind in GATHERS], node_time, lambda row: (0, 1))
    exchanges = [row for row in rows if row.kind == "all_to_all"]
    pair_costs = [
        Cost(link, "pairwise", "LL", (), 6.0, 0.1, 1.0, 0.3, bridge=bridge),
        Cost(link, "pairwise", "Simple", (), 6.0, 0.1, 1.0, 0.9, local=0.1, bridge=bridge),
    ]
    fit(pair_costs, exchanges, node_time, lambda row: (0, 1))
    # One message to one peer is an exchange of two without the copy of one's own part, which the
    # exchange makes meanwhile: fitted, then left out.
    direct_costs = [
        Cost(link, "direct", "LL", (), 6.0, 0.1, 1.0, 0.3),
        Cost(
            link, "direct", "Simple", (), 6.0, 0.1, 1.0, MESSAGE_EFFICIENCY, local=0.3,
            fixed=("efficiency",),
        ),
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
        out += [
            "likeness {",
            f'  link: "{link}"',
            f'  like: "{like}"',
            f'  source: "{source}"',
            "}",
        ]
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
