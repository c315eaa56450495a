"""The phases of a run: what is trained how long with which batch, sequence and plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.model import Model
from plancast.strategy import Strategy
from plancast.training import amounts

# Tokens of a step where no batch is given: Llama 2 used 4 M.
_TOKENS_A_STEP = 1 << 22
_SAMPLES_A_STEP = 1024
_MOST_SAMPLES_A_STEP = 4096
_MOST_RAMP_STEPS = 200
_KEYS = ("tokens", "samples", "batch", "seq", "strategy", "dtype", "name")


@checked
@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a run. What it does not say is as the run has it.

    Args:
      tokens: how many are trained on, or text such as `800B`; None: what is left of the run's
        (of one phase at most).
      samples: the same for models without sequences.
      batch: global batch, samples per step.
      seq: tokens per sequence.
      strategy: a tree, its short form, or `best`.
      dtype: matmul precision.
      name: what reports call it.

    >>> Phase.parse("tokens=800B seq=131072 batch=128 strategy=tp=8,cp=16,mb=1").seq
    131072
    """

    tokens: float | str | None = None
    samples: float | str | None = None
    batch: int | None = None
    seq: int | None = None
    strategy: Strategy | str | None = None
    dtype: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.tokens is not None and self.samples is not None:
            raise InputError("a phase is counted in `tokens` or in `samples`, not in both.")
        for name in ("tokens", "samples"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, amounts.scaled(value, name))
        if self.batch is not None:
            arguments.batch(self.batch)
        if self.seq is not None:
            arguments.whole(self.seq, "seq", 1, 1 << 30)

    @classmethod
    def parse(cls, text: str) -> Phase:
        """`key=value` pairs between spaces, as on the command line."""
        said: dict[str, Any] = {}
        for part in text.split():
            key, equals, value = part.partition("=")
            if not equals or key not in _KEYS:
                raise InputError(
                    f"`{part[:60]}` says nothing of a phase; write KEY=VALUE pairs with spaces "
                    f"between, of {arguments.listed(_KEYS)}.{arguments.near(key, _KEYS)}"
                )
            if key in said:
                raise InputError(f"`{key}` is given twice in the phase `{text[:60]}`.")
            said[key] = _whole(value, key) if key in ("batch", "seq") else value
        return cls(**said)


@dataclass(frozen=True)
class Settled:
    """A phase with nothing left open: `amount` tokens, or samples of models without sequences."""

    name: str
    amount: float
    batch: int
    seq: int
    strategy: Strategy | str
    dtype: str

    @property
    def units(self) -> int:
        """Tokens (or samples) of a step."""
        return self.batch * max(1, self.seq)

    @property
    def steps(self) -> int:
        """Optimizer steps: whole ones, the last not cut."""
        return max(1, math.ceil(self.amount / self.units - 1e-9))

    def training(self, nodes: Strategy | None) -> Settled:
        """Its plan trains what `nodes` say; a tree says itself what it trains."""
        if nodes is None or self.strategy == "best" or isinstance(self.strategy, Strategy):
            return self
        return replace(self, strategy=nodes.with_plan(self.strategy))

    def model(self, model: Model) -> Model:
        """The run's, with sequences of the phase."""
        return model if self.seq in (0, model.seq) else model.with_seq(self.seq)


def settle(
    phases: list[Phase],
    ramp: str | None,
    model: Model,
    total: float | None,
    usual: Settled,
) -> list[Settled]:
    """Phases one after the other, a batch ramp as several; `usual` says what they leave open."""
    phases = phases or [Phase()]
    counted = [phase.tokens if model.seq > 0 else phase.samples for phase in phases]
    for phase in phases:
        wrong, right = ("samples", "tokens") if model.seq > 0 else ("tokens", "samples")
        if getattr(phase, wrong) is not None:
            raise InputError(f"`{model.name}` is trained on {right}; give `{right}`.")
    known = sum(float(amount) for amount in counted if amount is not None)
    open_ones = counted.count(None)
    if open_ones > 1:
        raise InputError(
            f"{open_ones} phases do not say how much they train on; all but one have to."
        )
    if total is None and open_ones:
        what = "tokens" if model.seq > 0 else "samples"
        raise InputError(f"how long the run is, is not said; give `{what}` (`--{what} 15T`).")
    if total is not None and (known > total * (1 + 1e-9) or (open_ones and known >= total)):
        raise InputError(
            f"the phases train on {known:.6g}, and the whole run on {total:.6g}; "
            "leave the run's out, or shorten a phase."
        )
    if total is not None and not open_ones and known < total * (1 - 1e-9):
        raise InputError(
            f"the phases train on {known:.6g} of {total:.6g}; let one of them leave its amount "
            "out to take the rest."
        )
    settled = []
    for number, (phase, amount) in enumerate(zip(phases, counted, strict=True), start=1):
        settled.append(
            replace(
                usual,
                name=phase.name or (f"phase {number}" if len(phases) > 1 else "training"),
                amount=(total or 0.0) - known if amount is None else float(amount),
                **{
                    key: value
                    for key in ("batch", "seq", "strategy", "dtype")
                    if (value := getattr(phase, key)) is not None
                },
            )
        )
    return _ramped(settled, ramp) if ramp else settled


def usual_batch(seq: int) -> int:
    """The batch where none is given: about 4 M tokens (as Llama 2), a power of two of samples,
    at most 4,096.

    >>> usual_batch(8192), usual_batch(128), usual_batch(0)
    (512, 4096, 1024)
    """
    if seq <= 0:
        return _SAMPLES_A_STEP
    samples = 1 << max(0, round(math.log2(_TOKENS_A_STEP / seq)))
    return min(samples, _MOST_SAMPLES_A_STEP)


def _ramped(settled: list[Settled], ramp: str) -> list[Settled]:
    """`START:STEP:AMOUNT`: the first phase's batch grows over that many tokens, in equal parts."""
    words = ramp.split(":")
    if len(words) != 3:
        raise InputError(
            f"`{ramp[:40]}` is no ramp; write START:STEP:TOKENS, such as `256:256:100B`: from 256 "
            "samples up by 256 to the batch, over 100 B tokens."
        )
    first = settled[0]
    start, step = _whole(words[0], "ramp start"), _whole(words[1], "ramp step")
    amount = amounts.scaled(words[2], "ramp")
    if not 1 <= start < first.batch or step < 1 or (first.batch - start) % step:
        raise InputError(
            f"the ramp `{ramp}` does not reach the batch of {first.batch:,} from {start:,} by "
            f"steps of {step:,}; take a start below it and a step that divides what lies between."
        )
    count = (first.batch - start) // step
    if count > _MOST_RAMP_STEPS:
        raise InputError(f"a ramp of {count:,} steps is too fine; take at most 200.")
    if amount >= first.amount:
        raise InputError(
            f"the ramp over {amount:.6g} is longer than its phase, {first.amount:.6g}."
        )
    levels = [
        replace(first, name=f"ramp {batch:,}", amount=amount / count, batch=batch)
        for batch in range(start, first.batch, step)
    ]
    trained = sum(level.steps * level.units for level in levels)
    if trained >= first.amount:
        raise InputError(f"the ramp `{ramp}` leaves nothing of its phase; make it shorter.")
    return [*levels, replace(first, amount=first.amount - trained), *settled[1:]]


def _whole(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise InputError(f"`{what}` is `{text[:40]}`; give a whole number.")
    return int(text)
