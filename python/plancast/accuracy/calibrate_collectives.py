"""Fits how collective algorithms and protocols use links.

    plancast calibrate --collectives ../shared/data -o FOLDER

reads measured collectives of one host or NVLink domain (``kernels/collective.csv``) and writes
the coefficients of proto/collective_cost.proto. The formulas are those of collectives/price.cc,
explained in docs/collectives.md. Which algorithm and protocol ran, NCCL's tuner says. Neither
``truth/collectives.csv`` nor ``oracles/comm_validation.csv`` is read: they are the check. What RCCL
takes on xGMI comes from a log in this package (calibration/collectives_rccl.csv). Between hosts
nothing is fitted: NCCL's own forecast holds there.
"""

from __future__ import annotations

import pathlib
from collections import defaultdict
from collections.abc import Callable

from plancast.accuracy.table import Cells, Table
from plancast.errors import InputError

from .calibration import rccl
from .calibration.collectives import GPUS_PER_SWITCH, LINKS, MACHINES, Cost, Row, fit, node_time

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
BLOCKS = {"LL": 16, "LL128": 24, "Simple": 24, "nvls": 16}  # of a collective's kernel
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
GATHERS = ("all_gather", "reduce_scatter")


# -------------------------------------------------------------------- the data


# Columns of kernels/collective.csv that are read.
COLUMNS = (
    "system", "gpus", "nodes", "collective", "bytes", "dtype", "time_us", "software", "source",
)  # fmt: skip


def read_nodes(path: pathlib.Path) -> list[Row]:
    """The rows of collective.csv that a fit uses. Raises InputError with the place of a bad one."""
    table = Table(path)
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise InputError(
            f"`{path}` has no column `{missing[0]}`. Measured collectives have "
            f"{', '.join(f'`{name}`' for name in COLUMNS)}."
        )
    used = (_row_of(cells) for cells in table.rows() if cells.text("collective") in KINDS)
    rows = [row for row in used if row is not None]
    if not rows:
        raise InputError(
            f"`{path}` has no row that a fit uses: NCCL's {', '.join(KINDS)} on "
            f"{', '.join((*SYSTEMS, *DOMAIN_SYSTEMS))}."
        )
    return rows


def _row_of(cells: Cells) -> Row | None:
    """What a fit takes of a row, or None where it takes nothing."""
    source, system, kind = (cells.text(name) for name in ("source", "system", "collective"))
    members, size, time = (_above_zero(cells, name) for name in ("gpus", "bytes", "time_us"))
    nvls = False
    if source == "aic" and cells.text("software").startswith("NCCL") and system in SYSTEMS:
        link = SYSTEMS[system]
        # Integers are not reduced in the switches.
        nvls = kind == "all_reduce" and cells.text("dtype") == "fp16"
    elif source == "deepbench" and system in SYSTEMS and cells.text("nodes") == "1":
        link = SYSTEMS[system]
    elif source == "xla" and system in DOMAIN_SYSTEMS and members >= 8 and size >= 1 << 20:
        link, nvls = DOMAIN_SYSTEMS[system], kind == "all_reduce"
    else:
        return None
    return Row(link, kind, int(members), size, time, nvls)


def _above_zero(cells: Cells, name: str) -> float:
    value = cells.whole(name) if name == "gpus" else cells.positive(name)
    if not value:
        raise InputError(f"{cells.place}: `{name}` is missing or 0; give a number above 0.")
    return value


def choose(rows: list[Row]) -> None:
    """Notes what NCCL's tuner runs for each row whose link it knows."""
    from plancast import _core

    groups = defaultdict(list)
    for row in rows:
        if row.link in MACHINES and row.kind != "all_to_all":
            groups[row.link, row.kind, row.members, row.nvls].append(row)
    for (link, kind, members, nvls), group in groups.items():
        machine = _core.Machine.preset(MACHINES[link])
        sizes = [int(row.bytes) for row in group]
        choices = _core.nccl_choices(machine, kind, list(range(members)), sizes, nvls=nvls)
        for row, chosen in zip(group, choices, strict=True):
            if chosen is not None:
                row.choice = (chosen[0].lower(), chosen[1])


# --------------------------------------------------------------------- the fits

