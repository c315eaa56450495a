"""Fits the coefficients of the kernel cost models to measured kernels.

`plancast calibrate --kernels DIR -o OUT` reads DIR/gemm.csv, attention.csv and
elementwise.csv with GPU figures from hardware.csv (in DIR or beside it) and
writes one text proto a GPU and generic.textproto, as in cost_models/data.
Deterministic: the same input gives the same files.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from .calibration import attention, convolution, gemm, memory, plan
from .calibration.fit import Statistics
from .calibration.rows import ALIASES, Gpu, Rows, read_gpus, read_rows
from .calibration.textproto import Message, file_name, format_file

COMMAND = "plancast calibrate --kernels DIR -o OUT"
# Where a GPU has rows of one source only, the disagreement between sources
# seen on other GPUs stands in.
DEFAULT_FACTOR_SIGMA = 0.07
# A fit worse than this on large shapes tells less than the medians do.
WORST_FIT = 0.25
# An isolated kernel under CUDA graphs: median of the graph-timed tables.
GRAPH_FLOOR_S = 2.2e-6


def _gpu_message(gpu: Gpu) -> Message:
    return {
        "gpu": gpu.name,
        "sms": int(gpu.sms),
        "boost_mhz": gpu.boost_mhz,
        "vendor": gpu.vendor,
        "speed_grade": gpu.speed_grade,
        "fp32_speed_grade": gpu.fp32_speed_grade,
    }


def _fit_message(
    data: str, date: str, stats: Statistics, factor_sigma: float, note: str = ""
) -> Message:
    return {
        "data": data,
        "rows": stats["rows"],
        "command": COMMAND,
        "date": date,
        "held_out_error": stats["held_out_error"],
        "held_out_error_large": stats.get("held_out_error_large"),
        "factor_sigma": factor_sigma,
        "sigma": stats["sigma"],
        "note": note or None,
    }


def calibrate_gemm(
    job: tuple[plan.Selection, list[tuple[str, str, Rows]], str],
) -> tuple[str, Message]:
    """(GPU, message) of one GPU and type."""
    selection, others, date = job
    coefficients, stats = gemm.fit_gemm(
        selection.rows, selection.gpu, selection.peak, selection.dtype
    )
    eager = selection.rows["timing"][0].startswith("event_eager")
    if eager:  # the fitted floor is the host's launch
        coefficients["floor_s"] = GRAPH_FLOOR_S
    ratios, factors = [], {}
    for source, layout, rows in others:
        ratio = gemm.median_ratio(
            rows, selection.gpu, selection.peak, selection.dtype, coefficients
        )
        if not np.isfinite(ratio):
            continue
        if source == "simumax":  # timed inside a training stack
            name = {"TN": "forward", "NN": "dgrad", "NT+accum": "wgrad"}[layout]
            factors[f"{name}_factor"] = ratio
            # Taken over, yet one node's word against another's.
            ratio = np.sqrt(ratio)
        ratios.append(np.log(ratio))
    factor_sigma = float(np.sqrt(np.mean(np.square(ratios)))) if ratios else DEFAULT_FACTOR_SIGMA
    note = "pass factors from simumax (Transformer Engine)" if factors else ""
    if eager:
        note = "eager timings; floor_s from other GPUs"
    return selection.gpu.name, {
        "dtype": selection.dtype,
        "peak_flops": selection.peak,
        "tile": [{"m": m, "n": n} for m, n in gemm.TILES],
        "split_k": list(gemm.SPLITS),
        **coefficients,
        **factors,
        "fit": _fit_message(selection.data, date, stats, max(factor_sigma, 0.03), note),
    }


def calibrate_attention(selections: list[plan.Selection], date: str) -> dict[str, Message]:
    """Messages by GPU. What one GPU's rows cannot tell is the others' median."""
    forward = {}
    for s in selections:
        rows = s.rows[s.rows["phase"] != "train_bwd"]
        fitted = attention.fit_forward(rows, s.gpu, s.peak, s.dtype)
        forward[s.gpu.name] = (rows, *fitted)
    told = {name: attention.told_by(rows) for name, (rows, _, _) in forward.items()}
    medians = {
        name: float(np.median([c[name] for gpu, (_, c, _) in forward.items() if name in told[gpu]]))
        for name in ("softmax_dim", "causal_loss")
    }
    messages: dict[str, Message] = {}
    factors = []
    for s in selections:
        rows, coefficients, stats = forward[s.gpu.name]
        note = ""
        known = {name: value for name, value in medians.items() if name not in told[s.gpu.name]}
        if known:
            coefficients, stats = attention.fit_forward(rows, s.gpu, s.peak, s.dtype, known)
            note = f"{' and '.join(known)}: medians of GPUs whose rows tell"
        message: Message = {
            "dtype": s.dtype,
            "peak_flops": s.peak,
            **coefficients,
            "fit": _fit_message(s.data, date, stats, DEFAULT_FACTOR_SIGMA, note),
        }
        backward = s.rows[s.rows["phase"] == "train_bwd"]
        if len(backward):
            more, stats = attention.fit_backward(backward, s.gpu, s.peak, s.dtype, coefficients)
            message.update(more)
            message["backward_fit"] = _fit_message(s.data, date, stats, DEFAULT_FACTOR_SIGMA)
            factors.append(more["backward_factor"])
        messages[s.gpu.name] = message
    for message in messages.values():
        if "backward_factor" not in message and factors:
            message["backward_factor"] = float(np.median(factors))
            message["backward_floor_s"] = 2 * message["floor_s"]
            message["backward_fit"] = {
                "factor_sigma": 0.15,
                "sigma": 0.1,
                "note": "no backward rows: the other GPUs' median per FLOP",
            }
    return messages


def calibrate_memory(
    rows: Rows, gpus: dict[str, Gpu], tables: dict[str, Message], date: str
) -> dict[str, Message]:
    """Messages by GPU. Where only quantisation was measured, which may be
    slower than the memory, a GEMM bound by memory may tell more: hence `tables`."""
    messages = {}
    for name in sorted(set(rows["gpu"]) - plan.LEFT_OUT):
        gpu = gpus[ALIASES.get(name, name)]
        fitted = memory.fit_memory(rows[rows["gpu"] == name], gpu)
        if fitted is None:
            continue
        fraction, stats = fitted
        data = "elementwise.csv, large kernels"
        for message in tables.get(gpu.name, {}).get("gemm", ()) if stats["quantize"] else ():
            if message["dtype"] == "bf16" and message["memory_fraction"] > fraction:
                fraction, data = message["memory_fraction"], message["fit"]["data"]
        messages[gpu.name] = {
            "memory_fraction": fraction,
            "floor_s": GRAPH_FLOOR_S,
            "fit": _fit_message(data, date, stats, 0.05),
        }
    return messages


def calibrate_convolution(
    selections: list[plan.Selection], tables: dict[str, Message], date: str
) -> dict[str, list[Message]]:
    """Messages by GPU, over the GEMM coefficients in `tables`."""
    fitted = []
    for s in selections:
        known = [g for g in tables.get(s.gpu.name, {}).get("gemm", ()) if g["dtype"] == s.dtype]
        if known:
            fitted.append(
                (s, *convolution.fit_convolution(s.rows, s.gpu, s.peak, s.dtype, known[0]))
            )
    messages: dict[str, list[Message]] = {}
    for s, factors, stats in fitted:
        others = [f for other, f, _ in fitted if other.dtype == s.dtype and f is not factors]
        whole, taken = convolution.complete(factors, others)
        note = f"taken over: {', '.join(taken)}" if taken else ""
        fit = _fit_message(s.data, date, stats, DEFAULT_FACTOR_SIGMA, note)
        messages.setdefault(s.gpu.name, []).append({"dtype": s.dtype, **whole, "fit": fit})
    return messages


def _spread(values: list[float]) -> float:
    """Relative error made by taking the median of the others."""
    if len(values) < 2:
        return 0.2
    errors = [np.log(np.median(values[:i] + values[i + 1 :]) / v) for i, v in enumerate(values)]
    return float(1.4826 * np.median(np.abs(errors)))


def generic(tables: dict[str, Message], date: str) -> Message:
    """What serves all GPUs: the roofline, and how far GPUs differ."""
    bf16 = [
        g["mma_fraction"]
        for t in tables.values()
        for g in t.get("gemm", ())
        if g["dtype"] == "bf16"
    ]
    flash = [
        a["mma_fraction"] / (1 + a["softmax_dim"] / 128)
        for t in tables.values()
        for a in t.get("attention", ())
    ]
    fraction = [t["memory"]["memory_fraction"] for t in tables.values() if "memory" in t]
    windows = [
        c["window3"]["forward"]
        for t in tables.values()
        for c in t.get("convolution", ())
        if c["dtype"] == "fp32"
    ]
    return {
        "roofline": {
            "compute_fraction": float(np.median(bf16)) * 0.9,
            "memory_fraction": float(np.median(fraction)),
            "floor_s": GRAPH_FLOOR_S,
            "fit": {
                "data": "medians over all GPUs; 0.9 for tile and wave quantisation",
                "command": COMMAND,
                "date": date,
                "factor_sigma": 0.15,
                "sigma": 0.1,
            },
        },
        "extrapolated_gemm_sigma": _spread(bf16),
        "extrapolated_attention_sigma": _spread(flash),
        "extrapolated_memory_sigma": _spread(fraction),
        "extrapolated_convolution_sigma": max(_spread(windows), DEFAULT_FACTOR_SIGMA),
    }


def calibrate(
    kernels: Path, *, date: str, workers: int = 1, report: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """File texts by file name, fitted to the CSV files of `kernels`."""
    hardware = next(
        (p for p in (kernels / "hardware.csv", kernels.parent / "hardware.csv") if p.exists()), None
    )
    if hardware is None:
        raise ValueError(
            f"no hardware.csv in `{kernels}` or beside it; it holds the GPUs' nominal figures."
        )
    gpus = read_gpus(hardware)
    rows = read_rows(kernels / "gemm.csv", ("m", "n", "k", "batch", "time_us"))
    selections = plan.select_gemm(rows, gpus)
    jobs = [(s, plan.other_gemm_sources(rows, s), date) for s in selections]
    tables: dict[str, Message] = {}

    def table(name: str) -> Message:
        return tables.setdefault(name, _gpu_message(gpus[name]))

    with ProcessPoolExecutor(max_workers=workers) as pool:
        for name, message in pool.map(calibrate_gemm, jobs):
            error = message["fit"]["held_out_error_large"]
            report(f"gemm {message['dtype']:5} {name}: {error:.1%} on large left-out shapes")
            if error > WORST_FIT:
                report(f"  left out: worse than {WORST_FIT:.0%}")
                continue
            table(name).setdefault("gemm", []).append(message)
    rows = read_rows(kernels / "attention.csv", attention.COLUMNS)
    for name, message in calibrate_attention(plan.select_attention(rows, gpus), date).items():
        table(name)["attention"] = [message]
        report(f"attention {name}: {message['fit']['held_out_error_large']:.1%}")
    rows = read_rows(kernels / "elementwise.csv", ("elements", "time_us"))
    for name, message in calibrate_memory(rows, gpus, tables, date).items():
        table(name)["memory"] = message
        report(f"memory {name}: {message['memory_fraction']:.2f} of bandwidth")
    if (kernels / "conv.csv").exists():
        rows = read_rows(kernels / "conv.csv", convolution.COLUMNS)
        chosen = plan.select_convolution(rows, gpus, convolution.SHORTEST_S)
        for name, messages in calibrate_convolution(chosen, tables, date).items():
            table(name)["convolution"] = messages
            for message in messages:
                error = message["fit"]["held_out_error"]
                report(f"convolution {message['dtype']:5} {name}: {error:.1%}")
    comment = "What {} sustains, fitted to measured kernels (docs/cost_models.md)."
    files = {
        file_name(name): format_file(fields, comment.format("a " + name))
        for name, fields in sorted(tables.items())
    }
    files["generic.textproto"] = format_file(generic(tables, date), comment.format("any GPU"))
    return files


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="plancast calibrate", description=__doc__)
    parser.add_argument("--kernels", type=Path, required=True, help="folder of kernel CSV files")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder to write to")
    parser.add_argument(
        "--date", default=datetime.date.today().isoformat(), help="date to write as that of the fit"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    try:
        files = calibrate(
            options.kernels,
            date=options.date,
            workers=options.workers,
            report=lambda line: print(line, file=sys.stderr),
        )
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (options.out / name).write_text(text)
    print(f"wrote {len(files)} files to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
