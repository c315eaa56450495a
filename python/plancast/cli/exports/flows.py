"""`plancast export flows`."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "flows",
        help="the messages of a collective as CSV, for network simulators",
        description="Writes the messages of a collective: id, source, destination, bytes, channel, "
        "step and the messages that come before.",
        epilog="Examples: plancast export flows --op all_reduce --gpus 8 --bytes 4M; "
        "plancast export flows --op all_reduce --topology topo.xml --nodes 2 --bytes 64M -o f.csv",
    )
    parser.add_argument("-o", "--out", metavar="FILE.csv", help="default: standard output")
    parser.add_argument("--op", required=True, metavar="OP", help="all_reduce, all_gather, ...")
    parser.add_argument("--bytes", required=True, type=_bytes, metavar="N[K|M|G]", help="buffer")
    parser.add_argument("--algo", default="ring", metavar="NAME", help="default ring")
    parser.add_argument("--gpus", type=_levels, metavar="N|8x4", help="8x4: four hosts of eight")
    parser.add_argument(
        "-c",
        "--machine",
        "--cluster",
        dest="cluster",
        metavar="MACHINE",
        help="a machine, such as dgx-h100:4",
    )
    parser.add_argument(
        "--topology", metavar="TOPO.xml", help="an NCCL topology: its rings and trees"
    )
    parser.add_argument("--nodes", type=opts.positive, metavar="N", help="hosts of the topology")
    parser.add_argument(
        "--version", dest="release", default="2.30", metavar="V", help="of NCCL, default 2.30"
    )
    parser.add_argument(
        "--channels", type=opts.positive, metavar="N", help="default 1; of a topology all"
    )
    parser.add_argument(
        "--format",
        choices=("plain", "simccl"),
        default="plain",
        help="simccl: the columns of SimCCL's ncclFlowModel_detailed_flows.csv",
    )
    parser.add_argument("--root", type=int, default=0, metavar="RANK", help="default 0")
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.communication.flow_list import flows, to_csv
    from plancast.communication.nccl import Topology
    from plancast.communication.simccl import to_simccl
    from plancast.errors import InputError
    from plancast.machine import Machine

    answers.check_outputs(options.out)
    if options.cluster is not None and options.topology is not None:
        raise InputError("flows run on -c MACHINE or on --topology; give one of them.")
    machine: Any = None
    if options.cluster is not None:
        machine = Machine.open(options.cluster)
    if options.topology is not None:
        machine = Topology.from_file(options.topology)
    found = flows(
        options.op,
        machine,
        options.gpus[0] if options.gpus and len(options.gpus) == 1 else options.gpus,
        options.bytes,
        algorithm=options.algo,
        channels=options.channels,
        nodes=options.nodes,
        version=options.release,
        root=options.root,
    )
    if options.json:
        answers.print_json([flow._asdict() for flow in found])
        return 0
    if options.format == "simccl":
        text = to_simccl(
            found,
            op=options.op,
            bytes=options.bytes,
            algorithm=options.algo,
        )
    else:
        text = to_csv(found)
    if options.out is None:
        sys.stdout.write(text)
    else:
        files.write_text(options.out, text)
    return 0


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no size; write 65536, 64K, 64M or 1G")
    return int(found[1]) * _UNITS[found[2]]


def _levels(text: str) -> list[int]:
    if re.fullmatch(r"\d+(x\d+)*", text) is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of GPUs; write 8 or 8x4")
    return [int(level) for level in text.split("x")]
