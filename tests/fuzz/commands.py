"""Command lines with options that others never put together, and files that were changed."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import os
import random
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

from plancast.cli.main import main

from tests.fuzz import learned_runs, mutate, named, seeds, whole_runs

# What an option takes: words, some of them files of seeds.py; "" is a flag.
_COUNT = ("2", "4", "8", "32", "1", "16", "1024", "0", "-1", "1000000000", "99999999999999999999")
_MODELS = ("small.yaml", "small.yaml", "config.json", "block.pt2", "gpt2", "t5-small", "resnet18")
_MACHINES = (
    "machine.yaml",
    "machine.yaml",
    "topo.xml",
    "topo.xml:2",
    "dgx-h100:1x2",
    "l40s-pcie:1",
)
_PLANS = (
    "tree.yaml", "mb=1", "tp=2,sp,mb=1", "recipe", "zero=3,mb=2", "recompute=full,zero=1",
    "tp=2,mb=1,attn=unfused", "pp=2,vpp=2,mb=1,schedule=1f1b", "llama3_8b.toml", "ds_zero3.json",
    "accelerate_fsdp2.yaml", "mpt_7b.yaml", "mixtral_8x7b.sh", "mb=1000000", "ep=2", "dp=3", "",
)  # fmt: skip
_DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp8-row", "fp8-block", "mxfp8", "nvfp4", "int3")
_PROFILES = (
    "megatron-core", "torchtitan", "fsdp", "deepspeed", "ddp", "eager", "composer", "megatron-2021",
    "none",
)  # fmt: skip
_TYPES = ("fp32", "bf16", "fp8", "int8", "on", "off", "fp32+bf16", "x")
_BYTES = (
    "1",
    "1K",
    "64M",
    "1G",
    "0",
    "-1",
    "999999999999999G",
    "1.5M",
    "1K..1M",
    "1K..1M*4",
    "1..0",
)
_NUMBERS = ("0", "1", "0.5", "-1", "nan", "inf", "1e308", "1e-308", "x")
_OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather")
_ALGOS = ("ring", "tree", "direct", "halving_doubling", "hierarchical", "nvls", "pat", "x")
_FRAMEWORKS = ("torchtitan", "fsdp", "composer", "deepspeed", "megatron-core", "x")
_WHAT_IF = (
    "nic=2x", "nic=free", "op:attn=free", "kernel:gemm=2x", "straggler:0=0.5", "batch=4", "x=1x",
    "nic=0x", "nic=1e308x", "nic=1e-308x",
)  # fmt: skip

_MODEL = {
    "-m": _MODELS, "--seq": _COUNT, "--image": _COUNT, "--dtype": _DTYPES, "--profile": _PROFILES,
}  # fmt: skip
_MACHINE = {"-c": _MACHINES, "--nodes": _COUNT, "--fabric": ("infiniband", "roce", "x")}
_STORED = {
    f"--{name}": _TYPES
    for name in (
        "grad-dtype", "main-grad-dtype", "reduce-dtype", "param-dtype", "gather-dtype",
        "state-dtype", "attention-dtype", "master",
    )
} | {"--optimizer-type": ("adam", "sgd", "lion", "lamb", "muon", "at-end", "x")}  # fmt: skip
_JOB = {"--batch": _COUNT, "--records": ("kernels.db",), "--library": ("torch", "torch:2.5", "x")}
_PLAN = {"-s": _PLANS, "--from": _FRAMEWORKS}
_OUT = ("out.txt", "out.csv", "out.json.gz", "out.html", "nowhere/out.txt", "/dev/full", ".", "")
_REPORT = {"--report": _OUT, "--json": ("",)} | learned_runs.OPTIONS

_ALGORITHM = {"--bytes": _BYTES, "--alpha": _NUMBERS, "--trace": _OUT, "--json": ("",)}
# Of some models and machines only.
_RARE = ("--image", "--nodes", "--fabric", "--library", "--from", "--seq")

# By command: words that come first, options that are always there, and the others.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "predict": (
        (),
        ("-m", "-c", "-s"),
        _MODEL | _MACHINE | _PLAN | _JOB | _STORED | _REPORT
        | {
            "--trace": _OUT, "--memory-timeline": ("",), "--memory-svg": _OUT,
            "--require-fit": ("",), "--no-shortcuts": ("",), "--what-if": _WHAT_IF,
            "--fidelity": ("closed", "chunks", "chunks", "x"),
            "--sensitivities": ("",), "--jitter": _NUMBERS, "--stragglers": ("1%:0.9", "2:0", "x"),
            "--samples": ("1", "3", "0"), "--seed": _COUNT, "--workers": ("1", "2", "2", "0"),
            "--cuda-graphs": ("",),
        },
    ),
    "rank": (
        (),
        ("-m", "-c", "--batch", "--space"),
        _MODEL | _MACHINE | _JOB | _STORED | _REPORT | named.FRAMEWORK
        | {
            "--space": ("tp=1|2,pp=1..2,mb=1", "dp=*,mb=1", "tp=1..99", "tp=x", "", "mb=*,tp=1"),
            "--objective": ("time", "cost", "energy", "goodput"), "--top": _COUNT, "--out": _OUT,
            "--workers": ("1", "2", "2", "0"),
        },
    ),
    "plan": (
        (),
        ("-m", "-c", "--batch"),
        _MODEL | _MACHINE | named.QUESTION | named.RUN
        | {
            "--batch": ("8", "16", "32", "3", "0", "99999999999999999999", "64ktok", "4k"),
            "--method": (
                "intra-op", "inter-op", "bisection", "auto-config", "local-search", "grid", "x",
            ),
            "--mesh": ("2", "1x2", "2x1", "2x4", "3x0", "x"), "--zero": ("0", "1", "3", "7", "x"),
            "--accum": ("1", "2", "4", "0", "1000000000"), "--sizes": ("1,2", "1", "0", "a"),
            "--samples": ("4", "2,8", "3", "x"), "--recompute": ("full", "none", "selective", "x"),
            "--start": ("mb=1", "tree.yaml", "tp=2,sp,mb=1", "dp=3", "x"),
            "--space": ("tp=1|2,pp=1..2,mb=1", "tp=x"), "--forecasts": ("2", "8", "0"),
            "--seed": ("0", "7", "-1", "x"),
            "--out": ("out.yaml", "nowhere/out.yaml", "out.txt", "/dev/full", ""), "--json": ("",),
        },
    ),
    "compare": ((), ("-m", "-c", "-s"), _MODEL | _MACHINE | _PLAN | _JOB | _STORED | _REPORT),
    **whole_runs.commands(_MODEL, _MACHINE, _PLAN, _JOB | _STORED | _REPORT, _COUNT, _NUMBERS),
    **(learned_runs.COMMANDS | named.COMMANDS),
    "validate": (
        ("truth.csv",),
        (),
        {
            "--machines": ("gemm.csv",), "--workers": ("1", "2", "2", "0"), "--report": _OUT,
            "--template": ("template.md",), "--uncalibrated": ("",), "--date": ("2026-01-01", "x"),
            "--what-if": ("sharing=free", "nic=0x"),
            "--records": ("kernels.db",), "--library": ("torch",), "--json": ("",),
        },
    ),
    "calibrate": (
        (),
        ("--kernels", "-o"),
        {
            "--kernels": ("measured/kernels",), "--collectives": ("measured",), "-o": ("out",),
            "--evaluate": ("",), "--report": _OUT, "--seed": _COUNT, "--workers": ("1", "2", "0"),
            "--date": ("2026-01-01", "x"), "--json": ("",),
        },
    ),
    "compile": (
        (),
        ("-m", "-c", "-s"),
        _MODEL | _MACHINE | _PLAN | _STORED
        | {
            "--batch": _COUNT, "--json": ("",),
            "--dump-after": ("bind", "differentiate", "partition", "relayout", "lower", "x"),
        },
    ),
    "collective": (
        (),
        ("-c",),
        _MACHINE
        | {
            "--op": (*_OPS, "x"), "--gpus": _COUNT, "--bytes": _BYTES, "--algo": _ALGOS,
            "--proto": ("LL", "LL128", "Simple", "x"), "--nccl-version": ("2.17", "2.27", "9"),
            "--fidelity": ("closed", "chunks"), "--dtype": ("float", "half", "x"),
            "--launch": _NUMBERS, "--against": ("log.txt",), "--plot": _OUT, "--json": ("",),
        },
    ),
    "run: algorithm": (
        ("ring.xml",),
        ("--bytes", "--topology"),
        _ALGORITHM
        | {
            "--topology": ("ring:4", "full:4", "dgx1", "topo.xml", "ring:99"),
            "--link": _NUMBERS, "-c": _MACHINES,
        },
    ),
    "run: algorithm on a machine": (("ring.xml",), ("--bytes", "-c"), _ALGORITHM | _MACHINE),
    "run: trace": (
        ("trace",),
        ("-c",),
        _MACHINE | {"--comm-groups": ("groups.json",), "--trace": _OUT, "--json": ("",)},
    ),
    "run: as ASTRA-sim": (
        ("trace",),
        ("--network", "--system"),
        {
            "--network": ("network.yml",), "--system": ("system.json",), "--json": ("",),
            "--comm-groups": ("groups.json",), "--backend": ("unaware", "aware"),
            "--queues-per-dim": ("1", "2", "1000000000"),
        },
    ),
    "profile": (
        (),
        ("--replay", "-o"),
        _MODEL | _MACHINE | _PLAN
        | {
            "--replay": ("run.json",), "-o": ("new.db", "kernels.db"), "--batch": _COUNT,
            "--gpu": ("X",), "--csv": ("tables",), "--again": ("",), "--dry-run": ("",),
            "--json": ("",),
        },
    ),
    "records ingest": (
        ("gemm.csv", "attention.csv"),
        ("-o",),
        {"-o": ("new.db", "kernels.db"), "--date": ("2026-01-01", "x"), "--json": ("",)},
    ),
    "records show": (("kernels.db",), (), {"--json": ("",)}),
    "import launch": (
        ("mixtral_8x7b.sh",),
        (),
        {"--from": _FRAMEWORKS, "--gpus": _COUNT, "-m": _MODELS, "--json": ("",)},
    ),
    "import nccl": (
        ("topo.xml",),
        (),
        {
            "--nodes": ("1", "2", "0", "1000000"), "--version": ("2.17", "2.27", "2.30", "x"),
            "--collnet": ("",), "--export": _OUT, "--graph-export": _OUT, "--machine": _OUT,
            "--fabric": ("infiniband", "x"), "--json": ("",), "--sm": _COUNT, "--nvlinks": _COUNT,
            "--net-gbit": _NUMBERS, "--no-gdr": ("",),
        },
    ),
    "import trace": (("nccl.json",), (), {"-o": _OUT, "--json": ("",)}),
    "import astra": (("cases.csv",), (), {"--only": ("a", "zzz"), "--json": ("",)}),
    "export chakra: plan": (
        (),
        ("-o", "-m", "-c", "-s"),
        _MODEL | _MACHINE | _PLAN | {"-o": ("out",), "--batch": _COUNT, "--json": ("",)},
    ),
    "export chakra: collective": (
        (),
        ("-o", "--collective", "--bytes", "--ranks"),
        {
            "-o": ("out",), "--collective": (*_OPS[:4], "x"), "--bytes": _BYTES, "--ranks": _COUNT,
            "--json": ("",),
        },
    ),
    "export flows": (
        (),
        ("--op", "--bytes"),
        {
            "--op": (*_OPS, "x"), "--bytes": _BYTES, "--algo": _ALGOS, "-o": _OUT, "-c": _MACHINES,
            "--gpus": ("2", "8", "8x4", "1024", "65536", "0", "99999999999", "x"), "--root": _COUNT,
            "--topology": ("topo.xml",), "--nodes": ("1", "2", "100000"),
            "--version": ("2.30", "x"), "--channels": ("1", "2", "64", "1000000000"),
            "--json": ("",),
        },
    ),
    "export msccl: known": (
        (),
        ("--op", "--gpus"),
        {
            "--op": (*_OPS, "x"), "--algo": _ALGOS, "-o": _OUT, "--from": ("ring.xml",),
            "--gpus": ("2", "8", "8x4", "4", "1024", "65536", "0", "99999999999", "x"),
            "--channels": ("1", "2", "4", "64", "1000000000"), "--json": ("",), "--root": _COUNT,
            "--protocol": ("Simple", "LL", "LL128", "x"),
        },
    ),
    "export msccl: read": ((), ("--from",), {"--from": ("ring.xml",), "--json": ("",), "-o": _OUT}),
    "export msccl: search": (
        (),
        ("--synthesize", "--topology", "--steps", "--rounds", "--chunks"),
        {
            "--synthesize": _OPS, "--topology": ("ring:4", "full:3", "topo.xml", "full:16"),
            "--steps": ("1", "2", "3", "32", "99"), "--rounds": ("1", "2", "4", "3", "256"),
            "--chunks": ("1", "2", "3", "64"), "--pareto": ("",), "-o": _OUT, "--root": _COUNT,
            "--json": ("",),
        },
    ),
    "export launch": (
        _FRAMEWORKS[:1],
        ("-m", "-c", "-s"),
        _MODEL | _MACHINE | _PLAN | _STORED | {"--batch": _COUNT, "-o": _OUT, "--json": ("",)},
    ),
}  # fmt: skip
_NASTY = (
    "", "-", "--", "0", "-1", "x" * 300, "\x1b[31m", "a/b", "*", "2147483648", "9" * 30, "1e999",
    "é", "..", "/dev/zero", "/dev/null", "pipe", "folder", "missing.yaml", "=", ":", ",", "{}",
    "[1]",
)  # fmt: skip
# Figures that cannot be negative.
_SIZES = re.compile(r"(^|_)(s|us|ns|bytes|seconds|time|memory|mfu|flops|gib)$")
_SIGNED = re.compile(r"error|change|saved|delta|difference|gain|more|start|offset|expected")


@functools.cache
def _names() -> frozenset[str]:
    words = {word for first, _, _ in COMMANDS.values() for word in first}
    for _, _, options in COMMANDS.values():
        words |= {word for values in options.values() for word in values}
    return frozenset(words)


@functools.cache
def _fresh(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    seeds.write(folder)
    return folder


def line(rng: random.Random, command: str) -> list[str]:
    """A command line: of options that are always there, and of some of the others."""
    first, needed, options = COMMANDS[command]
    words = command.partition(":")[0].split()
    arguments: list[str] = []
    if first:
        arguments.append(rng.choice(first))
    share = rng.choice((0.02, 0.05, 0.2))
    for option, values in options.items():
        if option in needed and rng.random() < 0.02:
            continue
        rare = option in _RARE or (option == "-c" and "--topology" in needed)
        if option not in needed and rng.random() > share * (0.1 if rare else 1):
            continue
        # Mostly what makes sense, so that what lies behind is reached.
        sensible = values[: (len(values) + 1) // 2]
        value = rng.choice(sensible if rng.random() < 0.93 else values)
        if rng.random() < 0.015:
            value = rng.choice(_NASTY)
        arguments += [option] if values == ("",) else [option, value]
        if command == "compare" and option == "-s":
            arguments += [option, rng.choice(values[:6])]
    return words + arguments


def change_files(rng: random.Random, arguments: list[str], folder: Path) -> None:
    """Changes one of the files that a command line names."""
    named = [word.partition(":")[0] for word in arguments]
    found = [name for name in named if name in _names() and (folder / name).is_file()]
    if arguments[1:2] == ["trace"]:
        found += [f"trace.{rng.randrange(4)}.et"]
    for name in named:
        if name in _names() and (folder / name).is_dir():
            inside = (path for path in (folder / name).rglob("*") if path.is_file())
            found += sorted(str(path.relative_to(folder)) for path in inside)
    if found:
        path = folder / rng.choice(found)
        path.write_bytes(mutate.contents(rng, path.read_bytes(), path.suffix))


def attempt(rng: random.Random, command: str, folder: Path) -> bool:
    """Runs one command line in a folder of seeds; whether it was not refused.

    Raises AssertionError for an answer that no command may give, and what the command raises.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_fresh(folder.with_name("seeds")), folder)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    arguments = line(rng, command)
    if rng.random() < 0.5:
        change_files(rng, arguments, folder)
    (folder / "line.json").write_text(json.dumps(arguments))
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            code = main(arguments)
    except SystemExit as end:  # --help
        code = int(end.code or 0)
    finally:
        os.chdir(before)
    check(code, out.getvalue(), err.getvalue(), json_asked="--json" in arguments)
    return code == 0


def check(code: int, out: str, err: str, *, json_asked: bool) -> None:
    """That an answer is one that a command may give."""
    assert code in (0, 2, 3), f"exit code {code}: {err[-2000:]}"
    assert "defect of plancast" not in err, err[-2000:]
    assert "more memory than there is" not in err, err[-2000:]
    assert "Traceback" not in err, err[-2000:]
    if code == 2:
        said = [words for words in err.splitlines() if words.startswith("plancast: ")]
        assert said and len(said[-1]) > len("plancast: x"), f"a refusal without words: {err!r}"
    if code == 0 and json_asked and out.lstrip()[:1] in ("{", "["):
        figures(json.loads(out))


def figures(value: Any, key: str = "") -> None:
    """That every figure is finite, and none that is a size or a time is negative."""
    if isinstance(value, dict):
        for name, inner in value.items():
            figures(inner, str(name) if not _SIGNED.search(key) else key)
    elif isinstance(value, list):
        for inner in value:
            figures(inner, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        assert math.isfinite(value), f"{key} is {value}"
        if _SIZES.search(key) and not _SIGNED.search(key):
            assert value >= 0, f"{key} is {value}"
