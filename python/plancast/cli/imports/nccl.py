"""`plancast import nccl`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.nccl import Topology

_PATTERNS = {1: "balanced tree", 2: "split tree", 3: "tree", 4: "ring", 5: "nvls", 6: "direct"}
_SHOWN = ("AllReduce", "AllGather", "ReduceScatter")
_SHOWN_BYTES = [1 << shift for shift in range(10, 34, 3)]


def add_parser(formats: Any) -> None:
    """Declares the subcommand."""
    parser = formats.add_parser(
        "nccl",
        help="an NCCL topology file",
        description="Says which channels NCCL would find on the hosts of a topology file, how it "
        "would join them, and which algorithm and time its tuner expects (docs/collectives.md).",
    )
    parser.add_argument(
        "topology", metavar="TOPO.xml|MACHINE", help="what NCCL_TOPO_DUMP_FILE wrote, or a machine"
    )
    parser.add_argument(
        "--nodes", type=opts.positive, metavar="N", help="identical hosts (default 1)"
    )
    parser.add_argument(
        "--version",
        dest="release",
        default="2.30",
        metavar="V",
        help="whose rules: 2.17, 2.27 or 2.30 (default)",
    )
    parser.add_argument(
        "--collnet", action="store_true", help="use reductions in the network where devices can"
    )
    skeleton = parser.add_argument_group("skeletons", "what to add where the file has PCI alone")
    skeleton.add_argument("--sm", type=opts.positive, metavar="CC", help="GPUs, 90 for Hopper")
    skeleton.add_argument(
        "--nvlinks", type=opts.positive, metavar="N", help="NVLinks of each GPU to NVSwitches"
    )
    skeleton.add_argument("--net-gbit", type=float, metavar="GBIT/S", help="network devices")
    skeleton.add_argument("--no-gdr", action="store_true", help="those without GPUDirect")
    parser.add_argument("--export", metavar="FILE", help="write the topology as XML")
    parser.add_argument("--graph-export", metavar="FILE", help="write the graphs as NCCL has them")
    parser.add_argument("--machine", metavar="FILE.yaml", help="write it as a machine file")
    parser.add_argument("--fabric", default="", metavar="NAME", help="of --machine, as infiniband")
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files

    answers.check_outputs(options.export, options.graph_export, options.machine)
    topology = _open(options)
    topology = topology.fill(
        sm=options.sm,
        nvlinks=options.nvlinks or 0,
        net_gbit_per_s=options.net_gbit,
        gdr=not options.no_gdr,
    )
    missing = topology.missing()
    if missing:
        raise InputError(
            f"`{options.topology}` is a skeleton: {' '.join(missing)} Say what to add with --sm, "
            "--nvlinks and --net-gbit, or dump the whole with "
            "NCCL_TOPO_DUMP_FILE=topo.xml <any NCCL program>."
        )
    asked = {"nodes": options.nodes, "version": options.release, "collnet": options.collnet}
    found = topology.search(**asked)
    if options.export:
        files.write_text(options.export, topology.to_xml())
    if options.graph_export:
        files.write_text(options.graph_export, topology.graphs_xml(**asked))
    notes = list(topology.assumptions)
    if options.machine:
        machine, assumed = topology.machine(nodes=options.nodes, fabric=options.fabric)
        files.write_text(options.machine, machine.to_yaml())
        notes += assumed
    if options.json:
        # Rings and trees are long lists of short numbers: on one line.
        answers.print_json({**found, "assumptions": notes}, indent=None)
    else:
        _print(options.topology, found, notes)
    return 0


def _open(options: argparse.Namespace) -> Topology:
    from plancast.communication.nccl import Topology
    from plancast.files import looks_like_file
    from plancast.machine import Machine

    text = options.topology
    if text.endswith(".xml") or (looks_like_file(text) and not text.endswith((".yaml", ".yml"))):
        return Topology.from_file(text)
    if options.nodes is None or ":" in text or looks_like_file(text):
        return Topology.from_machine(Machine.open(text))
    # As many nodes as asked, whatever a node is.
    return Topology.from_machine(Machine.open(f"{text}:{options.nodes}"))


def _print(name: str, found: dict[str, Any], notes: list[str]) -> None:
    from rich.text import Text

    from plancast.accuracy.report.fitted_table import FittedTable

    nodes, ranks = found["nNodes"], found["nRanks"]
    number = found["nccl"]
    release = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    head = [
        f"{name.rpartition('/')[2]}: {ranks} GPUs (sm {found['minCC']}) in {nodes} "
        f"node{'s' * (nodes > 1)}, "
        f"NCCL {release}",
        f"  {found['nChannels']} channels for collectives, {found['p2pnChannels']} for sends and "
        f"receives ({found['p2pnChannelsPerPeer']} to a peer)"
        + (", reductions in NVSwitch" if found["nvlsSupport"] else ""),
        f"  paths between GPUs: {_kinds(found['gpuPaths'], 'gpu')}; to the network: "
        f"{_kinds(found['gpuPaths'], 'net') or 'none'}",
    ]
    graphs = FittedTable(title="graphs of a node")
    graphs.words("graph", "pattern", least=8)
    graphs.numbers("channels", "GB/s inside", "between")
    graphs.words("paths", least=8)
    graphs.words("channel 0", leaves=1)
    for graph, fields in found["graphs"].items():
        graphs.row(
            graph,
            _PATTERNS[fields["pattern"]],
            str(fields["nChannels"]),
            f"{fields['bwIntra']:g}",
            f"{fields['bwInter']:g}" if nodes > 1 else "",
            f"{fields['typeIntra']}" + (f"/{fields['typeInter']}" if nodes > 1 else ""),
            _order(fields["channels"][0]["gpus"]),
        )
    parts: list[Any] = [Text("\n".join(head)), graphs]
    if "times" in found:
        times = FittedTable(title="what the tuner expects, µs", stacked=True)
        times.numbers("bytes", *_SHOWN)
        rows = {(row["coll"], row["bytes"]): row for row in found["times"]}
        for size in _SHOWN_BYTES:
            cells = [rows[kind, size] for kind in _SHOWN]
            times.row(_size(size), *(f"{row['us']:,.1f} {row['best']}" for row in cells))
        parts.append(times)
    parts += [Text(f"assumed: {note}") for note in notes]
    answers.print_rich(*parts)


def _kinds(paths: list[dict[str, Any]], key: str) -> str:
    kinds: dict[str, float] = {}
    for row in paths:
        for kind, rate, hops in row[key]:
            if hops > 0:
                kinds[kind] = max(kinds.get(kind, 0), rate)
    return ", ".join(f"{kind} {rate:g} GB/s" for kind, rate in kinds.items())


def _size(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size >> 10} KiB"


def _order(gpus: list[int]) -> str:
    shown = " ".join(str(gpu) for gpu in gpus[:16])
    return shown + (" ..." if len(gpus) > 16 else "")
