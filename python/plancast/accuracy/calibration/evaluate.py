"""How well the kernel cost models do on kernels that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from . import attention, convolution, gemm, memory, plan
from .fit import Kernels
from .rows import Rows
from .tables import Fitting, Measured, file_texts, fit_tables
from .textproto import Message, format_file

# Share of shapes held out, and FLOPs of a large product.
HELD_OUT = 0.2
LARGE_FLOPS = 2e10
# Products timed inside a training stack are judged with the factors that they tell; isolated
# ones without.
FACTORS = [factor for _, factor in gemm.PASSES.values()]
# Nominal peaks, nothing else.
DATASHEET = format_file(
    {"roofline": {"compute_fraction": 1.0, "memory_fraction": 1.0, "floor_s": 0.0}}, "Data sheet."
)
HOW = ("shapes", "gpu", "datasheet")


@dataclass(frozen=True)
class Score:
    """Errors of predicted over measured time of one family on one GPU."""

    family: str
    gpu: str
    how: str  # `shapes` or `gpu` held out, or from the `datasheet`
    rows: int
    mean_error: float  # of absolute relative errors
    median_error: float
    bias: float


@dataclass(frozen=True)
class Judged:
    """Kernels of one family on one GPU, their times, and a key per row that is equal for equal
    shapes on every GPU."""

    family: str
    kernels: Kernels
    seconds: np.ndarray
    keys: np.ndarray
    launches: np.ndarray | float = 0.0  # seconds that their launches take

    def select(self, mask: np.ndarray) -> Judged:
        launches = self.launches if isinstance(self.launches, float) else self.launches[mask]
        return Judged(
            self.family, self.kernels.select(mask), self.seconds[mask], self.keys[mask], launches
        )


def shape_keys(rows: Rows, columns: tuple[str, ...]) -> np.ndarray:
    """Equal for equal values of the columns, numbers or words."""
    return np.array(["|".join(str(rows[c][i]) for c in columns) for i in range(len(rows))])


def held_out(keys: np.ndarray, seed: int) -> np.ndarray:
    """A random fifth of the shapes: by a hash of the shape and the seed (FNV-1a)."""

    def share(key: str) -> float:
        value = 0xCBF29CE484222325
        for byte in f"{seed}|{key}".encode():
            value = (value ^ byte) * 0x100000001B3 % 2**64
        value ^= value >> 29
        return value * 0x9E3779B97F4A7C15 % 2**64 / 2**64

    chosen = {key: share(key) < HELD_OUT for key in sorted(set(keys))}
    return np.array([chosen[key] for key in keys], dtype=bool)


GEMM_SHAPE = ("m", "n", "k", "batch")
CONVOLUTION_SHAPE = ("batch", "in_h", "in_w", "in_c", "out_c", "kh", "kw", "stride", "phase")
ELEMENTWISE_SHAPE = ("op", "phase", "rows", "cols")
ATTENTION_SHAPE = (*attention.SIZES, "phase")


def _products(measured: Measured) -> Iterator[Judged]:
    for s in plan.select_gemm(measured.gemm, measured.gpus):
        kernels = gemm.kernels_of(s.rows, s.gpu, s.dtype)
        name = "gemm fp16 in fp32" if s.own_only else f"gemm {s.dtype}"
        every = Judged(name, kernels, s.rows["time_us"] * 1e-6, shape_keys(s.rows, GEMM_SHAPE))
        yield every
        flops = 2 * s.rows["m"] * s.rows["n"] * s.rows["k"] * s.rows["batch"]
        yield replace(every.select(flops > LARGE_FLOPS), family=f"{name} large")
        for source, layout, rows in plan.other_gemm_sources(measured.gemm, s):
            training = source == plan.TRAINING_SOURCE
            make = gemm.training_kernels if training else gemm.kernels_of
            yield Judged(
                f"gemm {s.dtype} {f'training {layout}' if training else f'of {source}'}",
                make(rows, s.gpu, s.dtype),
                rows["time_us"] * 1e-6,
                shape_keys(rows, GEMM_SHAPE),
            )


def _experts(measured: Measured) -> Iterator[Judged]:
    """Products of experts that a training stack launches one by one."""
    table = measured.experts
    if table is None:
        return
    known = table[
        (table["op"] == "grouped_gemm")
        & (table["source"] == plan.TRAINING_SOURCE)
        & table.is_in("phase", ("fwd", "bwd_grad_act"))
    ]
    for name in sorted(set(known["gpu"])):
        rows = known[known["gpu"] == name]
        seconds = rows["time_us"] * 1e-6
        keys = shape_keys(rows, ("groups", "group_m", "n", "k", "phase"))
        # The host's time for a launch: what the shortest products take each.
        launch = float(np.quantile(seconds / rows["groups"], 0.05))
        yield Judged(
            "grouped training bf16", gemm.grouped_kernels(rows, measured.gpus[name]), seconds,
            keys, launch * rows["groups"],
        )  # fmt: skip


def judged(measured: Measured) -> list[Judged]:
    """All that is judged: the rows that coefficients are fitted to, and other sources' of GEMM."""
    result = [*_products(measured), *_experts(measured)]
    for s in plan.select_attention(measured.attention, measured.gpus):
        for backward, family in ((False, "attention forward"), (True, "attention backward")):
            rows = s.rows[(s.rows["phase"] == "train_bwd") == backward]
            if len(rows):
                kernels = attention.kernels_of(rows, s.gpu, s.dtype)
                keys = shape_keys(rows, ATTENTION_SHAPE)
                result.append(Judged(family, kernels, rows["time_us"] * 1e-6, keys))
    for family, kernels, rows in memory.judged(measured.elementwise, measured.gpus):
        keys = shape_keys(rows, ELEMENTWISE_SHAPE)
        result.append(Judged(family, kernels, rows["time_us"] * 1e-6, keys))
    if measured.convolution is not None:
        images = measured.convolution
        for s in plan.select_convolution(images, measured.gpus, convolution.SHORTEST_S):
            kernels = convolution.kernels_of(s.rows, s.gpu, s.dtype)
            keys = shape_keys(s.rows, CONVOLUTION_SHAPE)
            family = f"convolution {s.dtype}"
            result.append(Judged(family, kernels, s.rows["time_us"] * 1e-6, keys))
    return [j for j in result if len(j.seconds)]


