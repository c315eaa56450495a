"""Coefficients of all GPUs from measured kernels, as messages of proto/kernel_cost.proto."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from plancast import _core

from . import attention, convolution, gemm, memory, plan, published, steady
from .fit import Statistics
from .generic import DEFAULT_FACTOR_SIGMA, generic
from .rows import ALIASES, Gpu, Rows
from .textproto import Message, file_name, format_file

COMMAND = "plancast calibrate --kernels DIR -o OUT"
# A fit worse than this on large shapes tells less than the medians do.
WORST_FIT = 0.25
# An isolated kernel under CUDA graphs: median of the graph-timed tables.
GRAPH_FLOOR_S = 2.2e-6


@dataclass(frozen=True)
class Measured:
    """The tables of measured kernels; those of some families may be absent."""

    gpus: dict[str, Gpu]
    gemm: Rows
    attention: Rows
    elementwise: Rows
    convolution: Rows | None
    experts: Rows | None = None


@dataclass
class Fitting:
    """How to fit: what to write in `fit`, whether to leave folds out for its statistics, and
    what is known from an earlier fit of the same rows of a GPU."""

    date: str
    cross_validate: bool = True
    workers: int = 1
    report: Callable[[str], None] = lambda _: None
    gemm_known: dict[tuple[str, str], Message] = field(default_factory=dict)
    as_measured: bool = False  # without what kernels take beside what rows of their source have

    def fit_message(
        self, data: str, stats: Statistics, factor_sigma: float, note: str = ""
    ) -> Message:
        return {
            "data": data,
            "rows": stats["rows"],
            "command": COMMAND,
            "date": self.date,
            "held_out_error": stats["held_out_error"],
            "held_out_error_large": stats.get("held_out_error_large"),
            "held_out_mean_error": stats.get("held_out_mean_error"),
            "factor_sigma": factor_sigma,
            "sigma": stats["sigma"],
            "note": note or None,
        }


def _gpu_message(gpu: Gpu) -> Message:
    return {
        "gpu": gpu.name,
        "sms": int(gpu.sms),
        "boost_mhz": gpu.boost_mhz,
        "vendor": gpu.vendor,
        "tdp_watts": gpu.tdp_watts or None,
        "speed_grade": gpu.speed_grade,
        "fp32_speed_grade": gpu.fp32_speed_grade,
        "same_chip": plan.SAME_CHIP.get(gpu.name),
    }


def _fit_gemm(
    selection: plan.Selection, others: list[tuple[str, str, Rows]], fitting: Fitting
) -> Message:
    """The message of one GPU and type."""
    s = selection
    coefficients = gemm.fit_gemm(s.rows, s.gpu, s.dtype)
    stats: Statistics = {"rows": len(s.rows), "held_out_error": 0.0, "sigma": 0.0}
    if fitting.cross_validate:
        stats = gemm.cross_validate(s.rows, s.gpu, s.dtype, coefficients)
    eager = s.rows["timing"][0].startswith("event_eager")
    if eager:  # the fitted floor is the host's launch
        coefficients["floor_s"] = GRAPH_FLOOR_S
    ratios, factors = [], {}
    for source, layout, rows in others:
        if source == plan.TRAINING_SOURCE and layout in gemm.PASSES:
            name = gemm.PASSES[layout][1]
            ratio = gemm.fit_training_factor(rows, s.gpu, s.dtype, name, coefficients)
            if np.isfinite(ratio):
                factors[name] = ratio
            # Taken over, yet one node's word against another's.
            ratio = np.sqrt(ratio)
        else:
            ratio = gemm.median_ratio(rows, s.gpu, s.dtype, coefficients)
        if np.isfinite(ratio):
            ratios.append(np.log(ratio))
    factor_sigma = float(np.sqrt(np.mean(np.square(ratios)))) if ratios else DEFAULT_FACTOR_SIGMA
    note = "pass factors from simumax (Transformer Engine)" if factors else ""
    bare = s.rows["source"][0] in plan.QUANTISED_BEFORE and s.dtype in gemm.QUANTIZED
    if bare and not fitting.as_measured:
        coefficients["quantize_bytes"] = gemm.QUANTIZE_BYTES
        note = "quantize_bytes: the rows begin behind it; what it reads and writes"
    if eager:
        note = "eager timings; floor_s from other GPUs"
    return {
        "dtype": s.dtype,
        "peak_flops": s.peak,
        "tile": [{"m": m, "n": n} for m, n in _core.library_tiles()],
        "split_k": _core.library_splits(),
        **coefficients,
        **factors,
        "own_only": s.own_only or None,
        "promotion_factor": plan.PROMOTION.get((s.gpu.name, s.dtype)),
        "accumulation_bytes": plan.ACCUMULATION_BYTES.get((s.gpu.name, s.dtype)),
        "fit": fitting.fit_message(s.data, stats, max(factor_sigma, 0.03), note),
    }


def fit_gemm(measured: Measured, fitting: Fitting) -> list[tuple[str, Message]]:
    """(GPU, message) of all GPUs and types."""
    known = fitting.gemm_known

    def one(s: plan.Selection) -> tuple[str, Message]:
        key = s.gpu.name, s.dtype
        if key not in known:
            known[key] = _fit_gemm(s, plan.other_gemm_sources(measured.gemm, s), fitting)
        return s.gpu.name, known[key]

    with ThreadPoolExecutor(max_workers=fitting.workers) as pool:
        fitted = list(pool.map(one, plan.select_gemm(measured.gemm, measured.gpus)))
    fitted = [(name, {**message, "fit": dict(message["fit"])}) for name, message in fitted]
    take_over_training_factors(fitted, measured.gpus)
    return fitted


def take_over_training_factors(fitted: list[tuple[str, Message]], gpus: dict[str, Gpu]) -> None:
    """Products of a GPU that was not timed in a training stack take as much longer there as its
    nominal FLOPs per watt say: the logarithm of the factor grows with them, from none at those of
    STEADY_DENSITY to that of the GPU that was timed. Half of it counts as shared error. Only of
    the type that was timed: in 8 and 4 bits steady loops are as fast as short ones
    (docs/cost_models.md)."""
    names = [factor for _, factor in gemm.PASSES.values()]
    timed = [(gpus[gpu], message) for gpu, message in fitted if names[0] in message]
    for name, message in fitted:
        gpu = gpus[name]
        if any(factor in message for factor in names) or gpu.tdp_watts <= 0:
            continue
        for other, source in timed:
            if source["dtype"] != message["dtype"] or other.vendor != gpu.vendor:
                continue
            more = gpu.power_density - plan.STEADY_DENSITY
            share = more / (other.power_density - plan.STEADY_DENSITY)
            if share <= 0:
                continue
            message.update({f: float(source[f] ** share) for f in names if f in source})
            message["fit"]["note"] = f"pass factors by FLOPs per watt, from {other.name}"
            message["fit"]["factor_sigma"] = max(
                message["fit"]["factor_sigma"], float(np.log(message[names[0]])) / 2
            )


def fit_attention(selections: list[plan.Selection], fitting: Fitting) -> dict[str, Message]:
    """Messages by GPU. What one GPU's rows cannot tell is the others' median."""
    forward = {}
    for s in selections:
        rows = s.rows[s.rows["phase"] != "train_bwd"]
        forward[s.gpu.name] = (rows, *attention.fit_forward(rows, s.gpu, s.dtype))
    # What is typed of one GPU says nothing of others.
    told = {
        s.gpu.name: set() if s.own_only else attention.told_by(forward[s.gpu.name][0])
        for s in selections
    }
    losses = [c["causal_loss"] for gpu, (_, c, _) in forward.items() if "causal_loss" in told[gpu]]
    rates = {s.gpu.name: s.peak / s.gpu.sms for s in selections}
    softmax = {
        rates[gpu]: c["softmax_dim"]
        for gpu, (_, c, _) in forward.items()
        if "softmax_dim" in told[gpu]
    }
    messages: dict[str, Message] = {}
    factors = []
    for s in selections:
        rows, coefficients, stats = forward[s.gpu.name]
        note = ""
        known = {}
        if softmax and "softmax_dim" not in told[s.gpu.name]:
            known["softmax_dim"] = attention.softmax_dim_like(rates[s.gpu.name], softmax)
        if losses and "causal_loss" not in told[s.gpu.name]:
            known["causal_loss"] = float(np.median(losses))
        if known:
            coefficients, stats = attention.fit_forward(rows, s.gpu, s.dtype, known)
            note = f"{' and '.join(known)}: of GPUs whose rows tell"
        message: Message = {
            "dtype": s.dtype,
            "peak_flops": s.peak,
            **coefficients,
            "fit": fitting.fit_message(s.data, stats, DEFAULT_FACTOR_SIGMA, note),
            "kernel": s.kernel,
        }
        if s.gpu.name in plan.ARCHITECTURES:
            message["architecture"] = plan.ARCHITECTURES[s.gpu.name]
        if s.own_only:
            message["own_only"] = True
        backward = s.rows[s.rows["phase"] == "train_bwd"]
        if len(backward):
            more, stats = attention.fit_backward(backward, s.gpu, s.dtype, coefficients)
            message.update(more)
            message["backward_fit"] = fitting.fit_message(s.data, stats, DEFAULT_FACTOR_SIGMA)
            if not s.own_only:
                factors.append(more["backward_factor"])
        messages[s.gpu.name] = message
    for name, message in messages.items():
        if "backward_factor" not in message:
            published = attention.PUBLISHED_BACKWARD.get(name)
            others = float(np.median(factors)) if factors else 1.2
            message["backward_factor"] = published or others
            message["backward_floor_s"] = 2 * message["floor_s"]
            message["backward_fit"] = {
                "factor_sigma": 0.15,
                "sigma": 0.1,
                "note": "no backward rows: "
                + ("published" if published else "the other GPUs' median")
                + " per FLOP",
            }
    return messages


def softmax_dims(tables: dict[str, Message], gpus: dict[str, Gpu]) -> dict[float, float]:
    """What stands for the softmax's time in 16 bits, by the peak of an SM in FLOP/s."""
    return {
        message["peak_flops"] / gpus[name].sms: message["softmax_dim"]
        for name, fields in sorted(tables.items())
        for message in fields.get("attention", ())
        if message["dtype"] == "bf16"
    }


