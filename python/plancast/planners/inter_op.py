"""Stages with meshes of their own, by dynamic programme (Alpa's inter-op pass, OSDI'22)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.plan import Plan
from plancast.planners.stage_cuts import Stage, StageOption, cut_stages, total_time
from plancast.planners.stages import cut_points, nodes, stage_tree
from plancast.planners.unit_prices import Price, Question, UnitPrices
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model

# Groups of neighbouring units that stages hold whole, as Alpa clusters layers.
_GROUPS = 16
_PLANS = ("zero=1", "zero=1,recompute=full")
_PLANS_OF_TRANSFORMERS = ("sp,zero=1", "sp,zero=1,recompute=full")
_SAMPLES_A_DEVICE = 8
# Where a plan does not fit after all, it is sought again with this much less memory.
_LESS = 0.93
_TRIES = 3


@checked
def plan_inter_op(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    plans: Sequence[str] | None = None,
    samples: Sequence[int] | None = None,
    groups: int = _GROUPS,
    most_tp: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """Cuts a model into stages and gives each its submesh, dp and tp.

    Of every group of layers the executor is asked what it takes on every submesh, with every dp
    and tp. Stages are then chosen exactly at least T = sum t_i + (B - 1) max t_i, where t_i is a
    stage's time of a micro-batch with its share of what is done once in an iteration, and B the
    number of micro-batches; n stages before the end keep n micro-batches (1F1B). This is done for
    every size of micro-batch and every plan in `plans`; the executor then simulates what was found
    for each, and the fastest that fits is kept. Stages may hold unlike numbers of layers, and have
    unlike meshes, also on sections of a mixed machine.

    T leaves out transfers between stages; the forecast has them.

    Args:
      model: what is trained.
      machine: where. Submeshes are 1, 2, 4, ... devices of one host, or 1, 2, 4, ... hosts.
      batch: global batch, samples per step.
      plans: what all stages have in common, each tried in turn, in the short form; `zero=1` with
        and without full recomputation by default, of transformers with `sp`.
      samples: micro-batches to try, samples on all ranks of dp together; by default powers of two
        that divide the batch, up to 8 a device.
      groups: at most so many groups of neighbouring layers are told apart.
      most_tp: bound on tp; devices of a host by default.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo of the forecasts.

    Raises:
      InputError: no plan fits.

    >>> from plancast import Machine, Model
    >>> plan = plan_inter_op(Model.preset("gpt2-xl"), Machine.preset("dgx1-v100-16g:1"), batch=64,
    ...                      samples=[4], dtype="fp16")
    >>> plan.forecast.fits
    True
    """
    arguments.dtype(dtype)
    tried = samples or [s for s in _powers(_SAMPLES_A_DEVICE * machine.devices) if batch % s == 0]
    if batch < 1 or not all(s > 0 and batch % s == 0 for s in tried):
        raise InputError(f"micro-batches of {list(tried)} samples; each divides the batch {batch}.")
    if groups < 1:
        raise InputError(f"`groups` is {groups}; there is at least one.")
    search = _Search(model, machine, batch, dtype, profile, session or Session(), groups, most_tp)
    found: list[Plan] = []
    refused: list[str] = []
    if plans is None:
        plans = _PLANS if model.config is None else _PLANS_OF_TRANSFORMERS
    for plan, size in itertools.product(plans, tried):
        try:
            found.append(search.best(plan, size))
        except InputError as error:
            refused.append(str(error))
    if not found:
        raise InputError(f"no plan for {model.name} on {machine}: {refused[-1]}")
    best = min(found, key=lambda plan: plan.iteration_time)
    listed = [
        {
            "plan": str(plan.strategy),
            "stages": len(plan.details["stages"]),
            "micro_batch": plan.details["micro_batch"],
            "objective": plan.objective,
            "seconds": plan.iteration_time,
        }
        for plan in sorted(found, key=lambda plan: plan.iteration_time)
    ]
    return Plan(
        best.method,
        best.strategy,
        best.objective,
        "s",
        best.forecast,
        {**best.details, "tried": listed},
    )


def _powers(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length())]


class _Search:
    def __init__(
        self,
        model: Model,
        machine: Machine,
        batch: int,
        dtype: str,
        profile: str,
        session: Session,
        groups: int,
        most_tp: int | None,
    ) -> None:
        self._model, self._machine, self._batch = model, machine, batch
        self._asked: dict[str, Any] = {"dtype": dtype, "profile": profile, "session": session}
        self._units = cut_points(model)
        count = min(groups, len(self._units))
        ends = [round(len(self._units) * i / count) for i in range(count + 1)]
        self._groups = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
        self._prices = UnitPrices(model, machine, dtype, profile, session)
        self._sections = []
        begin = 0
        for section in machine.sections:
            self._sections.append((begin, begin + section.devices, section.gpus_per_host))
            begin += section.devices
        self._most_tp = most_tp or max(each for _, _, each in self._sections)
        self._known: dict[tuple[int, Question], Price | None] = {}

    def best(self, plan: str, samples: int) -> Plan:
        """The stages for one size of micro-batch, simulated."""
        memory = self._machine.memory_bytes
        for _ in range(_TRIES):
            stages = self._stages(plan, samples, memory)
            strategy = self._strategy(stages, plan, samples)
            forecast = predict(
                self._model, self._machine, strategy, batch=self._batch, **self._asked
            )
            if forecast.fits:
                time = total_time(stages, self._batch // samples)
                return Plan(
                    "inter-op",
                    strategy,
                    time,
                    "s",
                    forecast,
                    {"micro_batch": samples, "stages": [self._told(stage) for stage in stages]},
                )
            memory *= _LESS
        raise InputError(
            f"what was found for micro-batches of {samples} with {plan} needs "
            f"{forecast.peak_memory / 2**30:.3g} GiB of a device."
        )

    def _told(self, stage: Stage) -> dict[str, Any]:
        dp, tp = stage.option.mesh
        units = self._held(stage)
        return {
            "nodes": nodes(units),
            "devices": [stage.begin, stage.begin + stage.devices],
            "mesh": {"dp": dp, "tp": tp},
            "seconds": stage.option.seconds,
        }

    def _held(self, stage: Stage) -> list[list[str]]:
        return [self._units[u] for group in self._groups[stage.first : stage.last] for u in group]

    def _stages(self, plan: str, samples: int, memory: float) -> list[Stage]:
        sizes = set()
        for begin, end, each in self._sections:
            sizes |= {n for n in _powers(each) if n <= each} | {each}
            sizes |= {n * each for n in _powers((end - begin) // each)} | {end - begin}
        count = self._batch // samples
        # Times and memory of groups add up, so sums over the first ones serve all intervals.
        known: dict[tuple[int, int, int, int], list[StageOption]] = {}

        def options(first: int, last: int, begin: int, size: int) -> list[StageOption]:
            section = self._section(begin, size)
            if section is None:
                return []
            key = (first, last, section, size)
            if key not in known:
                known[key] = self._options(first, last, section, size, plan, samples, count)
            return known[key]

        return cut_stages(
            len(self._groups),
            self._machine.devices,
            sorted(sizes),
            options,
            micro_batches=count,
            memory=memory,
            most_stages=count if count < len(self._groups) else None,
        )

    def _section(self, begin: int, size: int) -> int | None:
        """Where the devices are; None if they are parts of several hosts or sections."""
        for number, (first, end, each) in enumerate(self._sections):
            if first <= begin and begin + size <= end:
                place = begin - first
                inside = place % each + size <= each
                return number if inside or (place % each == 0 and size % each == 0) else None
        return None

    def _options(
        self,
        first: int,
        last: int,
        section: int,
        size: int,
        plan: str,
        samples: int,
        count: int,
    ) -> list[StageOption]:
        out = []
        for tp in (n for n in _powers(self._most_tp) if size % n == 0):
            question = Question(section, (size // tp, tp), samples, plan)
            total: Price | None = Price()
            for group in range(first, last):
                price = self._group(group, question)
                if price is None or total is None:
                    total = None
                    break
                total = total.plus(price)
            if total is not None:
                out.append(
                    StageOption(
                        total.each + total.once / count,
                        total.held + total.passing + total.beside,
                        total.kept,
                        question.mesh,
                    )
                )
        return out

    def _group(self, group: int, question: Question) -> Price | None:
        key = (group, question)
        if key not in self._known:
            total: Price | None = Price()
            for unit in self._groups[group]:
                price = self._prices.of(self._units[unit], question)
                if price is None or total is None:
                    total = None
                    break
                total = total.plus(price)
            self._known[key] = total
        return self._known[key]

    def _strategy(self, stages: Sequence[Stage], plan: str, samples: int) -> Strategy:
        (dp, tp), rest = stages[0].option.mesh, f",{plan}" if plan else ""
        same = all(stage.option.mesh == (dp, tp) for stage in stages)
        counts = {len(self._held(stage)) for stage in stages}
        mb = samples // dp
        if same:
            short = f"dp={dp},tp={tp},pp={len(stages)},mb={mb}{rest}"
            if len(counts) == 1:
                return Strategy.parse(short)
            return Strategy.from_dict(
                {"plan": short, "stages": [{"nodes": nodes(self._held(s))} for s in stages]}
            )
        held = [
            {
                "nodes": nodes(self._held(stage)),
                "devices": f"gpus {stage.begin}-{stage.begin + stage.devices - 1}",
                "mesh": {"dp": stage.option.mesh[0], "tp": stage.option.mesh[1]},
            }
            for stage in stages
        ]
        devices = self._machine.devices
        return Strategy.from_dict(stage_tree(f"mb={mb}{rest}", held, used=devices, devices=devices))
