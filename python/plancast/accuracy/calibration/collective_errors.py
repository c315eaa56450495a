"""Errors of the closed forms over measured collectives, as tables for docs/collectives.md.

    python -m plancast.accuracy.calibration.collective_errors ../shared/data

`kernels/collective.csv` by source, system and collective, with every row that is left out counted
by its reason; then `oracles/comm_validation.csv`, on which nothing is fitted.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plancast import _core
from plancast.accuracy.table import Table

# A shipped machine with the same devices and links; of several hosts, on one that fits.
MACHINES = {
    "a100_sxm": "dgx-a100-80g",
    "h100_sxm": "dgx-h100",
    "b200_sxm": "dgx-b200",
    "gb200": "gb200-nvl72",
    "l40s": "l40s-host-bridge",
    "GB200 NVL64": "gb200-nvl72",
    "GB200 NVL72": "gb200-nvl72",
    "B200-SXM node": "dgx-b200",
    "H100-SXM-80GB node": "dgx-h100",
    "vidur_a100_dgx": "dgx-a100-80g",
    "deepbench_M40": "deepbench-m40",
    "deepbench_P100": "deepbench-p100",
    "deepbench_GTX1080Ti": "deepbench-p100",
    "deepbench_TitanX-Pascal": "deepbench-p100",
    "deepbench_TitanX-Maxwell": "deepbench-p100",
}
DOMAIN = 18  # hosts of an NVLink domain
VALIDATED = {
    "dgx_h100": "dgx-h100",
    "h200_sxm": "dgx-h200",
    "p4d_a100": "p4d-a100-40g",
    "h800_real": "deepseek-h800",
    "gb200_tray": "gb200-nvl72",
}
# Partitions of a rack that NVLink does not join.
PARTITION = '{"preset": "gb200-nvl72", "hosts": %s, "hosts_per_domain": 1, "topology": "nvswitch"}'
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
LARGE = 16 << 20


@dataclass
class Point:
    source: str
    system: str
    kind: str
    machine: str
    devices: tuple[int, ...]
    size: int
    measured_us: float
    algorithm: str = ""
    nodes: int = 1
    error: float = 0.0


def reason_to_leave(row: dict[str, str]) -> str | None:
    """Why no forecast stands beside a row of collective.csv, or None."""
    if row["collective"] not in KINDS:
        return "DeepEP's dispatch and combine (docs/moe.md)"
    if "nccl" not in row["software"].lower():
        return "another library than NCCL"
    if row["system"] not in MACHINES:
        return "bridged pairs of PCIe cards: no such machine is described"
    if row["nodes"] != "1" and "NVL" not in row["system"]:
        return "several hosts, whose network the source does not state"
    return None


def _rows(path: pathlib.Path) -> Iterator[dict[str, str]]:
    table = Table(path)
    for cells in table.rows():
        yield {name: cells.text(name) for name in table.columns}


def read_kernels(path: pathlib.Path) -> tuple[list[Point], Counter[str]]:
    """The rows of collective.csv that can be forecast, and how many were left out for what."""
    points = []
    left: Counter[str] = Counter()
    for row in _rows(path):
        reason = reason_to_leave(row)
        if reason is not None:
            left[reason] += 1
            continue
        name = MACHINES[row["system"]]
        hosts = DOMAIN if name == "gb200-nvl72" else 1
        points.append(
            Point(
                row["source"],
                row["system"],
                row["collective"],
                f"{name}:{hosts}",
                tuple(range(int(row["gpus"]))),
                int(float(row["bytes"])),
                float(row["time_us"]),
            )
        )
    return points, left


def read_validation(path: pathlib.Path) -> tuple[list[Point], Counter[str]]:
    """The points of comm_validation.csv, each once."""
    points: dict[tuple[str, str, str], Point] = {}
    left: Counter[str] = Counter()
    for row in _rows(path):
        key = (row["system"], row["coll"], row["bytes"])
        name = VALIDATED.get(row["oracle"].rsplit("_n", 1)[0])
        if key in points:
            continue
        if name is None:
            left[f"{row['system']}: no such machine is described"] += 1
            continue
        kind = {"AllReduce": "all_reduce", "AllGather": "all_gather"}[row["coll"]]
        points[key] = Point(
            "published",
            row["system"],
            kind,
            PARTITION % row["nodes"] if "NVL4" in row["system"] else f"{name}:{row['nodes']}",
            tuple(range(int(row["ranks"]))),
            int(row["bytes"]),
            float(row["measured_us"]),
            "ring" if "disabled" in row["system"] or "NVLS off" in row["system"] else "",
            int(row["nodes"]),
        )
    return list(points.values()), left


def forecast(points: Iterable[Point]) -> None:
    """Fills in the errors, forecast / measured - 1."""
    groups = defaultdict(list)
    for point in points:
        groups[point.machine, point.devices, point.kind, point.algorithm].append(point)
    machines: dict[str, _core.Machine] = {}
    for (name, devices, kind, algorithm), group in groups.items():
        if name not in machines:
            made_here = name.startswith("{")
            machines[name] = (
                _core.Machine.from_json(name, "machine")
                if made_here
                else _core.Machine.preset(name)
            )
        sizes = [point.size for point in group]
        answers = _core.collective_times(machines[name], kind, list(devices), sizes, algorithm)
        for point, answer in zip(group, answers, strict=True):
            point.error = answer[0] / 1e6 / point.measured_us - 1


def line(name: str, points: list[Point]) -> str:
    """A row of the table."""
    errors = [abs(point.error) for point in points]
    large = [abs(point.error) for point in points if point.size >= LARGE]
    bias = statistics.median(point.error for point in points)
    big = f"{100 * statistics.median(large):.1f} %" if large else ""
    return (
        f"| {name} | {len(points)} | {100 * statistics.median(errors):.1f} % | {big} | "
        f"{100 * max(errors):.0f} % | {100 * bias:+.1f} % |"
    )


HEAD = (
    "| {} | points | median error | from 16 MiB | worst | median bias |\n|---|---|---|---|---|---|"
)


def tables(data: pathlib.Path) -> str:
    """Everything as markdown."""
    points, left = read_kernels(data / "kernels" / "collective.csv")
    validation, gone = read_validation(data / "oracles" / "comm_validation.csv")
    forecast(points)
    forecast(validation)
    out = [HEAD.format("machine and source")]
    by_machine = defaultdict(list)
    for point in points:
        by_machine[point.machine.split(":")[0], point.source].append(point)
    out += [line(f"{name}, {source}", rows) for (name, source), rows in sorted(by_machine.items())]
    out += [line("all", points), "", HEAD.format("source, system, collective")]
    by_kind = defaultdict(list)
    for point in points:
        by_kind[point.source, point.system, point.kind].append(point)
    out += [line(", ".join(key), rows) for key, rows in sorted(by_kind.items())]
    out += ["", *(f"Left out: {count} rows, {reason}." for reason, count in sorted(left.items()))]
    out += ["", HEAD.format("published, never fitted")]
    by_system = defaultdict(list)
    for point in validation:
        by_system[point.system].append(point)
    out += [line(name, rows) for name, rows in sorted(by_system.items())]
    out.append(line("several hosts", [p for p in validation if p.nodes > 1]))
    out.append(line("one host", [p for p in validation if p.nodes == 1]))
    out += ["", *(f"Left out: {reason}." for reason in sorted(gone))]
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="folder with kernels/ and oracles/")
    print(tables(parser.parse_args(arguments).data))


if __name__ == "__main__":
    main()
