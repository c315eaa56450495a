"""`plancast export msccl`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.communication.algorithms import Algorithm
    from plancast.communication.synthesis import ParetoFront, SynthesizedAlgorithm


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "msccl",
        help="a collective algorithm as MSCCL's XML",
        description="Writes a collective algorithm as MSCCL's XML: a known one (--op, --algo), "
        "one searched for on a topology (--synthesize), as SCCL does, or one read (--from).",
        epilog="Examples: plancast export msccl --op all_reduce --algo ring --gpus 8 -o ring.xml; "
        "plancast export msccl --synthesize all_gather --topology dgx1 --pareto",
    )
    parser.add_argument("-o", "--out", metavar="FILE.xml", help="default: standard output")
    parser.add_argument(
        "--from", dest="source", metavar="ALGO.xml", help="read this one, check it, write it again"
    )
    known = parser.add_argument_group("a known algorithm")
    known.add_argument("--op", metavar="OP", help="all_reduce, all_gather, broadcast, ...")
    known.add_argument("--algo", metavar="NAME", default="ring", help="default ring")
    known.add_argument("--gpus", metavar="N|8x4", help="how many; 8x4: four hosts of eight")
    known.add_argument("--channels", type=opts.positive, default=1, metavar="N", help="default 1")
    known.add_argument("--protocol", default="Simple", metavar="P", help="Simple, LL or LL128")
    known.add_argument("--root", type=int, default=0, metavar="RANK", help="default 0")
    search = parser.add_argument_group("a search")
    search.add_argument("--synthesize", metavar="OP", help="what to search for")
    search.add_argument(
        "--topology",
        metavar="NAME|TOPO.xml",
        help="dgx1, ring:8, full:4, hypercube:8, mesh:2x4, torus:4x4 or an NCCL topology file",
    )
    search.add_argument("--steps", type=opts.positive, metavar="S", help="synchronous steps")
    search.add_argument("--rounds", type=opts.positive, metavar="R", help="of all steps together")
    search.add_argument("--chunks", type=opts.positive, metavar="C", help="pieces of a part")
    search.add_argument(
        "--pareto", action="store_true", help="list the best between fewest steps and fewest rounds"
    )
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast.errors import InputError

    answers.check_outputs(options.out)
    given = [options.op, options.synthesize, options.source]
    if sum(one is not None for one in given) != 1:
        raise InputError("give one of --op, --synthesize and --from: one algorithm is written.")
    if options.source is not None:
        from plancast.communication.algorithms import Algorithm

        algorithm = Algorithm.open(options.source)
        _write(options, algorithm, _facts(algorithm))
        return 0
    if options.op is not None:
        return _known(options)
    if options.topology is None:
        raise InputError("--synthesize needs --topology, such as dgx1.")
    if options.pareto:
        return _front(options)
    for name in ("steps", "rounds", "chunks"):
        if getattr(options, name) is None:
            raise InputError(f"--synthesize needs --{name}, or --pareto to list what there is.")
    return _search(options)


def _known(options: argparse.Namespace) -> int:
    from plancast.communication.algorithms import Algorithm
    from plancast.errors import InputError

    if options.gpus is None:
        raise InputError("--op needs --gpus.")
    try:
        levels = [int(text) for text in options.gpus.split("x")]
    except ValueError:
        raise InputError(f"--gpus is `{options.gpus}`; write 8, or 8x4 for four hosts.") from None
    algorithm = Algorithm.make(
        options.op,
        options.algo,
        gpus=levels,
        channels=options.channels,
        protocol=options.protocol,
        root=options.root,
    )
    algorithm.check()
    _write(options, algorithm, _facts(algorithm))
    return 0


def _search(options: argparse.Namespace) -> int:
    from plancast.communication.synthesis import synthesize
    from plancast.errors import InputError

    found = synthesize(
        options.synthesize,
        options.topology,
        steps=options.steps,
        rounds=options.rounds,
        chunks=options.chunks,
        root=options.root,
    )
    if found.algorithm is not None:
        _write(options, found.algorithm, {**_facts(found.algorithm), **_point(found)})
        return 0
    if options.json:
        answers.print_json(_point(found))
        return 0
    wanted = (
        f"{options.synthesize} of {found.steps} steps, {found.rounds} rounds and {found.chunks} "
        f"chunks on `{options.topology}`"
    )
    raise InputError(
        f"gave up on an {wanted} after {found.conflicts:,} conflicts."
        if found.answer == "gave up"
        else f"there is no {wanted}; --pareto lists what there is."
    )


def _front(options: argparse.Namespace) -> int:
    from plancast.communication.synthesis import pareto_front

    front = pareto_front(
        options.synthesize, options.topology, root=options.root, most_steps=options.steps
    )
    if options.json:
        bound = front.least_rounds_per_chunk
        answers.print_json(
            {
                "op": options.synthesize,
                "topology": options.topology,
                "least_steps": front.least_steps,
                "least_rounds_per_chunk": [bound.numerator, bound.denominator],
                "reason": front.reason,
                "complete": front.complete,
                "points": [_point(p) for p in front.points],
                "others": [_point(p) for p in front.others],
            }
        )
        return 0
    _print_front(options, front)
    return 0


def _print_front(options: argparse.Namespace, front: ParetoFront) -> None:
    from plancast.accuracy.report.fitted_table import FittedTable

    table = FittedTable(
        title=f"{options.synthesize} on {options.topology}: at least {front.least_steps} steps and "
        f"{front.least_rounds_per_chunk} rounds per chunk ({front.reason})",
    )
    table.numbers("steps", "rounds", "chunks", "rounds per chunk")
    table.numbers("conflicts", leaves=1)
    table.words("answer")
    rows = front.points + front.others
    for p in sorted(rows, key=lambda p: (p.steps, p.rounds / p.chunks)):
        proof = f" (by {p.proof})" if p.proof else ""
        numbers = (p.steps, p.rounds, p.chunks, f"{p.rounds / p.chunks:.4g}", f"{p.conflicts:,}")
        table.row(*(str(n) for n in numbers), p.answer + proof)
    answers.print_rich(table)
    if not front.complete:
        print("The bound was not met; more steps (--steps) may need fewer rounds.")


def _point(found: SynthesizedAlgorithm) -> dict[str, Any]:
    return {
        "steps": found.steps,
        "rounds": found.rounds,
        "chunks": found.chunks,
        "answer": found.answer,
        "proof": found.proof,
        "conflicts": found.conflicts,
        "rounds_of_steps": found.rounds_of_steps,
    }


def _facts(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "name": algorithm.name,
        "op": algorithm.op,
        "gpus": algorithm.gpus,
        "channels": algorithm.channels,
        "chunks_per_loop": algorithm.chunks,
        "steps_by_type": algorithm.count_steps(),
        "chunks_sent_by_gpu": algorithm.count_sends(),
    }


def _write(options: argparse.Namespace, algorithm: Algorithm, facts: dict[str, Any]) -> None:
    from plancast import files

    text = algorithm.to_msccl()
    if options.out is not None:
        files.write_text(options.out, text)
    if options.json:
        answers.print_json(
            {**facts, "file": options.out} if options.out else {**facts, "xml": text}
        )
    elif options.out is not None:
        print(
            f"{options.out}: {algorithm.op} of {algorithm.gpus} GPUs, {algorithm.chunks} chunks, "
            f"{sum(algorithm.count_steps().values())} steps"
        )
    else:
        print(text, end="")
