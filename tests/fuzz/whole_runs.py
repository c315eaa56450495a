"""Options of the commands about whole runs, `train`, `size`, `spot`, and of `gradients`."""

from __future__ import annotations

Values = dict[str, tuple[str, ...]]
Command = tuple[tuple[str, ...], tuple[str, ...], Values]

_TOKENS = ("1M", "100M", "1B", "1.5K", "0", "-1", "1e30", "1T", "x")
_TIMES = ("0s", "2min", "1h", "-1s", "1e30s", "x")
_PRICES = ("2.5", "spot", "reserved", "on-demand", "0", "-1", "nan", "x")
_SAVES = (
    "async", "blocking,every=10min", "host", "unsharded,store=1TB/s", "every=1s", "store=0B/s", "x",
)  # fmt: skip
_AMOUNTS = {"--tokens": _TOKENS, "--samples": _TOKENS, "--checkpoints": _SAVES, "--price": _PRICES}


def commands(
    model: Values,
    machine: Values,
    plan: Values,
    common: Values,
    count: tuple[str, ...],
    numbers: tuple[str, ...],
) -> dict[str, Command]:
    """By name: words that come first, options that are always there, and the others."""
    run = _AMOUNTS | {
        "--failures": ("llama3", "none", "gpu=1h", "rsc-1,spares=1,repair=1h", "host=1s", "x"),
        "--pue": numbers, "--watts": numbers,
    }  # fmt: skip
    train = {
        "--ramp": ("1:1:1M", "2:2:10M", "1:1", "0:0:0", "x"), "--seed": count,
        "--days": _TIMES,
        "--phase": ("tokens=1M", "tokens=1M batch=2", "seq=64", "strategy=best", "x", "seq=0"),
        "--evaluate": ("10:1min", "0:0", "x", "1000000000:1d"), "--simulate": count,
        "--slow-hosts": ("host=100h", "host=0h", "host=1h,keep,lasts=1d,speed=50%", "x"),
        "--require-fit": ("",), "--cuda-graphs": ("",),
    }  # fmt: skip
    size = {
        "-c": ("dgx-h100", "machine.yaml", "l40s-pcie", "dgx-h100:2", "x", "topo.xml"),
        "--days": ("30", "1h", "0", "1e9", "x"), "--budget": ("3M", "1", "$2B", "x"),
        "--confidence": numbers, "--most-gpus": ("8", "16", "1", "0"), "--no-curve": ("",),
    }  # fmt: skip
    spot = {
        "--availability": ("hosts.csv", "hosts.csv", "gemm.csv", "nowhere.csv"),
        "--notice": _TIMES, "--restart": _TIMES, "--dedicated-price": _PRICES,
    }  # fmt: skip
    size_of = ("0", "1MiB", "25MB", "1", "-1", "9e9", "x", "1TB")
    gradients = {
        "-s": ("mb=1", "mb=2,accum=2", "mb=1,dp=8", "tp=2", "zero=1", "bucket=1MB", "mb=x", ","),
        "--scheme": ("ddp", "tensors", "bytescheduler", "x"), "--against": ("tensors", "x"),
        "--bucket": size_of, "--first-bucket": size_of, "--partition": size_of,
        "--credit": (*size_of, "one", "each"), "--spread": size_of, "--half-bytes": size_of,
        "--order": ("made", "priority", "x"), "--wait": ("all", "own", "x"),
        "--sync": ("last", "each", "x"), "--servers": ("1", "2", "0", "100000"),
        "--no-host-sums": ("",), "--call-us": numbers, "--bus-gb-per-s": numbers,
        "--tune": ("bucket", "bucket,partition,credit", "x", ""), "--svg": ("out.svg", ".", ""),
    }  # fmt: skip
    amount = ("-m", "-c", "--tokens")
    return {
        "gradients": ((), ("-m", "-c"), model | machine | common | gradients),
        "train": ((), (*amount, "--failures"), model | machine | plan | common | run | train),
        "size": ((), (*amount, "--days"), model | common | run | size),
        "spot": ((), (*amount, "--availability"), model | machine | common | _AMOUNTS | spot),
    }
