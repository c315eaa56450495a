"""MFU as papers of causal models count it: attention's upper triangle is not computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Where queries read something else than all positions before them.
_NOT_CAUSAL = ("window", "bidirectional", "documents")


def causal_mfu(forecast: Forecast) -> float | None:
    """The MFU with half of each square of attention; None where attention is not causal.

    `Forecast.mfu` counts whole squares, as most publications do (`model_full`); with this count
    (`model_causal`) a model does `6 * batch * seq^2 * width` operations less in a step.
    """
    model = getattr(forecast._question, "model", None)
    fields = None if model is None else model.config
    if fields is None or "heads" not in fields or any(fields.get(key) for key in _NOT_CAUSAL):
        return None
    if forecast._core.flops_formula != "model_full":
        return None  # parts are frozen
    from plancast.accuracy.validation.weights import attention_weights

    layers = fields["layers"] + fields.get("mtp_layers", 0)
    width = layers * attention_weights(fields)[1]
    halves = 6 * forecast.global_batch * forecast.seq**2 * width
    whole = forecast._core.model_flops
    return forecast.mfu * (1 - halves / whole) if whole > halves else None
