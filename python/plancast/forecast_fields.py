"""A forecast as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from plancast.adapters import word_of
from plancast.causal import causal_mfu

if TYPE_CHECKING:
    from plancast import _core
    from plancast.forecast import Forecast


def fields_of(forecast: Forecast, core: _core.Forecast) -> dict[str, Any]:
    """The fields of `plancast predict --json`."""
    counters = dict(core.counters)
    fields = {
        "iteration_time_s": core.iteration_time_s,
        "iteration_time_interval_s": list(core.interval_s),
        "tokens_per_s": forecast.tokens_per_s,
        "samples_per_s": forecast.samples_per_s,
        "tokens_per_s_per_gpu": forecast.tokens_per_s / core.devices,
        "model_tflops_per_gpu": forecast.model_flops_per_s_per_gpu / 1e12,
        "hardware_tflops_per_gpu": forecast.hardware_flops_per_s_per_gpu / 1e12,
        "mfu": forecast.mfu,
        "mfu_causal": causal_mfu(forecast),
        "hfu": forecast.hfu,
        "flops_formula": core.flops_formula,
        "peak_memory_bytes": core.peak_memory_bytes,
        "fits": core.fits,
        "memory": [asdict(entry) for entry in forecast.memory],
        "breakdown_s": forecast.breakdown(),
        "critical_path_s": forecast.critical_path(),
        "chosen": dict(core.chosen),
        "counters": counters,
        "tasks": counters["tasks"],
        "device_classes": counters["device_classes"],
        "simulate_s": core.simulate_s,
        "provenance": _provenance(forecast, core),
        "cost": {
            "usd_per_iteration": usd_of(forecast, core),
            "kwh_per_iteration": core.kwh_per_iteration or None,
        },
    }
    if forecast.distribution is not None:
        fields["distribution"] = forecast.distribution.to_dict()
    return fields


def usd_of(forecast: Forecast, core: _core.Forecast) -> float | None:
    """Dollars of a step at the price on record of its machine; None: it has none."""
    from plancast.training.prices import usd_per_s

    machine = getattr(forecast._question, "machine", None)
    if machine is None:
        return core.usd_per_iteration or None
    rate = usd_per_s(machine)
    return None if rate is None else rate * core.iteration_time_s


def _provenance(forecast: Forecast, core: _core.Forecast) -> dict[str, Any]:
    return {
        "model": core.model,
        "machine": core.machine,
        "strategy": core.strategy,
        "lora": word_of(forecast._tree),
        "profile": core.profile,
        "seq": core.seq,
        "dtype": forecast.dtype,
        "what_if": forecast.what_if,
        "kernel_time_share": forecast.knowledge(),
        "factors": {
            name: {
                "seconds": seconds,
                "relative_sigma": sigma,
                "extrapolated": name in core.extrapolated_factors,
            }
            for name, (seconds, sigma) in core.factors.items()
        },
        "software": forecast.software(),
        "notes": list(core.notes),
        "warnings": list(forecast.warnings),
    }