def _score(j: Judged, how: str, predicted: np.ndarray) -> Score:
    error = np.maximum(predicted, j.launches) / j.seconds - 1
    return Score(
        j.family, j.kernels.gpu.name, how, len(error), float(np.mean(np.abs(error))),
        float(np.median(np.abs(error))), float(np.mean(error)),
    )  # fmt: skip


def _isolated(message: Message) -> Message:
    """The message without what only a training stack's kernels feel."""
    products = [
        {name: value for name, value in g.items() if name not in FACTORS}
        for g in message.get("gemm", ())
    ]
    return {**message, "gemm": products} if products else message


def _texts(tables: dict[str, Message], j: Judged) -> dict[str, str]:
    training = "training" in j.family
    return file_texts({name: m if training else _isolated(m) for name, m in tables.items()})


def _without(rows: Rows, columns: tuple[str, ...], seed: int) -> Rows:
    return rows[~held_out(shape_keys(rows, columns), seed)]


def without_shapes(measured: Measured, seed: int) -> Measured:
    """The tables less the shapes that are held out."""
    images = measured.convolution
    return replace(
        measured,
        gemm=_without(measured.gemm, GEMM_SHAPE, seed),
        attention=_without(measured.attention, ATTENTION_SHAPE, seed),
        elementwise=_without(measured.elementwise, ELEMENTWISE_SHAPE, seed),
        convolution=None if images is None else _without(images, CONVOLUTION_SHAPE, seed),
    )


def without_gpu(measured: Measured, gpu: str) -> Measured:
    """The tables less all rows of a GPU, under any of its names."""

    def rest(rows: Rows) -> Rows:
        return rows[~rows.is_in("gpu", plan.names_of(gpu))]

    images = measured.convolution
    return replace(
        measured,
        gemm=rest(measured.gemm),
        attention=rest(measured.attention),
        elementwise=rest(measured.elementwise),
        convolution=None if images is None else rest(images),
    )


def evaluate(
    measured: Measured,
    *,
    seed: int = 1,
    workers: int = 1,
    report: Callable[[str], None] = lambda _: None,
) -> list[Score]:
    """Scores of all families and GPUs, in each of the three ways."""
    everything = judged(measured)
    scores = [_score(j, "datasheet", j.kernels.seconds_by({"generic.textproto": DATASHEET}))
              for j in everything]  # fmt: skip
    fitting = partial(Fitting, "", cross_validate=False, workers=workers, as_measured=True)
    report("fitting without a fifth of the shapes")
    tables = fit_tables(without_shapes(measured, seed), fitting())
    for j in everything:
        part = j.select(held_out(j.keys, seed))
        if len(part.seconds):
            scores.append(_score(part, "shapes", part.kernels.seconds_by(_texts(tables, j))))
    whole = fitting()
    fit_tables(measured, whole)
    for gpu in sorted({j.kernels.gpu.name for j in everything}):
        report(f"fitting without {gpu}")
        rest = without_gpu(measured, gpu)
        known = {key: message for key, message in whole.gemm_known.items() if key[0] != gpu}
        tables = fit_tables(rest, fitting(gemm_known=known))
        for j in everything:
            if j.kernels.gpu.name == gpu:
                scores.append(_score(j, "gpu", j.kernels.seconds_by(_texts(tables, j))))
    order = {how: i for i, how in enumerate(HOW)}
    return sorted(scores, key=lambda s: (s.family, s.gpu, order[s.how]))


def overall(scores: list[Score]) -> list[Score]:
    """Over all rows of a family, GPUs together; medians are of the GPUs' medians."""
    result = []
    for family in sorted({s.family for s in scores}):
        for how in HOW:
            of = [s for s in scores if (s.family, s.how) == (family, how)]
            if not of:
                continue
            rows = np.array([s.rows for s in of])
            mean = float(np.average([s.mean_error for s in of], weights=rows))
            bias = float(np.average([s.bias for s in of], weights=rows))
            median = float(np.median([s.median_error for s in of]))
            result.append(Score(family, "all", how, int(rows.sum()), mean, median, bias))
    return result


def as_json(scores: list[Score]) -> dict[str, Any]:
    return {
        "scores": [asdict(s) for s in scores],
        "overall": [asdict(s) for s in overall(scores)],
    }
