"""RCCL on the mesh of eight MI300X, whose log has one collective of eight members."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from plancast.accuracy.table import Table

from .collectives import Cost, Row, fit, node_time

GATHERED = ("all_reduce", "all_gather", "reduce_scatter")
LINK = "xgmi"
LOG = Path(__file__).with_name("collectives_rccl.csv")
SOURCE = (
    "ROCm/rocm-blogs @0e81c2c, blogs/software-tools-optimization/mi300x-rccl-xgmi "
    "(RCCL 2.22.3, rccl-tests, all_reduce of 8 MI300X)"
)


def rows() -> list[Row]:
    return [
        Row(
            LINK,
            cells.text("collective"),
            cells.whole("gpus") or 0,
            cells.positive("bytes") or 0,
            cells.positive("time_us") or 0,
        )
        for cells in Table(LOG).rows()
    ]


# GB/s of a link that carries 64: 45 to 48, the same source and TransferBench.
MESSAGE_EFFICIENCY = 0.73


def fitted(measured: list[Row], nvlink3: list[Cost]) -> list[Cost]:
    """Costs of RCCL's algorithms. Small buffers go to all others at once, larger ones around rings.

    One size of group does not tell hops from launch: the launch is the same for all, and what a
    step of the smallest takes is that of the same protocol in `nvlink3`.
    """

    def like(algorithm: str, protocol: str) -> Cost:
        return next(c for c in nvlink3 if (c.algorithm, c.protocol) == (algorithm, protocol))

    step = like("ring", "LL").hop
    costs = [
        Cost(LINK, "direct", "LL", GATHERED, 10.0, step, 0.3, 0.2,
             fixed=("hop",)),
        Cost(LINK, "ring", "LL128", (), 10.0, 0.3, 0.3, 0.5),
        Cost(LINK, "ring", "Simple", (), 10.0, 2.0, 1.0, 0.7),
    ]  # fmt: skip
    launch = [("base", tuple(range(len(costs))))]
    fit(costs, measured, node_time, lambda row: range(len(costs)), shared=launch)
    for cost in costs:
        cost.source = SOURCE + "; other collectives and sizes of group alike (assumption)"
    message = dataclasses.replace(
        like("direct", "Simple"),
        link=LINK,
        efficiency=MESSAGE_EFFICIENCY,
        sigma=0.2,
        records=0,
        source=f"rate: {SOURCE.replace('all_reduce', 'and TransferBench')}; launch and hop "
        "as on nvlink3 (assumption)",
    )
    return [*costs, message]
