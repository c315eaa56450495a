"""A forecast as one flat row of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Sizes of a plan, 1 where it does not cut along them.
_SIZES = ("dp", "tp", "pp", "vpp", "cp", "ep", "mb", "accum")
_WORDS = ("zero", "sp", "recompute", "schedule", "overlap")


def knobs(forecast: Forecast) -> dict[str, Any]:
    """What a plan decides, a column each; None: its parts decide it differently."""
    chosen = forecast.chosen
    whole: dict[str, Any] = {}
    for key in _SIZES:
        text = chosen.get(key, "" if key in ("dp", "mb", "accum") else "1")
        whole[key] = int(text) if text.isdecimal() else None
    for key in _WORDS:
        word = chosen.get(key)
        whole[key] = int(word) if word is not None and word.isdecimal() else word
    if whole["sp"] is not None:
        whole["sp"] = bool(whole["sp"])
    return whole


def plan_record(forecast: Forecast) -> dict[str, Any]:
    """The plan, its knobs and its figures, with units in the names."""
    fields = forecast.to_dict()
    low, high = fields["iteration_time_interval_s"]
    return {
        "strategy": forecast.strategy,
        **knobs(forecast),
        "iteration_time_s": fields["iteration_time_s"],
        "iteration_time_low_s": low,
        "iteration_time_high_s": high,
        "tokens_per_s_per_gpu": fields["tokens_per_s_per_gpu"],
        "model_tflops_per_gpu": fields["model_tflops_per_gpu"],
        "mfu": fields["mfu"],
        "peak_memory_bytes": fields["peak_memory_bytes"],
        "usd_per_iteration": fields["cost"]["usd_per_iteration"],
        "kwh_per_iteration": fields["cost"]["kwh_per_iteration"],
        **{f"{part}_s": seconds for part, seconds in fields["breakdown_s"].items()},
    }


def run_record(forecast: Forecast) -> dict[str, Any]:
    """What a row needs where models, machines or batches differ from row to row."""
    return {
        "model": forecast.model,
        "machine": forecast.machine,
        "devices": forecast.devices,
        "global_batch": forecast.global_batch,
        "seq": forecast.seq,
        "dtype": forecast.dtype,
        "profile": forecast.profile,
        "fits": forecast.fits,
        **plan_record(forecast),
    }


def columns(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of `plan_record`, for a table without rows."""
    return (
        "strategy", *_SIZES, *_WORDS, "iteration_time_s", "iteration_time_low_s",
        "iteration_time_high_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu",
        "peak_memory_bytes", "usd_per_iteration", "kwh_per_iteration",
        *(f"{part}_s" for part in parts),
    )  # fmt: skip
