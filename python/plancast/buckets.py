"""The best buckets of gradients of a plan on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.gradient_traffic.traffic import size_text
from plancast.gradient_traffic.tuning import KNOBS as QUEUES
from plancast.gradient_traffic.tuning import ladder
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns, predict
from plancast.session import Session
from plancast.shown import Shown, Tabular
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.precision import Types

_KNOBS = ("bucket", "first_bucket")


@dataclass(frozen=True)
class Buckets(Shown, Tabular):
    """A plan with the buckets that it has, and with the best of those that were tried."""

    before: Forecast
    best: Forecast
    # Keys of plans, such as `bucket=50MiB`, with the time of an iteration, seconds.
    tried: tuple[tuple[str, float], ...]

    @property
    def keys(self) -> str:
        """What the best plan says of buckets; empty: the plan as it is is the best."""
        return self.tried_of(self.best.iteration_time)

    def tried_of(self, time: float) -> str:
        """The first keys that were tried with which an iteration takes so long."""
        return next(keys for keys, seconds in self.tried if seconds == time)

    @property
    def loss(self) -> float:
        """What an iteration takes more without, as a share of the best."""
        return self.before.iteration_time / self.best.iteration_time - 1

    def to_dict(self) -> dict[str, Any]:
        """What `predict --tune --json` prints under `tuned`."""
        return {
            "default": _said(self.before),
            "default_time_s": self.before.iteration_time,
            "best": self.keys,
            "strategy": self.best.strategy,
            "best_time_s": self.best.iteration_time,
            "loss_of_default": self.loss,
            "tried": self.records(),
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each size that was tried."""
        return [{"keys": keys, "time_s": time} for keys, time in self.tried]

    def __repr__(self) -> str:
        return f"<Buckets, best {self.keys or 'as it is'} of {len(self.tried)}>"

    def __rich__(self) -> RenderableType:
        from plancast.accuracy.report.fitted_table import FittedTable
        from plancast.textual import duration, slower

        as_it_is = f"as it is: {_said(self.before)}"
        table = FittedTable(title="Buckets of gradients")
        table.words("plan with")
        table.numbers("iteration", "")
        for keys, time in self.tried:
            change = "" if not keys else slower(time / self.before.iteration_time)
            mark = " (best)" if keys == self.keys else ""
            table.row((keys or as_it_is) + mark, duration(time), change)
        return table


@checked
def tune_buckets(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    knobs: Sequence[str] | str = "bucket",
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    cuda_graphs: bool | str = False,
    session: Session | None = None,
    **types: Unpack[Types],
) -> Buckets:
    """Tries sizes of buckets for a plan; the plan as it is is among them.

    Args:
      model: what is trained.
      machine: where.
      strategy: a tree, or its short form; buckets that nodes of a tree say stay.
      knobs: `bucket`, `first_bucket` or both.
      batch: global batch, samples per step.
      dtype: matmul precision.
      profile: how the framework runs.
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      session: shared memo; a fresh one by default.
      types: of what is stored and sent, as for `predict`.

    Raises:
      InputError: the plan reduces no gradients in buckets; says what would.

    >>> tuned = tune_buckets(Model.preset("gpt2-xl"), Machine.preset("dgx-a100-80g", hosts=4),
    ...     "mb=4", profile="ddp")
    >>> tuned.loss >= 0, tuned.best.iteration_time <= tuned.before.iteration_time
    (True, True)
    """
    check_nouns(model, machine, session)
    wanted = _knobs(knobs)
    shared = session or Session()

    def run(keys: dict[str, int]) -> Forecast:
        return predict(
            model, machine, _with(strategy, keys), batch=batch, dtype=dtype, profile=profile,
            cuda_graphs=cuda_graphs, session=shared, **types,
        )  # fmt: skip

    before = run({})
    _check(before)
    best, best_keys = before, dict[str, int]()
    tried: dict[str, float] = {"": before.iteration_time}
    gradients = max(entry.gradients for entry in before.memory)
    for knob in wanted:
        for size in ladder(gradients):
            keys = {**best_keys, knob: size}
            if _text(keys) in tried:
                continue
            one = run(keys)
            tried[_text(keys)] = one.iteration_time
            if one.iteration_time < best.iteration_time:
                best, best_keys = one, keys
    return Buckets(before, best, tuple(tried.items()))


def _knobs(text: Sequence[str] | str) -> tuple[str, ...]:
    words = [word.strip() for word in (text.split(",") if isinstance(text, str) else text)]
    for name in words:
        if name in QUEUES and name not in _KNOBS:
            raise InputError(
                f"`{name}` is of queues, which workers with the whole model have; "
                f"`plancast gradients --tune {','.join(words)}` finds it. Plans have "
                f"{arguments.listed(_KNOBS)}."
            )
        if name not in _KNOBS:
            raise InputError(
                f"no knob `{name}` to tune; plans have {arguments.listed(_KNOBS)}."
                f"{arguments.offer(name, _KNOBS)}"
            )
    return tuple(dict.fromkeys(words))


def _check(forecast: Forecast) -> None:
    chosen = forecast.chosen
    overlap = chosen["overlap"].split("+")
    if int(chosen["dp"]) * int(chosen.get("cp", 1)) == 1:
        raise InputError("with dp=1 no gradients are reduced, so there are no buckets to tune.")
    gathers = "param" in overlap and chosen["zero"] != "0"
    if "grad" not in overlap and not gathers and chosen["optimizer"] != "in-backward":
        raise InputError(
            f"overlap={chosen['overlap']}: all gradients are reduced at once behind the last "
            "backward pass, so there are no buckets to tune. Add `overlap=grad` to the plan, or "
            "take a profile that overlaps, such as ddp."
        )


def _with(strategy: Strategy | str, keys: dict[str, int]) -> Strategy | str:
    """The plan that says these sizes."""
    if not keys:
        return strategy
    short = strategy if isinstance(strategy, str) else strategy.short_form
    kept = [item for item in short.split(",") if item.partition("=")[0].strip() not in keys]
    plan = ",".join([*filter(str.strip, kept), _text(keys)])
    if isinstance(strategy, str):
        return plan
    tree = strategy.to_dict()
    if "" in tree.get("nodes", {}):  # the root's word goes before the plan's
        own = {name: said for name, said in tree["nodes"][""].items() if name not in keys}
        tree = {**tree, "nodes": {**tree["nodes"], "": own}}
    return Strategy.from_dict({**tree, "plan": plan})


def _text(keys: dict[str, int]) -> str:
    return ",".join(f"{name}={size_text(size)}" for name, size in sorted(keys.items()))


def _said(forecast: Forecast) -> str:
    names = [name for name in _KNOBS if name in forecast.chosen]
    return ",".join(f"{name}={forecast.chosen[name]}" for name in names)
