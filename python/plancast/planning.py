"""Predicting one plan, and ranking many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack, cast

from plancast import (
    _core,
    arguments,
    default_space,
    precision,
    schedule_file,
    several_spaces,
    strategy_words,
)
from plancast.adapters import fine_tuning_nodes
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.progress import Progress, following
from plancast.question import PlanQuestion, core_of
from plancast.randomness import Randomness
from plancast.ranking import Ranking
from plancast.search.job import SearchJob
from plancast.session import Session
from plancast.simplicity import simplest_of_ties

if TYPE_CHECKING:
    from pathlib import Path

    from plancast.default_space import Space
    from plancast.precision import Types
    from plancast.records import Records
    from plancast.search.driver import Outcome
    from plancast.strategy import Strategy

DEFAULT_PROFILE = "megatron-core"


@checked
def predict(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    cuda_graphs: bool | str = False,
    session: Session | None = None,
    records: Records | None = None,
    timeline: bool = False,
    memory_first: bool = False,
    shortcuts: bool = True,
    what_if: str = "",
    randomness: Randomness | None = None,
    datasheet: bool = False,
    fidelity: str = "closed",
    **types: Unpack[Types],
) -> Forecast:
    """Predicts one optimizer step of `model` on `machine` under `strategy`.

    Args:
      model: what is trained.
      machine: where.
      strategy: a tree, or its short form.
      batch: global batch, samples per step; absent: dp * mb * accum.
      dtype: matmul precision, `bf16`, `fp16`, `fp32`, `tf32`, `fp8`, `fp8-row`,
        `fp8-block`, `mxfp8` or `nvfp4`.
      profile: how the framework runs (`plancast.profiles()`, `plancast.profile_additions()`).
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      session: shared memo; a fresh one by default.
      records: measured kernels to go by (docs/records.md); with a session, give them to that.
      timeline: keep every task, for `timeline()` and `to_perfetto()`.
      memory_first: leave the time of a plan that does not fit at 0.
      shortcuts: run layers at once and leave out periods; without, every digit is the same
        and it takes longer.
      what_if: changes to simulate instead, such as `nic=2x,op:attn=free` (docs/what_if.md).
      randomness: jitter and stragglers, simulated besides; fills `Forecast.distribution`.
      datasheet: without any calibration: nominal peaks and bandwidths, none of the host's
        times. Shows what the measurements behind a forecast are worth.
      fidelity: of collectives: `closed` forms, or `chunks`: every chunk over every link
        (docs/collectives.md).
      types: of what is stored and sent, in place of the profile's: `grad_dtype`,
        `main_grad_dtype`, `reduce_dtype`, `param_dtype`, `gather_dtype`, `state_dtype`,
        `attention_dtype`, `master`; and `optimizer_type` (plancast.precision.Types).

    >>> forecast = predict(
    ...     Model.preset("gpt3-175b"), Machine.preset("dgx-a100-80g", hosts=8),
    ...     "tp=8,pp=8,vpp=3,mb=1,recompute=full", batch=64)
    >>> forecast.fits
    True
    >>> abs(sum(forecast.breakdown().values()) - forecast.iteration_time) < 1e-6
    True
    """
    check_nouns(model, machine, session)
    core_of(strategy)  # refuses what is none before anything else
    tree = None if isinstance(strategy, str) else strategy.copy()
    wanted = precision.asked(types)
    question = PlanQuestion(
        model,
        machine,
        strategy if tree is None else tree,
        _session(session, records),
        batch=arguments.batch(batch),
        dtype=arguments.dtype(dtype),
        profile=arguments.profile(profile, machine.gpu),
        precision=wanted,
        cuda_graphs=cuda_graphs,
        timeline=timeline,
        memory_first=memory_first,
        shortcuts=shortcuts,
        what_if=arguments.word(what_if, "what_if"),
        randomness=None if randomness is None else randomness.drawn(),
        datasheet=datasheet,
        chunk_level=arguments.chunk_level(fidelity),
    )
    asked = {**_asked(model, machine, question.dtype, cuda_graphs), **wanted}
    return Forecast(question.answer(), asked, tree, question, what_if)


@checked
def rank(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    space: str = "",
    where: str = "",
    objective: str = "time",
    top: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    cuda_graphs: bool | str = False,
    nodes: Strategy | None = None,
    session: Session | None = None,
    records: Records | None = None,
    workers: int | None = None,
    exhaustive: bool = False,
    partial: bool | int = False,
    progress: Progress = None,
    found: Callable[[str, float, float], object] | None = None,
    announce: Callable[[int, float], object] | None = None,
    store: str | Path | None = None,
    resume: bool = False,
    ray: str | None = None,
    **types: Unpack[Types],
) -> Ranking:
    """Orders the plans of a space that fit by what they are predicted to take.

    Ties go to the simpler plan. Of the best few (`top`), plans are left out whose time cannot be
    below what these take, by a bound that is found without simulating them; the best are the same.

    Args:
      model: what is trained.
      machine: where.
      batch: global batch, samples per step.
      space: which plans, as in `tp=1|2|4|8,pp=1..16,mb=*,dtype=bf16|fp8`; what is not said
        has a default (docs/cli.md).
      where: of these, plans of which this holds, as in `tp<=8 and mb*seq<=16384` (docs/cli.md).
      objective: `time`, `cost` or `energy` of a step.
      top: keep the best; all by default.
      dtype: matmul precision, where the space says none.
      profile: how the framework runs.
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      nodes: a tree without a plan whose nodes all plans have: which parameters are trained, and
        adapters, as in `Strategy.parse("").lora(rank=16, on=["qkv"])` (docs/finetuning.md).
      session: shared memo; a fresh one by default.
      records: measured kernels to go by (docs/records.md); with a session, give them to that.
      workers: threads; one per core by default.
      exhaustive: simulate every plan that fits even where bounds tell.
      partial: Ctrl-C gives what was found until then (`Ranking.stopped`) instead of
        raising KeyboardInterrupt; a number: the best so many of it, which is sooner there.
      progress: called with plans done and plans in all; by default a bar shows on a terminal or
        in a notebook, with False nothing.
      found: called now and then with the best plan so far, its value of the objective, and what
        all that is left is at least (0: not known).
      announce: called once, after a sample of a large space, with the plans in all and about
        how many seconds they take.
      store: a new file that keeps what is found of each plan (docs/planners.md).
      resume: go on with the search whose store is there.
      ray: the address of a Ray cluster to spread the search over; `local` starts one of
        `workers` processes here (threads, where Ray is not installed).
      types: of what is stored and sent, as for `predict`.

    >>> ranking = rank(Model.preset("gpt3-175b"), Machine.preset("dgx-a100-80g", hosts=8),
    ...     batch=64, space="tp=8,pp=8,vpp=1,mb=1,zero=0")
    >>> ranking[0].iteration_time <= ranking[-1].iteration_time
    True
    """
    check_nouns(model, machine, session)
    if batch is None:
        raise InputError("plans can be compared only at one global batch; give `batch`.")
    if top is not None and top < 1:
        raise InputError(f"`top` is {top}; ask for at least one plan.")
    if workers is not None and not 1 <= workers <= 1024:
        raise InputError(f"`workers` is {workers}; give 1 to 1024 threads.")
    if partial < 0:
        raise InputError(f"`partial` is {partial}; give True, or how many plans.")
    memo, wanted = _session(session, records), precision.asked(types)
    samples_per_step = arguments.batch(batch)
    space = arguments.word(space, "space")
    strategy_words.check_space(space)
    space = schedule_file.with_tables(space)
    where = arguments.word(where, "where")
    objective = arguments.word(objective, "objective")
    dtype, profile = arguments.dtype(dtype), arguments.profile(profile, machine.gpu)
    space, dtypes = several_spaces.split(space, dtype)
    spaces = default_space.spaces(space, where, model, machine)
    elsewhere = store is not None or ray is not None or resume
    if len(dtypes) > 1 and elsewhere:
        raise InputError(
            "a store and a Ray cluster are of plans of one type; give `dtype` one type, and search "
            "the others by themselves."
        )
    searched = machine
    if objective == "cost":
        from plancast.training.prices import priced

        searched = priced(machine)
    job = SearchJob(
        model,
        searched,
        memo,
        samples_per_step or 0,
        objective,
        dtypes[0],
        profile,
        wanted,
        cuda_graphs,
        None if nodes is None else fine_tuning_nodes(nodes),
    )
    result: _core.RankResult | Outcome | several_spaces.Merged
    with following(progress, "plans") as tell:
        found = found or getattr(tell, "found", None)

        def ranked(part: Space, dtype: str, known: list[float]) -> _core.RankResult:
            return _core.rank(
                model._core,
                searched._core,
                memo._core,
                batch=samples_per_step or 0,
                space=part.text,
                where=part.where,
                objective=objective,
                top=top or 0,
                dtype=dtype,
                profile=profile,
                precision=wanted,
                cuda_graphs=cuda_graphs,
                nodes=job.core_nodes,
                workers=workers or 0,
                exhaustive=exhaustive,
                known=known,
                partial=-1 if partial is True else int(partial),
                progress=tell,
                found=found,
                announce=announce,
            )

        if not elsewhere and len(dtypes) * len(spaces) == 1:
            result = ranked(spaces[0], job.dtype, [])
        elif not elsewhere:
            result = several_spaces.merged(spaces, dtypes, machine, top, ranked)
        else:
            from plancast.search.driver import Callbacks
            from plancast.search.run import search

            result = search(
                job,
                spaces,
                top=top,
                exhaustive=exhaustive,
                partial=bool(partial),
                workers=workers,
                store=store,
                resume=resume,
                ray=ray,
                callbacks=Callbacks(tell, found, announce),
            )
    # Plans are not to keep what the ranking remembered.
    fresh = memo.fresh()

    def forecast(plan: _core.Forecast, dtype: str) -> Forecast:
        tree = None if job.nodes is None else job.nodes.with_plan(plan.strategy)
        question = PlanQuestion(
            model,
            machine,
            plan.strategy if tree is None else tree,
            fresh,
            batch=samples_per_step,
            dtype=dtype,
            profile=profile,
            precision=wanted,
            cuda_graphs=cuda_graphs,
        )
        asked = {**_asked(model, machine, dtype, cuda_graphs), **wanted}
        return Forecast(plan, asked, tree, question)

    types_of_plans = getattr(result, "dtypes", None) or [job.dtype] * len(result.plans)
    plans = [forecast(*both) for both in zip(result.plans, types_of_plans, strict=True)]
    return Ranking(result, simplest_of_ties(plans), objective=objective)


@checked
def compile_passes(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    **types: Unpack[Types],
) -> dict[str, str]:
    """The text that each compiler pass leaves, by name of the pass in their order."""
    check_nouns(model, machine, None)
    passes: list[tuple[str, str]] = _core.compile_passes(
        model._core,
        machine._core,
        core_of(strategy),
        batch=arguments.batch(batch),
        dtype=arguments.dtype(dtype),
        profile=arguments.profile(profile, machine.gpu),
        precision=precision.asked(types),
    )
    return dict(passes)


def profiles() -> list[str]:
    """Names of the software profiles."""
    names: list[str] = _core.profile_names()
    return names


def profile_additions() -> dict[str, str]:
    """What may be added to the name of a profile (`deepspeed+liger`), with what it is.

    >>> profile_additions()["flash-attention-3"]
    'attention by FlashAttention-3'
    """
    additions: dict[str, str] = _core.profile_additions()
    return additions


def recompute_sets() -> dict[str, str]:
    """The words of `recompute=selective:WORD+WORD`, and what each covers.

    >>> recompute_sets()["moe_act"]
    "Megatron-Core: the experts' activation; moe/experts.py"
    """
    return dict(_core.recompute_sets())


def _asked(model: Model, machine: Machine, dtype: str, cuda_graphs: bool | str) -> dict[str, Any]:
    """What a launch of a forecast plan needs again."""
    return {
        "dtype": dtype,
        "cuda_graphs": cuda_graphs,
        "model": model,
        "gpus_per_host": machine.gpus_per_host or None,
    }


def _session(session: Session | None, records: Records | None) -> Session:
    if session is None:
        return Session(records=records)
    if records is not None:
        raise InputError(
            "both `session` and `records` are given; make the session with them: "
            "`Session(records=records)`."
        )
    return session


def check_nouns(model: object, machine: object, session: object) -> None:
    """Raises InputError where one of them is something else."""
    arguments.instance(model, Model, "model", 'Model.preset("llama3-8b")')
    arguments.instance(machine, Machine, "machine", 'Machine.preset("dgx-h100", hosts=2)')
    if session is not None:
        arguments.instance(session, Session, "session", "Session()")
        learned = cast("Session", session).learned
        if learned is not None:
            learned.check(cast("Machine", machine).gpu)