def fit_memory(
    measured: Measured, tables: dict[str, Message], fitting: Fitting
) -> dict[str, Message]:
    """Messages by GPU. Where only quantisation was measured, which may be
    slower than the memory, a GEMM bound by memory may tell more: hence `tables`."""
    messages = {}
    rows = measured.elementwise
    for name in sorted(set(rows["gpu"]) - plan.LEFT_OUT):
        gpu = measured.gpus[ALIASES.get(name, name)]
        fitted = memory.fit_memory(rows[rows["gpu"] == name], gpu, GRAPH_FLOOR_S)
        if fitted is None:
            continue
        coefficients, stats = fitted
        data = "elementwise.csv, large kernels"
        for message in tables.get(gpu.name, {}).get("gemm", ()) if stats["quantize"] else ():
            if (
                message["dtype"] == "bf16"
                and message["memory_fraction"] > coefficients["memory_fraction"]
            ):
                coefficients["memory_fraction"] = message["memory_fraction"]
                data = message["fit"]["data"]
        messages[gpu.name] = {**coefficients, "fit": fitting.fit_message(data, stats, 0.05)}
    return messages


def fit_convolution(
    selections: list[plan.Selection], tables: dict[str, Message], fitting: Fitting
) -> dict[str, list[Message]]:
    """Messages by GPU, over the GEMM coefficients in `tables`."""
    fitted = []
    for s in selections:
        known = [g for g in tables.get(s.gpu.name, {}).get("gemm", ()) if g["dtype"] == s.dtype]
        if known:
            names = gemm.wanted(s.dtype)
            coefficients = {name: known[0][name] for name in names}
            found, stats = convolution.fit_convolution(s.rows, s.gpu, s.dtype, coefficients)
            fitted.append((s, found, stats))
    messages: dict[str, list[Message]] = {}
    for s, factors, stats in fitted:
        others = [f for other, f, _ in fitted if other.dtype == s.dtype and f is not factors]
        whole, taken = convolution.complete(factors, others)
        note = f"taken over: {', '.join(taken)}" if taken else ""
        fit = fitting.fit_message(s.data, stats, DEFAULT_FACTOR_SIGMA, note)
        messages.setdefault(s.gpu.name, []).append({"dtype": s.dtype, **whole, "fit": fit})
    return messages


