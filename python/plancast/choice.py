"""The one question: which plan for this model on this machine (`plancast.plan`)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from plancast import alternatives, arguments
from plancast.adapters import NOT_IN_FILES
from plancast.checked import checked
from plancast.confidence import Confidence, confidence
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.immutable import Immutable
from plancast.machine import Machine
from plancast.model import Model
from plancast.plan_search import Search, software, written_for
from plancast.planning import check_nouns
from plancast.progress import Progress, following
from plancast.recipes.beside import beside
from plancast.session import Session
from plancast.shown import Shown, Tabular
from plancast.training.phases import usual_batch

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.precision import Types
    from plancast.records import Records
    from plancast.strategy import Strategy
    from plancast.training.training_run import TrainingRun

# A forecast of it takes too long for whoever has pressed Ctrl-C.
_NO_RUN = "stopped before time and cost of the whole run were computed"


@checked
@dataclass(frozen=True)
class Choice(Immutable, Shown, Tabular):
    """The answer of `plancast.plan`: the best plan, what it stands on, and how it is run.

    `best` is None where nothing fits; `nearest` says then what needs least, and `would_fit` what
    would do. `file` is where the framework's argument file was written; `stopped`, whether Ctrl-C
    ended it, so that plans that were not looked at may be better.
    """

    model: Model
    machine: Machine
    batch: int
    framework: str
    best: Forecast | None
    others: tuple[alternatives.Alternative, ...] = ()
    run: TrainingRun | None = None
    nearest: dict[str, Any] | None = None
    would_fit: tuple[str, ...] = ()
    file: str = ""
    seconds: float = 0.0
    said: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def confidence(self) -> Confidence | None:
        """How sure the forecast is, with the reasons."""
        return None if self.best is None else confidence(self.best)

    @property
    def headroom(self) -> float:
        """Memory of a GPU that is left free at the peak, bytes."""
        return 0.0 if self.best is None else self.best.memory_capacity - self.best.peak_memory

    def launch_config(self) -> str:
        """The text of the framework's argument file."""
        return self._chosen().without_nodes().launch_config(self.framework)

    def command(self) -> str:
        """What to type on each host, with the argument file; capitals are your own files."""
        from plancast.frameworks import commands

        own = self.file or commands.file_name(self.framework)
        text = commands.command_in(self.launch_config(), own)
        return text or commands.command(
            self.framework,
            own,
            hosts=self.machine.hosts,
            gpus_per_host=max(section.gpus_per_host for section in self.machine.sections),
        )

    def write_launch(self, path: str | Path) -> Choice:
        """Writes the argument file, into a folder or under a name; gives the choice with it."""
        from plancast.frameworks import commands

        file = commands.write(self.framework, path, self.launch_config())
        return replace(self, file=str(file))

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast plan --json`."""
        sure = self.confidence
        return {
            "model": self.model.name,
            "machine": str(self.machine),
            "batch": self.batch,
            "framework": self.framework,
            "fits": self.best is not None,
            "strategy": None if self.best is None else self.best.strategy,
            "forecast": None if self.best is None else self.best.to_dict(),
            "headroom_bytes": self.headroom,
            "confidence": None if sure is None else sure.to_dict(),
            "alternatives": [other.to_dict() for other in self.others],
            "run": None if self.run is None else self.run.to_dict(),
            "launch_file": self.file or None,
            "launch": None if self.best is None else self.launch_config(),
            "command": None if self.best is None else self.command(),
            "nearest": self.nearest,
            "would_fit": list(self.would_fit),
            "seconds": self.seconds,
            "said": list(self.said),
            "stopped": self.stopped,
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for the plan and for each alternative; none where nothing fits."""
        from plancast.plan_record import run_record

        if self.best is None:
            return []
        rows = [(self.best, 0.0, ""), *((o.forecast, o.slower, o.trades) for o in self.others)]
        return [{**run_record(one), "slower": slower, "trades": t} for one, slower, t in rows]

    def plot_breakdown(self) -> Any:
        """Where the time of the plan and of each alternative goes, as a plotly figure."""
        from plancast.charts.breakdown import breakdown

        plans = [self._chosen(), *(other.forecast for other in self.others)]
        names = [f"{place}. {plan.strategy}" for place, plan in enumerate(plans, start=1)]
        return breakdown(plans, names, f"Plans for {self.model.name} on {self.machine.name}")

    def _chosen(self) -> Forecast:
        if self.best is None:
            raise InputError(
                f"no plan of `{self.model.name}` fits on {self.machine}, so there is none to run."
            )
        return self.best

    def __rich__(self) -> RenderableType:
        from plancast.report.choice import choice_tables

        return choice_tables(self)

    def __repr__(self) -> str:
        what = "nothing fits" if self.best is None else self.best.strategy
        return f"<Choice for {self.model.name} on {self.machine}: {what}>"


@checked
def plan(
    model: Model,
    machine: Machine,
    *,
    framework: str | None = None,
    batch: int | None = None,
    tokens: float | str | None = None,
    samples: float | str | None = None,
    price: float | str = "on-demand",
    space: str = "",
    dtype: str | None = None,
    profile: str | None = None,
    cuda_graphs: bool | str = False,
    nodes: Strategy | None = None,
    session: Session | None = None,
    records: Records | None = None,
    partial: bool = False,
    progress: Progress = None,
    **types: Unpack[Types],
) -> Choice:
    """Which plan to train a model with on a machine, and what it takes.

    Looks at the default space of `rank`, with optimizer state, parameters and activations in host
    memory where nothing else fits, and keeps what the framework can run.

    Args:
      model: what is trained.
      machine: where.
      framework: `megatron-core` (or `megatron`), `torchtitan`, `deepspeed`, `fsdp` or `composer`;
        by the profile if absent.
      batch: global batch, samples per step; about 4 M tokens by default.
      tokens: how many are trained on, or text such as `15T`: also tells days and dollars.
      samples: the same for models without sequences.
      price: dollars per GPU-hour, or `on-demand`, `reserved` or `spot`.
      space: which plans, as for `rank`; by default that of `rank`.
      dtype: matmul precision; bf16 by default, fp16 on GPUs that have no units for bf16.
      profile: how the framework runs; the framework's own by default.
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      nodes: what all plans train, as for `rank`.
      session: shared memo; a fresh one by default.
      records: measured kernels to go by (docs/records.md); with a session, give them to that.
      partial: Ctrl-C gives the best of what was found until then (`Choice.stopped`), if anything
        was, instead of raising KeyboardInterrupt.
      progress: called with plans done and plans in all; by default a bar shows on a terminal or
        in a notebook, with False nothing.
      types: of what is stored and sent, as for `predict`.

    Raises:
      InputError: the batch suits no plan, or the framework runs none of them.

    >>> choice = plan(Model.preset("gpt2"), Machine.preset("dgx-a100-80g:1"), batch=64)
    >>> choice.best.fits, choice.framework
    (True, 'megatron-core')
    """
    check_nouns(model, machine, session)
    started = time.perf_counter()
    name, used = software(framework, profile, model)
    said = [] if framework is not None else written_for(name, used)
    size = arguments.batch(batch)
    if size is None:
        size = _usual_batch(model, machine)
        like = f", {size * model.seq / 1e6:.1f} M tokens" if model.seq > 0 else ""
        said.append(f"no batch is given: {size:,} samples a step{like}")
    elif size > machine.devices and size % machine.devices:
        even = round(size / machine.devices) * machine.devices
        said.append(
            f"a batch of {size:,} does not divide over all {machine.devices:,} GPUs, which leaves "
            f"out plans; {even:,} does"
        )
    if dtype is None and _lacks_bf16(machine):
        dtype = "fp16"
        said.append(f"{machine.gpu} has no units for bf16, so the type is fp16")
    if session is None:
        session = Session(records=records)
    elif records is not None:
        raise InputError("give `records` to the session: `Session(records=records)`.")
    how: dict[str, Any] = {
        "dtype": arguments.dtype("bf16" if dtype is None else dtype),
        "cuda_graphs": cuda_graphs,
        "session": session,
        **types,
    }
    space = arguments.word(space, "space")
    search = Search(model, machine, size, name, used, space, how, partial, nodes)
    if nodes is not None:
        said.append(f"argument files say {NOT_IN_FILES}")
    with following(progress, "plans") as tell:
        plans = search.plans(tell)
    answer = Choice(
        model=model,
        machine=machine,
        batch=size,
        framework=name,
        best=plans[0] if plans else None,
        others=alternatives.of(plans),
        said=(*said, *search.said),
        stopped=search.stopped,
    )
    try:
        if plans and not search.stopped and search.recipe is not None:
            answer = replace(answer, said=(*answer.said, beside(plans, search.recipe)))
        if not plans:
            answer = replace(answer, nearest=search.nearest())
            answer = replace(answer, would_fit=tuple(search.would_fit(answer.nearest)))
        elif (tokens is not None or samples is not None) and search.stopped:
            answer = replace(answer, said=(*answer.said, _NO_RUN))
        elif tokens is not None or samples is not None:
            run = _run(answer, used, tokens, samples, price, how)
            answer = replace(answer, run=run, said=(*answer.said, *_too_short(run)))
    except KeyboardInterrupt as error:
        if not partial or type(error) is not KeyboardInterrupt:
            raise
        said_now = _NO_RUN if plans else "stopped before it was known what would fit"
        answer = replace(answer, stopped=True, said=(*answer.said, said_now))
    return replace(answer, seconds=time.perf_counter() - started)


def _too_short(run: TrainingRun) -> list[str]:
    """What to say of a run that is one step: a unit of the number is missing."""
    if run.steps > 1:
        return []
    return ["that is a single step; a number of tokens is written 300B or 15T"]


def _lacks_bf16(machine: Machine) -> bool:
    if len(machine.sections) != 1:
        return False
    gpu = machine.to_dict()["gpu"]
    return not gpu.get("bf16_tflops") and bool(gpu.get("fp16_tflops"))


def _usual_batch(model: Model, machine: Machine) -> int:
    """About 4 M tokens; whole samples for each GPU, where that leaves any."""
    usual, gpus = usual_batch(model.seq), machine.devices
    if usual % gpus == 0 or gpus > usual:
        return usual
    return max(1, round(usual / gpus)) * gpus


def _run(
    answer: Choice,
    profile: str,
    tokens: float | str | None,
    samples: float | str | None,
    price: float | str,
    how: dict[str, Any],
) -> TrainingRun:
    """The whole run with the best plan."""
    from plancast.training.run import train

    best = answer._chosen()
    return train(
        answer.model, answer.machine, best.plan, tokens=tokens, samples=samples,
        batch=answer.batch, price=price, profile=profile, **how,
    )  # fmt: skip
