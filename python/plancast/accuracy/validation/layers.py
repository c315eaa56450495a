"""Measured times of single layers beside the middle layer of a forecast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plancast.accuracy.table import Cells, Table
from plancast.accuracy.validation.software import profile_for
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import predict
from plancast.session import Session
from plancast.slices import Slice

# Column that tells such a file.
COLUMN = "layer_forward_ms"
# So many layers are simulated; the one in the middle has neighbours on both sides.
_LAYERS = 5
# Whose paper the times are from (Korthikanti et al. 2022), unless the file has the column.
_SOFTWARE = "Megatron-LM/NeMo 2022"


@dataclass(frozen=True)
class LayerResult:
    """Forward and backward of one layer, seconds; backward contains recomputation.

    `unsupported` says why there is no forecast.
    """

    row_id: str
    plan: str
    measured: tuple[float, float]
    predicted: tuple[float, float] | None = None
    unsupported: str | None = None

    @property
    def errors(self) -> tuple[float, float] | None:
        """Of forward and of backward, forecast / measurement - 1."""
        if self.predicted is None:
            return None
        forward, backward = (p / m - 1 for p, m in zip(self.predicted, self.measured, strict=True))
        return forward, backward

    def to_dict(self) -> dict[str, Any]:
        """For `plancast validate --json`."""
        return {
            "row_id": self.row_id,
            "strategy": self.plan,
            "measured_s": list(self.measured),
            "predicted_s": list(self.predicted) if self.predicted else None,
            "unsupported": self.unsupported,
        }


def read_layers(path: str | Path) -> list[Cells] | None:
    """The rows of a file of layer times; None if it holds something else."""
    table = Table(path)
    return list(table.rows()) if COLUMN in table.columns and "hidden" in table.columns else None


def predict_layer(cells: Cells, session: Session) -> LayerResult:
    """One row; the model is as many equal layers as tell the middle one from the ends."""
    plan = _strategy(cells)
    measured = (
        (cells.positive(COLUMN) or 0.0) / 1e3,
        (cells.positive("layer_backward_ms") or 0.0) / 1e3,
    )
    row_id = cells.text("row_id")
    if not all(measured):
        raise InputError(f"{cells.place}: `{COLUMN}` or `layer_backward_ms` is missing.")
    try:
        forecast = predict(
            _model(cells),
            Machine.open(cells.text("machine")),
            plan,
            batch=cells.whole("micro_batch"),
            dtype=cells.text("dtype"),
            profile=profile_for(cells.text("software") or _SOFTWARE)[0],
            session=session,
            timeline=True,
        )
    except InputError as error:
        return LayerResult(row_id, plan, measured, unsupported=str(error))
    return LayerResult(row_id, plan, measured, layer_times(forecast))


def _model(cells: Cells) -> Model:
    fields: dict[str, Any] = {
        "hidden": cells.whole("hidden"),
        "heads": cells.whole("heads"),
        "ffn": cells.whole("ffn_hidden"),
        "seq": cells.whole("seq_len"),
    }
    name = cells.text("model")
    return Model.from_config(
        name=name, layers=_LAYERS, vocab=51200, mlp="gelu", norm="layernorm",
        position="learned", tied_embeddings=True, **fields,
    )  # fmt: skip


def _strategy(cells: Cells) -> str:
    parts = [f"dp=1,tp={cells.whole('tp') or 1}", f"mb={cells.whole('micro_batch')}"]
    if cells.flag("sp"):
        parts.append("sp")
    parts += [f"{key}={cells.text(key)}" for key in ("recompute", "attn") if cells.text(key)]
    return ",".join(parts)


def layer_times(forecast: Forecast) -> tuple[float, float]:
    """Seconds from one layer to the next, forward and backward, in the middle of the model."""
    slices = [s for s in forecast.timeline() if s.stream == "compute" and s.micro_batch == 0]
    turn = next(s.start_s for s in slices if s.purpose in ("backward", "recompute"))
    return (
        _period(s for s in slices if s.start_s < turn),
        _period(s for s in slices if s.start_s >= turn),
    )


def _period(slices: Iterable[Slice]) -> float:
    """Between the second and the fourth of what every layer runs once, halved."""
    starts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for entry in slices:
        starts[entry.purpose, entry.name].append(entry.start_s)
    each = next(times for times in starts.values() if len(times) == _LAYERS)
    return (each[3] - each[1]) / 2
