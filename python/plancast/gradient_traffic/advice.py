"""What common advice on the gradients of data-parallel workers is worth on a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast.checked import checked
from plancast.errors import InputError
from plancast.gradient_traffic.forecast import GradientForecast, gradients
from plancast.machine import Machine
from plancast.model import Model
from plancast.shown import Shown, Tabular

if TYPE_CHECKING:
    from rich.console import RenderableType

_LARGE_BUCKET = "100MiB"
_PASSES = 4
# Twice the cards that give less than so many times the samples are not worth it.
_PAYS = 1.5


@dataclass(frozen=True)
class Advised:
    """A piece of advice and the iteration with it; `speed` is in samples, against as it is."""

    advice: str
    forecast: GradientForecast
    speed: float


@checked
@dataclass(frozen=True, repr=False)
class GradientAdvice(Shown, Tabular):
    """Advice for a machine, and how its cards scale; the first row of `rows` is as it is."""

    rows: tuple[Advised, ...]
    cards: tuple[tuple[int, GradientForecast, GradientForecast], ...]

    @property
    def worth(self) -> int | None:
        """The most cards of a host that a doubling still pays for; None: it has no such host."""
        found = None
        for (few, less, _), (many, more, _) in zip(self.cards, self.cards[1:], strict=False):
            found = few if found is None else found
            # Of two that are no doubling apart, as much for each doubling.
            if more.samples_per_s < _PAYS ** math.log2(many / few) * less.samples_per_s:
                break
            found = many
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "advice": self.records(),
            "cards": [
                {"cards": count, "efficiency": one.efficiency, "samples_per_s": one.samples_per_s,
                 f"efficiency_accum_{_PASSES}": kept.efficiency}
                for count, one, kept in self.cards
            ],
            "cards_worth": self.worth,
        }  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """A row for each piece of advice."""
        return [
            {"advice": row.advice, "traffic": str(row.forecast.traffic),
             "strategy": row.forecast.strategy,
             "iteration_time_s": row.forecast.iteration_time,
             "efficiency": row.forecast.efficiency, "speed": row.speed}
            for row in self.rows
        ]  # fmt: skip

    def __repr__(self) -> str:
        from plancast.textual import slower

        best = max(self.rows, key=lambda row: row.speed)
        return f"<GradientAdvice, best {best.advice}: a sample {slower(1 / best.speed)}>"

    def __rich__(self) -> RenderableType:
        from plancast.report.gradient_advice import advice_tables

        return advice_tables(self)


@checked
def gradient_advice(
    model: Model, machine: Machine, strategy: str = "", **options: Any
) -> GradientAdvice:
    """Tries what people advise: larger buckets, accumulation, 16 bits, views, fewer cards.

    >>> advice = gradient_advice(Model.preset("resnet50"), Machine.preset("t4-pcie"), "mb=32",
    ...     dtype="fp16")
    >>> advice.rows[0].advice, advice.rows[0].speed
    ('as it is', 1.0)

    Args:
      model: what is trained.
      machine: the workers' hosts.
      strategy: of one worker.
      options: of `gradients`.
    """
    if "accum" in strategy:
        raise InputError("accumulation is one of the pieces of advice; leave `accum` out.")
    if options.get("tune"):
        raise InputError("advice tunes buckets by itself; leave `tune` out.")
    options.pop("tune", None)
    batch = options.pop("batch", None)

    def run(where: Machine, accum: int = 1, **changed: Any) -> GradientForecast:
        share = None if batch is None else batch * accum * where.devices // machine.devices
        plan = ",".join(filter(None, (strategy, f"accum={accum}" if accum > 1 else "")))
        return gradients(model, where, plan, batch=share, **{**options, **changed})

    now = run(machine)
    tried = [
        ("as it is", now),
        (f"enlarge buckets to {_LARGE_BUCKET}", run(machine, bucket=_LARGE_BUCKET)),
        ("best buckets", run(machine, tune="bucket")),
        (f"accumulate {_PASSES} passes", run(machine, _PASSES)),
        ("gradients in fp16 (hook)", run(machine, reduce_dtype="fp16")),
        ("gradient_as_bucket_view", run(machine, bucket_view=True)),
    ]
    rows = tuple(Advised(what, one, one.samples_per_s / now.samples_per_s) for what, one in tried)
    cards = []
    if machine.hosts == 1:
        for count in _counts(machine.gpus_per_host):
            fewer = Machine.from_dict({**machine.to_dict(), "gpus_per_host": count})
            cards.append((count, run(fewer), run(fewer, _PASSES)))
    return GradientAdvice(rows, tuple(cards))


def _counts(most: int) -> list[int]:
    """2, 4, ... and all."""
    counts = [1 << power for power in range(1, most.bit_length()) if 1 << power < most]
    return [*counts, most] if most > 1 else []