def fit_tables(measured: Measured, fitting: Fitting) -> dict[str, Message]:
    """Messages by GPU name; `generic` serves all."""
    tables: dict[str, Message] = {}
    gpus, report = measured.gpus, fitting.report

    def table(name: str) -> Message:
        return tables.setdefault(name, _gpu_message(gpus[name]))

    for name, message in fit_gemm(measured, fitting):
        error = message["fit"].get("held_out_error_large") or 0.0
        report(f"gemm {message['dtype']:5} {name}: {error:.1%} on large left-out shapes")
        if error > WORST_FIT:
            report(f"  left out: worse than {WORST_FIT:.0%}")
            continue
        table(name).setdefault("gemm", []).append(message)
    for name, message in steady.messages(tables, gpus, fitting.fit_message):
        table(name).setdefault("gemm", []).append(message)
    chosen = plan.select_attention(measured.attention, gpus)
    for name, message in fit_attention(chosen, fitting).items():
        table(name)["attention"] = [message]
        report(f"attention {name}: {message['fit']['held_out_error_large']:.1%}")
    for dtype in plan.QUANTIZED_ATTENTION:
        chosen = plan.select_quantized_attention(measured.attention, gpus, dtype)
        for name, message in fit_attention(chosen, fitting).items():
            table(name).setdefault("attention", []).append(message)
            report(f"attention {dtype} {name}: {message['fit']['held_out_error_large']:.1%}")
    for name, message in fit_memory(measured, tables, fitting).items():
        table(name)["memory"] = message
        report(f"memory {name}: {message['memory_fraction']:.2f} of bandwidth")
    if measured.convolution is not None:
        chosen = plan.select_convolution(measured.convolution, gpus, convolution.SHORTEST_S)
        for name, messages in fit_convolution(chosen, tables, fitting).items():
            table(name)["convolution"] = messages
            for message in messages:
                error = message["fit"]["held_out_error"]
                report(f"convolution {message['dtype']:5} {name}: {error:.1%}")
    # No reader does without it, and of a set that is cut short the first file is away.
    first = {"generic": generic(tables, COMMAND, fitting.date, GRAPH_FLOOR_S)}
    # After it: they say nothing of other GPUs.
    known = softmax_dims(tables, gpus)
    for name, message in published.attention_messages(gpus, known, fitting.fit_message).items():
        table(name).setdefault("attention", []).append(message)
    for name, message in published.memory_messages(
        gpus, GRAPH_FLOOR_S, fitting.fit_message
    ).items():
        table(name).setdefault("memory", message)
    return first | dict(sorted(tables.items()))


def file_texts(tables: dict[str, Message]) -> dict[str, str]:
    """File texts by file name."""
    comment = "What {} sustains, fitted to measured kernels (docs/cost_models.md)."
    return {
        file_name(name): format_file(
            fields, comment.format("any GPU" if name == "generic" else f"a {name}")
        )
        for name, fields in tables.items()
    }