# Where the fits start: NCCL's own tuning table, and fill as the theory of pipelines has it.
MESSAGE_EFFICIENCY = 0.8  # published sendrecv_perf: 0.78 to 0.82 of NVLink
# Reductions in switches: what NCCL 2.30 counts on of eight ports, 476 and 829 GB/s of bus
# bandwidth (efficiency of the table x 7/8 x 2 x 8 channels of 40 and 80 GB/s), as the share of a
# port that carries 9/8 of the buffer. Measurements end where they have not reached it yet.
NVLS_EFFICIENCY = {"nvlink4": 0.68, "nvlink5": 0.592}


def ring_costs(
    link: str, kinds: tuple[str, ...], bridge: float, crowding: float = 0.0
) -> list[Cost]:
    costs = [
        Cost(link, "ring", "LL", kinds, 5.0, 0.6, 1.0, 0.3, bridge=bridge, crowding=crowding),
        Cost(
            link,
            "ring",
            "Simple",
            kinds,
            8.0,
            2.5,
            1.2,
            0.8,
            local=0.5,
            bridge=bridge,
            crowding=crowding,
        ),
    ]
    if link in MACHINES:
        costs.insert(1, Cost(link, "ring", "LL128", kinds, 10.0, 1.5, 1.0, 0.7, local=0.5))
    return costs


def fit_chosen(costs: list[Cost], rows: list[Row]) -> None:
    """Fits each cost to the rows that the tuner gives it, or all together to the cheapest."""
    free = [row for row in rows if row.choice is None]
    if free:
        fit(costs, free, node_time, lambda row: range(len(costs)))
        return
    for cost in costs:
        own = [row for row in rows if row.choice == (cost.algorithm, cost.protocol)]
        if own:
            fit([cost], own, node_time, lambda row: (0,))


def fit_node(link: str, rows: list[Row]) -> list[Cost]:
    """All algorithms inside one node joined by `link`."""
    bridge = 0.3 if link in GPUS_PER_SWITCH else 0.0
    crowding = 0.8 if bridge else 0.0
    reduce_costs = ring_costs(link, ("all_reduce",), bridge, crowding)
    if any(row.choice and row.choice[0] == "nvls" for row in rows):
        share = NVLS_EFFICIENCY[link]
        reduce_costs.append(
            Cost(link, "nvls", "Simple", (), 15.0, 2.0, 2.0, share, fixed=("efficiency",))
        )
    fit_chosen(reduce_costs, [r for r in rows if r.kind == "all_reduce"])
    if all(row.kind == "all_reduce" for row in rows):
        for cost in reduce_costs:
            cost.kinds = ()  # what is known of the ring is all that is known
            cost.source = "kernels/collective.csv (NCCL 2.0, DeepBench)"
        return reduce_costs
    gather_costs = ring_costs(link, (*GATHERS, "broadcast"), bridge, crowding)
    fit_chosen(gather_costs, [r for r in rows if r.kind in GATHERS])
    exchanges = [row for row in rows if row.kind == "all_to_all"]
    pair_costs = [
        Cost(link, "pairwise", "LL", (), 6.0, 0.1, 1.0, 0.3, bridge=bridge, crowding=crowding),
        Cost(
            link,
            "pairwise",
            "Simple",
            (),
            6.0,
            0.1,
            1.0,
            0.9,
            local=0.5,
            bridge=bridge,
            crowding=crowding,
        ),
    ]
    fit_chosen(pair_costs, exchanges)
    # One message to one peer is an exchange of two without the copy of one's own part, which the
    # exchange makes meanwhile: fitted, then left out.
    direct_costs = [
        Cost(link, "direct", "LL", (), 6.0, 0.1, 1.0, 0.3),
        Cost(
            link, "direct", "Simple", (), 6.0, 0.1, 1.0, MESSAGE_EFFICIENCY, local=0.6,
            fixed=("efficiency",),
        ),
    ]  # fmt: skip
    fit_chosen(direct_costs, [r for r in exchanges if r.members == 2])
    for cost in direct_costs:
        cost.local, cost.bridge, cost.crowding = 0.0, bridge, crowding
    costs = reduce_costs + gather_costs + pair_costs + direct_costs
    for cost in costs:
        cost.source = "kernels/collective.csv (NCCL 2.23 to 2.29, nccl-tests)"
    return costs


