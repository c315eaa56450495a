"""What fits where adapters are trained alone."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import predict
from plancast.strategy import Strategy
from plancast.strategy_words import adapter_tree
from plancast.textual import duration, gib


def figures(plan: Forecast) -> str:
    """Time of a step and memory."""
    return (
        f"{duration(plan.iteration_time)} a step, {gib(plan.peak_memory)} of "
        f"{gib(plan.memory_capacity)} GiB"
    )


def fine_tuned(
    model: Model, machine: Machine, batch: int, profile: str, how: dict[str, Any]
) -> str:
    """What fits if adapters are trained alone; empty: nothing does."""
    if model.seq <= 0:
        return ""
    for quantised, name in ((False, "LoRA"), (True, "QLoRA")):
        plan = "mb=1,recompute=full" if machine.devices == 1 else "zero=3,mb=1,recompute=full"
        tree = adapter_tree(plan, quantised)
        try:
            found = predict(
                model, machine, Strategy.open(tree), batch=batch, profile=profile,
                memory_first=True, **how,
            )  # fmt: skip
        except InputError:  # no such layers, or a batch that does not divide
            continue
        if found.fits:
            return (
                f"fine-tuning with {name} of rank 16: {figures(found)}; type `plancast predict` "
                f"with `-s '{tree}'`"
            )
    return ""
