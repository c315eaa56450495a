"""What if something were faster: by simulating again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Unpack

from plancast import _core, arguments, precision
from plancast.checked import checked
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns, predict
from plancast.question import core_of
from plancast.session import Session
from plancast.shown import Shown
from plancast.strategy import Strategy

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from plancast.precision import Types


@dataclass(frozen=True)
class WhatIf:
    """A plan as it is and with changes, both simulated."""

    changes: str
    before: Forecast
    after: Forecast

    @property
    def change(self) -> float:
        """What the changes add to the iteration time, seconds; negative: they help."""
        return self.after.iteration_time - self.before.iteration_time

    @property
    def speedup(self) -> float:
        """How many times as fast an iteration is."""
        return self.before.iteration_time / self.after.iteration_time

    def to_dict(self) -> dict[str, Any]:
        """What `predict --what-if --json` prints under `what_if`."""
        return {
            "changes": self.changes,
            "iteration_time_s_before": self.before.iteration_time,
            "iteration_time_s_after": self.after.iteration_time,
            "change_s": self.change,
            "speedup": self.speedup,
        }

    def __str__(self) -> str:
        from plancast.textual import duration, slower

        return (
            f"{self.changes}: {duration(self.before.iteration_time)} -> "
            f"{duration(self.after.iteration_time)}, "
            f"{slower(self.after.iteration_time / self.before.iteration_time)}"
        )


@dataclass(frozen=True)
class Sensitivity:
    """One change and what it does to the iteration time, seconds."""

    change: str
    iteration_time: float
    gain: float


class Sensitivities(Shown):
    """What helps most, best first."""

    def __init__(self, iteration_time: float, rows: list[tuple[str, float]]) -> None:
        self.iteration_time = iteration_time
        self._rows = [Sensitivity(name, time, iteration_time - time) for name, time in rows]

    def __iter__(self) -> Iterator[Sensitivity]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Sensitivity:
        return self._rows[index]

    def to_dict(self) -> list[dict[str, Any]]:
        """What `predict --sensitivities --json` prints under `sensitivities`."""
        return [asdict(row) for row in self._rows]

    def to_frame(self) -> pd.DataFrame:
        """A row for each change: seconds of the iteration with it, and what it saves."""
        import pandas as pd

        names = {"iteration_time": "iteration_time_s", "gain": "gain_s"}
        return pd.DataFrame.from_records(self.to_dict()).rename(columns=names)

    def plot_gains(self, top: int = 15) -> Any:
        """What the best changes save, as a plotly figure."""
        from plancast.charts.gains import gains

        return gains(self, top)

    def __repr__(self) -> str:
        best = f", best {self._rows[0].change}" if self._rows else ""
        return f"<Sensitivities to {len(self)} changes{best}>"

    def __rich__(self) -> RenderableType:
        from plancast.accuracy.report.fitted_table import FittedTable
        from plancast.textual import duration

        table = FittedTable(title="What helps most")
        table.words("if")
        table.numbers("iteration", "saves")
        for row in self._rows:
            share = row.gain / self.iteration_time if self.iteration_time > 0 else 0.0
            table.row(row.change, duration(row.iteration_time), f"{100 * share:.2f} %")
        return table


@checked
def what_if(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    changes: str,
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
    **types: Unpack[Types],
) -> WhatIf:
    """Predicts a plan as it is and with `changes`, such as `nic=2x,op:attn=free`.

    A change is TARGET=FACTOR. TARGET is a link class (`nic`) or one link of it (`nic:3`),
    `op:LABEL`, `kernel:FAMILY`, `purpose:PURPOSE`, `collective:KIND`, `compute`,
    `communication`, `launch` or `device:NUMBER`; FACTOR is `2x`, `80%` or `free` (docs/what_if.md).

    >>> answer = what_if(Model.preset("gpt3-175b"), Machine.preset("dgx-a100-80g", hosts=8),
    ...     "tp=8,pp=8,mb=1,recompute=full", "nic=2x,purpose:tp=free", batch=64)
    >>> answer.change < 0, answer.speedup > 1
    (True, True)
    """
    shared = session or Session()
    arguments.word(changes, "changes")

    def run(what: str) -> Forecast:
        return predict(
            model,
            machine,
            strategy,
            batch=batch,
            dtype=dtype,
            profile=profile,
            session=shared,
            what_if=what,
            **types,
        )

    return WhatIf(changes, run(""), run(changes))


@checked
def sensitivities(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    *,
    candidates: str = "",
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    cuda_graphs: bool | str = False,
    session: Session | None = None,
    **types: Unpack[Types],
) -> Sensitivities:
    """Simulates one change at a time and ranks what helps most.

    Args:
      model: what is trained.
      machine: where.
      strategy: a tree, or its short form.
      candidates: changes to try, as for `what_if`; by default each link class, kernel family,
        purpose and collective of the plan and its longest ops twice as fast, and
        communications and launches free.
      batch: global batch, samples per step.
      dtype: matmul precision.
      profile: how the framework runs.
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      session: shared memo; a fresh one by default.
      types: of what is stored and sent, as for `predict`.

    >>> ranked = sensitivities(Model.preset("gpt3-175b"),
    ...     Machine.preset("dgx-a100-80g", hosts=8), "tp=8,pp=8,mb=1,recompute=full", batch=64)
    >>> ranked[0].change
    'compute=2x'
    """
    check_nouns(model, machine, session)
    time, rows = _core.sensitivities(
        model._core,
        machine._core,
        core_of(strategy),
        (session or Session())._core,
        batch=arguments.batch(batch),
        dtype=arguments.dtype(dtype),
        profile=arguments.profile(profile, machine.gpu),
        precision=precision.asked(types),
        cuda_graphs=cuda_graphs,
        candidates=arguments.word(candidates, "candidates"),
    )
    return Sensitivities(time, rows)