FORECAST_SIGMA = 0.1  # oracles/comm_validation.csv, on which nothing is fitted


# Amazon's network with its plugin: 10 of 12.5 GB/s, of which NCCL counts on 12.
EFA_EFFICIENCY = 0.83
EFA_NOTE = "; rate as published in github.com/NVIDIA/nccl/issues/235"

# Omni-Path through NCCL's own verbs, without GPUDirect. BigScience's all-reduces of 4 GB on Jean
# Zay (bigscience-workshop/bigscience, experiments/bandwidth), GB/s of bus bandwidth an interface
# that NCCL's logs show in use: four hosts of V100 5.29 (709 ms, two interfaces) and of A100 5.07
# (1.529 s, one), 16 hosts of V100 3.43 (1.147 s, two). Of 12.5, of which NCCL counts on 12. The
# fabric is shared: a test took up to 1.4 times as long at another time of the day (gpt2.md there).
OMNIPATH_HOSTS, OMNIPATH_MOST_HOSTS = 4, 16
OMNIPATH_GB_PER_S = {OMNIPATH_HOSTS: (5.29 + 5.07) / 2, OMNIPATH_MOST_HOSTS: 3.43}
OMNIPATH_NOTE = "; rate as BigScience measured on Jean Zay (experiments/bandwidth)"
OMNIPATH_SIGMA = 0.25


def forecast_costs(
    fabric: str, efficiency: float = 1.0, note_end: str = "", sigma: float = FORECAST_SIGMA
) -> list[Cost]:
    """Collectives between hosts take what NCCL expects, and the pipeline's fill."""
    note = "NCCL 2.30.7's forecast (collectives/data/nccl_tuner.textproto), not fitted" + note_end
    costs = []
    for algorithm in ("ring", "tree"):
        for protocol in ("LL", "LL128", "Simple"):
            costs.append(Cost(fabric, algorithm, protocol, (), 0, 0, 0, efficiency))
    costs.append(Cost(fabric, "nvls-tree", "Simple", (), 0, 0, 1.0, efficiency))
    for cost in costs:
        cost.forecast, cost.sigma, cost.source = True, sigma, note
    return costs


STATED_NOTE = (
    "published: send_recv 12 to 34 us when small; all_to_all 48.5 of 50 GB/s per interface"
)


def stated_costs(
    fabric: str, pairwise: float = 0.97, direct: float = 0.95, note: str = STATED_NOTE
) -> list[Cost]:
    """Exchanges and messages between hosts, of which only single figures are published."""
    return [
        Cost(fabric, "pairwise", "Simple", (), 12.0, 0.2, 1.0, pairwise, sigma=0.2, source=note),
        Cost(fabric, "direct", "Simple", (), 10.0, 8.0, 0.5, direct, sigma=0.2, source=note),
    ]


def omnipath_costs() -> list[Cost]:
    """Those of Jean Zay's fabric, at the measured rates."""
    few, most = OMNIPATH_GB_PER_S[OMNIPATH_HOSTS], OMNIPATH_GB_PER_S[OMNIPATH_MOST_HOSTS]
    collectives = forecast_costs("omnipath", few / 12, OMNIPATH_NOTE, OMNIPATH_SIGMA)
    exchanges = stated_costs("omnipath", few / 12.5, few / 12.5, "as infiniband" + OMNIPATH_NOTE)
    for costs, full in ((collectives, 12), (exchanges, 12.5)):
        for cost in costs:
            cost.falls = (OMNIPATH_HOSTS, OMNIPATH_MOST_HOSTS, most / full)
    return collectives + exchanges


LIKENESS = [
    ("nvlink2", "nvlink3", "no measurement of NCCL on V100 at hand"),
    ("xgmi", "nvlink3", "no measurement of RCCL's exchanges and messages by size at hand"),
    ("pcie3", "pcie4", "exchanges and messages: same protocol, half the rate"),
    ("pcie5", "pcie4", "same protocol, twice the rate"),
    ("pcie6", "pcie4", "same protocol, four times the rate"),
    ("nvlink", "nvlink5", "another generation of NVLink"),
    ("roce", "infiniband", "H200 on 2 hosts with RoCE reaches the rates of InfiniBand"),
    ("efa", "infiniband", "exchanges and messages: the latency of links.textproto apart"),
    ("ethernet", "infiniband", "the latency of links.textproto apart"),
]

