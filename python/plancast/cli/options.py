"""Options that several subcommands share, and what they stand for."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING

from plancast import arguments
from plancast.cli import answers, sizes
from plancast.cli.adapter_options import adapted
from plancast.cli.launch_options import Default, add_from, open_strategy, settings
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.precision import Types
    from plancast.session import Session
    from plancast.strategy import Strategy

_LARGEST = 1_000_000_000
_MOST_THREADS = 1024


def positive(text: str) -> int:
    """A positive whole number of a sensible size."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number") from None
    if not 1 <= number <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {_LARGEST:,}")
    return number


def byte_count(text: str) -> int:
    """A size such as 4096, 64K or 16M, for argparse."""
    match = re.fullmatch(r"(\d{1,15})([KMG]?)(i?B)?", text, re.IGNORECASE)
    size = int(match[1]) << 10 * " KMG".index(match[2].upper() or " ") if match else 0
    if not 1 <= size <= 1 << 50:
        raise argparse.ArgumentTypeError(f"`{text}` is no size; write 4096, 64K, 16M or 1G")
    return size


def threads(text: str) -> int:
    """A number of threads that a machine can run."""
    number = positive(text)
    if number > _MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {_MOST_THREADS:,}")
    return number


def dtype(text: str) -> str:
    """A name of a matmul precision."""
    try:
        name = arguments.dtype(text)
        return text if isinstance(text, Default) else name
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from None


def add_model(
    parser: argparse.ArgumentParser, *, required: bool = True, profile: str = "megatron-core"
) -> None:
    """-m, --seq, --documents, --mtp, --image, --dtype, --profile."""
    parser.add_argument(
        "-m",
        "--model",
        required=required,
        metavar="MODEL",
        help="a preset (llama3-70b, resnet50, ...), a config.json, YAML, .pt2 or .onnx file",
    )
    parser.add_argument(
        "--seq",
        type=sizes.seq,
        metavar="TOKENS",
        help="sequence length, such as 8192 or 128k; default: the model's",
    )
    parser.add_argument(
        "--documents",
        metavar="LENGTHS",
        help="documents that sequences are packed from, with a causal mask each: `2K`, "
        "`lognormal:2K:1.2`, a file of lengths",
    )
    parser.add_argument(
        "--mtp",
        type=int,
        metavar="N",
        help="modules of multi-token prediction that are trained, too (DeepSeek-V3 has 1); "
        "default: the model's",
    )
    parser.add_argument(
        "--image", type=positive, metavar="PIXELS", help="image size; default: the model's"
    )
    parser.add_argument(
        "--dtype",
        type=dtype,
        default=Default("bf16"),
        metavar="TYPE",
        help=f"matmul precision: {', '.join(arguments.DTYPES)} (default bf16)",
    )
    parser.add_argument(
        "--profile",
        default=Default(profile),
        metavar="NAME",
        help="software profile: how the framework runs, with kernels of other libraries as in "
        f"deepspeed+liger+flash-attention-3 (default {profile})",
    )


def add_cuda_graphs(parser: argparse.ArgumentParser) -> None:
    """--cuda-graphs."""
    parser.add_argument(
        "--cuda-graphs",
        nargs="?",
        const=True,
        default=False,
        metavar="PARTS",
        help="launch captured CUDA graphs, whatever the profile does: of whole passes, or of "
        "these parts of layers (attn+moe_router+moe_preprocess)",
    )


def add_types(parser: argparse.ArgumentParser) -> None:
    """--grad-dtype and the other types, --master, --optimizer-type."""
    group = parser.add_argument_group(
        "types of what is stored and sent",
        "in place of the profile's: fp32, bf16, fp16, fp8, fp8-row, fp8-block, mxfp8, nvfp4, "
        "int16, int8, int4",
    )
    for option, what in (
        ("grad-dtype", "gradients as they are accumulated"),
        ("main-grad-dtype", "gradients as the optimizer reads them"),
        ("reduce-dtype", "gradients on the wire"),
        ("param-dtype", "parameters at rest"),
        ("gather-dtype", "parameters on the wire"),
        ("state-dtype", "the optimizer's moments; FIRST+SECOND for two types"),
        ("attention-dtype", "fused attention: fp8 or mxfp8; otherwise 16 bits"),
        ("master", "the optimizer's own copy of the parameters: on, off or a type"),
    ):
        group.add_argument(f"--{option}", metavar="TYPE", help=what)
    group.add_argument(
        "--optimizer-type",
        "--optimizer",
        metavar="NAME",
        help="what updates weights, with its state: adam, sgd, sgd-momentum, adagrad, rmsprop, "
        "lion, lamb, muon (default: the profile's, adam)",
    )


def types_of(options: argparse.Namespace) -> Types:
    """What add_types reads."""
    return {
        "grad_dtype": options.grad_dtype,
        "main_grad_dtype": options.main_grad_dtype,
        "reduce_dtype": options.reduce_dtype,
        "param_dtype": options.param_dtype,
        "gather_dtype": options.gather_dtype,
        "optimizer_type": options.optimizer_type,
        "state_dtype": options.state_dtype,
        "attention_dtype": options.attention_dtype,
        "master": options.master,
    }


def add_machine(
    parser: argparse.ArgumentParser, *, several: bool = False, required: bool = True
) -> None:
    """-c (--machine), --nodes, --fabric."""
    parser.add_argument(
        "-c",
        "--machine",
        "--cluster",
        dest="cluster",
        required=required,
        action="append" if several else "store",
        metavar="MACHINE",
        help="PRESET:HOSTS, PRESET:HOSTSxGPUS, a YAML file or an NCCL topology, TOPO.xml:HOSTS"
        + ("; may be given several times" if several else ""),
    )
    parser.add_argument(
        "--nodes", type=positive, metavar="N", help="hosts of an NCCL topology (default 1)"
    )
    parser.add_argument(
        "--fabric", metavar="NAME", help="network of an NCCL topology: infiniband, roce, ..."
    )