# Where not in all that has no entry of its own.
LIKE_IN = {"xgmi": ("pairwise", "direct")}

# Where not NCCL's tuner decides.
CHEAPEST = [
    ("efa", "the tuner of Amazon's plugin (aws-ofi-nccl) replaces NCCL's"),
    ("pcie3", "NCCL plans PCIe hosts by more of their topology than is known here"),
    ("pcie4", "as pcie3"),
    ("pcie5", "as pcie3"),
    ("pcie6", "as pcie3"),
    ("xgmi", "RCCL has tables of its own"),
]


# ------------------------------------------------------------------- the output


def entry(kind: str, fields: list[tuple[str, str | int | float | bool]]) -> list[str]:
    """A message of a repeated field, in protobuf's text format."""
    lines = [f"{kind} {{"]
    for name, value in fields:
        if isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = f'"{value}"' if isinstance(value, str) else f"{value:.4g}"
        lines.append(f"  {name}: {text}")
    return [*lines, "}"]


def cost_entry(c: Cost) -> list[str]:
    fields: list[tuple[str, str | int | float | bool]] = [
        ("link", c.link),
        ("algorithm", c.algorithm),
        ("protocol", c.protocol),
        *(("collectives", kind) for kind in c.kinds),
    ]
    for name, value in (
        ("base_us", c.base),
        ("hop_us", c.hop),
        ("fill", c.fill),
        ("efficiency", c.efficiency),
        ("bridge_efficiency", c.bridge),
        ("bridge_crowding", c.crowding),
        ("local_share", c.local),
        ("forecast", c.forecast),
    ):
        if value:
            fields.append((name, value))
    if c.falls is not None:
        fields += zip(("hosts", "most_hosts", "efficiency_of_most"), c.falls, strict=True)
    blocks = BLOCKS["nvls"] if c.algorithm.startswith("nvls") else BLOCKS[c.protocol]
    fields += [("channels", blocks), ("sigma", float(f"{c.sigma:.2g}")), ("source", c.source)]
    if c.records:
        fields.append(("records", c.records))
    return entry("cost", fields)


def file_text(costs: list[Cost]) -> str:
    out = [
        "# proto-file: proto/collective_cost.proto",
        "# proto-message: plancast.proto.CollectiveCosts",
        "#",
        "# Written by python/plancast/calibrate_collectives.py; formulas in docs/collectives.md.",
        "",
    ]
    for c in costs:
        out += cost_entry(c)
    for link, like, source in LIKENESS:
        only = [("algorithms", name) for name in LIKE_IN.get(link, ())]
        out += entry("likeness", [("link", link), ("like", like), ("source", source), *only])
    for link, source in CHEAPEST:
        out += entry("choice", [("link", link), ("cheapest", True), ("source", source)])
    return "\n".join(out) + "\n"


def calibrate(data: pathlib.Path, *, report: Callable[[str], None] = lambda _: None) -> str:
    """The text of the coefficients' file, fitted to `data`/kernels/collective.csv."""
    rows = read_nodes(data / "kernels" / "collective.csv")
    choose(rows)
    costs: list[Cost] = []
    for link in LINKS:
        if link != rccl.LINK:
            costs += fit_node(link, [row for row in rows if row.link == link])
    costs += rccl.fitted(rccl.rows(), [c for c in costs if c.link == "nvlink3"])
    for c in costs:
        report(f"{c.link:8} {c.algorithm:9} {c.protocol:6} {'/'.join(c.kinds):40} "
               f"base {c.base:5.2f} hop {c.hop:5.2f} fill {c.fill:5.2f} "
               f"eff {c.efficiency:5.3f} local {c.local:5.3f} "
               f"sigma {c.sigma:.3f} ({c.records})")  # fmt: skip
    costs += forecast_costs("infiniband") + stated_costs("infiniband")
    costs += forecast_costs("efa", EFA_EFFICIENCY, EFA_NOTE)
    return file_text(costs + omnipath_costs())