def add_strategy(
    parser: argparse.ArgumentParser,
    *,
    several: bool = False,
    required: bool = True,
    absent: str = "",
) -> None:
    """-s; `absent` is what holds without one."""
    parser.add_argument(
        "-s",
        "--strategy",
        required=required,
        action="append" if several else "store",
        metavar="STRATEGY",
        help="tp=8,pp=4,mb=1,..., a YAML file with a tree, a framework's argument file, or `recipe`"
        + ("; may be given several times" if several else "")
        + absent,
    )
    add_from(parser)


def add_fidelity(parser: argparse.ArgumentParser) -> None:
    """--fidelity."""
    parser.add_argument(
        "--fidelity",
        choices=arguments.FIDELITIES,
        default="closed",
        help="of collectives: closed forms (default), or chunk by chunk over the links",
    )


def add_batch(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """--batch."""
    parser.add_argument(
        "--batch",
        type=sizes.batch,
        required=required,
        metavar="SAMPLES",
        help="global batch, samples a step, or tokens: 4Mtok"
        + ("" if required else "; default: dp * mb * accum"),
    )


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """What forecasts go by: --records, --library, --learned, --no-prior."""
    parser.add_argument(
        "--records",
        metavar="STORE",
        help="go by the measured kernels of this store (plancast records, plancast profile)",
    )
    parser.add_argument(
        "--library",
        metavar="NAME[:VERSION]",
        help="of the records, those of this library, such as torch or torch:2.5.1",
    )
    parser.add_argument(
        "--learned",
        metavar="FILE",
        help="also go by what runs of your own told (plancast learn)",
    )
    parser.add_argument(
        "--no-prior",
        action="store_true",
        help="what is simulated, without what measured runs of the software take beyond it",
    )


def load_session(options: argparse.Namespace) -> Session:
    """A session that goes by what --records, --library, --learned and --no-prior say."""
    from plancast.session import Session

    learned = None
    if options.learned is not None:
        from plancast.learned import Learned

        learned = Learned.read(options.learned)
    records = None
    if options.records is not None:
        from plancast.records import Records

        library, _, version = (options.library or "").partition(":")
        records = Records(options.records, create=False).only(library=library, version=version)
    elif options.library is not None:
        raise InputError("--library chooses among measured kernels; give --records, too.")
    return Session(records=records, prior=not options.no_prior, learned=learned)


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_astra(parser: argparse._ActionsContainer) -> None:
    """What a run in ASTRA-sim's mode takes: --network, --system, --backend, --queues-per-dim."""
    parser.add_argument("--network", metavar="NET.yml", help="ASTRA-sim's network file")
    parser.add_argument("--system", metavar="SYS.json", help="ASTRA-sim's system file")
    parser.add_argument(
        "--backend",
        choices=("unaware", "aware"),
        default="unaware",
        help="of ASTRA-sim: without congestion, or with (default unaware)",
    )
    parser.add_argument(
        "--queues-per-dim",
        type=positive,
        default=1,
        metavar="N",
        help="of ASTRA-sim: num-queues-per-dim (default 1)",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """--report."""
    parser.add_argument("--report", metavar="FILE.html", help="write the answer as one HTML page")


def load_model(options: argparse.Namespace) -> Model:
    """The model that -m, --seq, --image and, where a command has them, --documents, --mtp name."""
    from plancast.model import Model

    model = Model.open(options.model, seq=options.seq, image=options.image)
    documents = getattr(options, "documents", None)
    if documents is not None:
        model = model.with_documents(documents)
    ahead = getattr(options, "mtp", None)
    if ahead is not None:
        model = model.with_mtp(ahead)
    if model.import_report is not None:
        for warning in model.import_report.warnings():
            print(f"plancast: warning: {warning}", file=sys.stderr)
    _settle_batch(options, model)
    if model.name != options.model and "/" in options.model and not os.path.exists(options.model):
        length = f", {model.seq:,} tokens a sequence" if model.seq > 0 else ""
        answers.remark(options, f"note: `{options.model}` has the sizes of `{model.name}`{length}")
    return model


def _settle_batch(options: argparse.Namespace, model: Model) -> None:
    """Makes --batch samples where it was given in tokens."""
    said = getattr(options, "batch_said", getattr(options, "batch", None))
    if said is None:
        return
    options.batch_said = said
    options.batch, text = sizes.samples(said, model)
    if text:
        answers.remark(options, f"note: {text}")


def load_machine(text: str, options: argparse.Namespace) -> Machine:
    """The machine that one -c names, with --nodes and --fabric."""
    from plancast.machine import Machine

    return Machine.open(text, hosts=options.nodes, fabric=options.fabric)


def load_plan(options: argparse.Namespace) -> tuple[Model, Machine, Strategy]:
    """What -m, -c and -s name.

    An argument file behind -s also sets the options that were not given.
    """
    machine = load_machine(options.cluster, options)
    model = load_model(options)
    strategy = open_strategy(options.strategy, options, machine, model)
    launch = strategy.launch
    if launch is not None:
        for name, value in settings(options, launch).items():
            setattr(options, name, value)
        if options.seq is None and launch.seq not in (None, model.seq) and model.seq > 0:
            options.seq = launch.seq
            model = load_model(options)
        from plancast.frameworks.megatron_model import multi_token

        ahead = multi_token(launch.model)
        if ahead and options.mtp is None and ahead != multi_token(model):
            options.mtp = ahead
            model = load_model(options)
    return model, machine, adapted(strategy, options)
