"""Looking for the best plan: the default space and the recipe, then what needs host memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast import _core, alternatives, default_space, several_spaces
from plancast.arguments import shipped_profile
from plancast.cached import cached_property
from plancast.errors import InputError
from plancast.fine_tuning import figures, fine_tuned
from plancast.forecast import Forecast
from plancast.fullness import full
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, rank
from plancast.ranking import Ranking
from plancast.recipes.beside import AS_FAST, recipe_plan
from plancast.simplicity import complexity
from plancast.textual import duration, percent
from plancast.training.best_plan import (
    FEW,
    NoPlanFitsError,
    Ranked,
    Tell,
    fastest_first,
    good_plans,
    least_space,
    micro_batches,
    why_none,
)

if TYPE_CHECKING:
    from plancast.strategy import Strategy

# Plans of a default space, but for those that only recompute more, up to which all are looked at,
# some 50 CPU seconds; models with experts have more from 16k tokens on.
_WHOLE = 20_000
_LONG = 2_000  # from which on a first plan is looked for by itself
_BEST = 16  # of them that are kept
_SHOWN = 3  # after Ctrl-C, with the alternatives
_ON_HOST = "offload=optimizer|optimizer+param|optimizer+param+activations"
# The framework for which recipes are shipped, by its name in launch files.
_OF_RECIPES = "megatron-core"
# What trains nets without sequences, where nothing is said.
_OF_NETS = "ddp"
# A third of the runs that fill their memory take over 10 % longer (plancast.fullness).
_FULL_COSTS = 0.035
# Numbers of hosts that are tried where nothing fits, each twice the one before.
_DOUBLINGS = 4


def software(framework: str | None, profile: str | None, model: Model) -> tuple[str, str]:
    """The framework and the software profile, where one or neither is said."""
    from plancast.frameworks.formats import FRAMEWORKS, framework_name

    if framework is not None:
        name = framework_name(framework)
        return name, profile or FRAMEWORKS[name].profiles[0]
    used = profile or (DEFAULT_PROFILE if model.seq > 0 else _OF_NETS)
    own = (name for name, one in FRAMEWORKS.items() if shipped_profile(used) in one.profiles)
    return next(own, framework_name("megatron")), used


def written_for(framework: str, profile: str) -> list[str]:
    """What to say where argument files are those of another software than the profile's."""
    from plancast.frameworks.formats import FRAMEWORKS

    if shipped_profile(profile) in FRAMEWORKS[framework].profiles:
        return []
    return [f"no argument files of `{profile}` are written: the file is one of {framework}"]


class Search:
    """Plans that fit and that a framework runs: of the default space, then with host memory."""

    def __init__(
        self,
        model: Model,
        machine: Machine,
        batch: int,
        framework: str,
        profile: str,
        space: str,
        how: dict[str, Any],
        partial: bool = False,
        nodes: Strategy | None = None,
    ) -> None:
        self._model, self._machine, self._batch = model, machine, batch
        self._framework, self._profile = framework, profile
        self._space, self._how, self._nodes = space, how, nodes
        self._partial = partial
        self._spaces: dict[str, list[str]] = {}
        self._least: Ranking | None = None
        self._refused = ""
        self._seen: list[Forecast] = []
        self._open = 0
        self.said: list[str] = []
        self.stopped = False

    def plans(self, progress: Tell | None) -> list[Forecast]:
        """The fastest first; empty: nothing fits.

        If Ctrl-C stops it and `partial` was asked for, of those that were found until then.
        """
        try:
            return self._plans(progress)
        except KeyboardInterrupt as error:
            # A request to end, which is another type, wants no answer.
            if not self._partial or type(error) is not KeyboardInterrupt:
                raise
            found = self._runnable(fastest_first(self._seen))
            if not found:
                raise
        self.stopped = True
        number = f"{self._open:,} plans" if self._open else "some plans"
        self.said.append(f"stopped: {number} were not looked at and may be better")
        return self._simplest_first(found)

    def _plans(self, progress: Tell | None) -> list[Forecast]:
        if self._space:
            ranking = self._ranked(self._space, progress)
            self._least = ranking
            return self._runnable(ranking)
        plans = self._runnable(self._found(progress))
        if self.recipe is not None and self.recipe.fits:
            plans = fastest_first([*plans, *self._runnable([self.recipe])])
        if any(not full(plan) for plan in plans):
            return self._simplest_first(plans)
        mb = micro_batches(self._model).split("|")[0]
        ranking = self._ranked(f"mb={mb},vpp=1,recompute=none|selective|full,{_ON_HOST}")
        on_host = self._runnable(ranking)
        if on_host and not plans:
            self.said.append("nothing fits without host memory, so a part lives there (offload)")
        return self._simplest_first(fastest_first([*plans, *on_host]))

    def _found(self, progress: Tell | None) -> Sequence[Forecast]:
        """The best of the default space of `rank`, and some that need less memory."""
        whole = self._plans_of("")
        if self._partial and len(whole) > _LONG:
            self._soon()
        bounded_first = default_space.bounded_first(whole)
        if bounded_first > _WHOLE:
            return self._usual(whole, bounded_first, progress)
        # These first: they are soon found, for whoever stops the rest.
        roomy_space = f"vpp=1,mb={micro_batches(self._model)},recompute=full"
        first, then = _in_turn(progress, len(self._plans_of(roomy_space)), len(whole))
        roomy = self._ranked(roomy_space, first, top=_BEST)
        best = self._ranked("", then, top=_BEST)
        if not len(best):
            self._least = best
            if best.nearest is None:
                raise InputError(why_none(best, self._model, self._machine, self._batch))
            return []
        return fastest_first([*best, *roomy])

    @cached_property
    def recipe(self) -> Forecast | None:
        """What the framework's makers ship for the model and machine, fit or not."""
        if self._framework != _OF_RECIPES or self._nodes is not None:
            return None
        return recipe_plan(
            self._model, self._machine, batch=self._batch, profile=self._profile, **self._how
        )

    def _soon(self) -> None:
        """A first plan in a second, for whoever stops the rest."""
        mb = micro_batches(self._model).split("|")[0]
        with contextlib.suppress(InputError):  # the framework may have none of them
            self._ranked(f"pp=1,vpp=1,cp=1,zero=3,mb={mb},recompute=full", top=1)

    def _plans_of(self, space: str) -> list[str]:
        """The plans of a space."""
        if space not in self._spaces:
            found: dict[str, None] = {}
            for one in default_space.spaces(space, "", self._model, self._machine):
                with contextlib.suppress(*one.may_raise):
                    found |= dict.fromkeys(self._core.enumerate(one.text, one.where)[0])
            self._spaces[space] = list(found)
        return self._spaces[space]

    @cached_property
    def _core(self) -> _core.PlanSearch:
        return _core.PlanSearch(
            self._model._core, self._machine._core, self._how["session"]._core, batch=self._batch,
            objective="time", dtype=self._how["dtype"], profile=self._profile, precision={},
            cuda_graphs=self._how["cuda_graphs"], nodes=_core.Strategy.parse(""),
        )  # fmt: skip

    def _usual(
        self, whole: Sequence[str], bounded_first: int, progress: Tell | None
    ) -> Sequence[Forecast]:
        """Of a space that is too large the usual plans, and those near the best of them."""
        looked_at: set[str] = set()
        took = 0.0

        def ranked(space: str, told: Tell | None) -> Ranking:
            nonlocal took
            looked_at.update(self._plans_of(space))
            ranking = self._ranked(space, told, top=FEW)
            took += ranking.seconds
            return ranking

        try:
            found = good_plans(
                self._model, self._machine, batch=self._batch, profile=self._profile,
                ranked=ranked, progress=progress,
            )  # fmt: skip
        except NoPlanFitsError as error:
            self._least = error.ranking
            if error.ranking.nearest is None:
                raise InputError(str(error)) from None
            return []
        found = fastest_first([*found, *self._copies(found, ranked)])
        left = len(set(whole) - looked_at)
        more = bounded_first / max(1, default_space.bounded_first(list(looked_at)))
        self.said.append(
            f"the default space has {len(whole):,} plans, of which {left:,} were not looked at: "
            f"these are the best of the usual {len(whole) - left:,}; `plancast rank` looks at all, "
            f"in about {duration(took * more)}"
        )
        return found

    def _copies(self, found: Sequence[Forecast], ranked: Ranked) -> list[Forecast]:
        """What the default space has besides, copies of shards, with sizes of the best plans."""
        sizes = [plan.strategy for plan in found if "pp=1," in plan.strategy][:3]
        tps = "|".join(sorted({alternatives.items(text).get("tp", "1") for text in sizes}))
        more: list[Forecast] = []
        for one in default_space.spaces("", "", self._model, self._machine):
            if one.beside and tps:
                with contextlib.suppress(*one.may_raise):
                    more += ranked(f"tp={tps},cp=1,{one.text}", None)
        return more

    def nearest(self) -> dict[str, Any] | None:
        """Where nothing fits: what needs least, and what it lacks."""
        if self._refused:
            raise InputError(
                f"{self._framework} can run none of the plans that fit: {self._refused} Other "
                "frameworks: `--for megatron`, `torchtitan`, `deepspeed`, `fsdp`."
            )
        least = self._least
        if least is None or least.nearest is None:
            least = self._ranked(least_space(self._model))
        return least.nearest

    def _simplest_first(self, plans: list[Forecast]) -> list[Forecast]:
        """The simplest of those that take as long as the first, then the others.

        One that fills its memory comes after one that does not and takes little longer.
        """
        if not plans:
            return plans
        fastest = plans[0]
        room = (plan for plan in plans if not full(plan))
        roomy = next(room, fastest)
        if full(fastest) and roomy.iteration_time <= fastest.iteration_time * (1 + _FULL_COSTS):
            gain = percent(roomy.iteration_time / fastest.iteration_time - 1)
            self.said.append(
                f"{fastest.strategy} is {gain} faster and fills the memory, which slows many runs "
                "by more"
            )
            plans = [roomy, *(plan for plan in plans if plan is not roomy)]
            fastest = roomy
        most = fastest.iteration_time * (1 + AS_FAST)
        tied = [p for p in plans if p.iteration_time <= most and full(p) <= full(fastest)]
        best = min(tied, key=complexity)
        if best is fastest:
            return plans
        self.said.append(
            f"{fastest.strategy} is {percent(best.iteration_time / fastest.iteration_time - 1)} "
            "faster, which nobody can tell apart, and less simple"
        )
        return [best, *(plan for plan in plans if plan is not best)]

    def would_fit(self, nearest: dict[str, Any] | None) -> list[str]:
        """What fits instead of the nearest: other plans, other software, more hosts."""
        lines = []
        if default_space.mostly_tables(self._model):
            lines.append("tables cut over GPUs: `--method intra-op` does that")
        if self._space:
            others = Search(
                self._model, self._machine, self._batch, self._framework, self._profile, "",
                self._how, nodes=self._nodes,
            ).plans(None)  # fmt: skip
            if others:
                return [f"outside of `{self._space}` fits {_fact(others[0])}; leave --space out"]
        if self._framework != "megatron-core":
            others = self._of("megatron-core", self._machine)
            if others:
                lines.append(f"with `--for megatron` fits {_fact(others[0])}")
        hosts = self._machine.hosts
        name = self._machine.name
        if len(self._machine.sections) == 1 and name in Machine.presets():
            # With twice the GPUs a plan needs half of the memory at best.
            need = nearest["peak_memory_bytes"] / nearest["memory_capacity_bytes"] if nearest else 2
            hosts *= 1 << max(0, math.ceil(math.log2(max(need, 1))) - 1)
            for _ in range(_DOUBLINGS):
                hosts *= 2
                larger = Machine.preset(name, hosts=hosts)
                plans = self._of(self._framework, larger)
                if plans:
                    lines.append(f"on `{name}:{hosts}` fits {_fact(plans[0])}")
                    break
        if self._nodes is not None:
            return lines
        tuned = fine_tuned(self._model, self._machine, self._batch, self._profile, self._how)
        return [*lines, tuned] if tuned else lines

    def _of(self, framework: str, machine: Machine) -> list[Forecast]:
        """A few plans of another software or machine."""
        said = self._profile if framework == self._framework else None
        _, profile = software(framework, said, self._model)
        other = Search(
            self._model, machine, self._batch, framework, profile, "", self._how,
            nodes=self._nodes,
        )  # fmt: skip
        ranking = other._ranked(least_space(self._model))
        return other._runnable(ranking) if len(ranking) else []

    def _ranked(self, space: str, progress: Tell | None = None, top: int = 64) -> Ranking:
        ranking = rank(
            self._model, self._machine, batch=self._batch, space=space, top=top,
            profile=self._profile, partial=_SHOWN if self._partial else False,
            progress=progress, nodes=self._nodes, **self._how,
        )  # fmt: skip
        if self._partial:
            self._seen += ranking
        if ranking.stopped:
            self._open = ranking.open
            raise KeyboardInterrupt
        return ranking

    def _runnable(self, plans: Sequence[Forecast] | Ranking) -> list[Forecast]:
        """Those of which the framework's file can be written."""
        kept = []
        for one in plans:
            try:
                one.without_nodes().launch_config(self._framework)
            except InputError as error:
                self._refused = self._refused or str(error)
                continue
            kept.append(one)
        return kept


def _in_turn(tell: Tell | None, first: int, then: int) -> tuple[Tell | None, Tell | None]:
    """What two rankings tell one listener: of so many plans, then of so many."""
    if tell is None:
        return None, None
    return (
        lambda done, total: tell(done, total + then),
        lambda done, total: tell(first + done, first + total),
    )


def _fact(plan: Forecast) -> str:
    return f"{plan.strategy}: {figures(plan)}"


def wider(
    ranking: Ranking, model: Model, machine: Machine, *, batch: int, profile: str, **how: Any
) -> Ranking:
    """Where nothing of a ranked space fits: the ranking with what does.

    With optimizer state, parameters or activations in host memory, unless the space says
    `offload`; else `Ranking.outside` is a plan outside of the space.

    Args:
      ranking: without a plan that fits, or it is given back as it is.
      model: what is trained.
      machine: where.
      batch: samples per step.
      profile: software profile.
      how: other arguments of `plancast.rank`.
    """
    if len(ranking) or ranking.nearest is None:
        return ranking
    asked = several_spaces.first(ranking.space)
    said = alternatives.items(asked)
    if "offload" not in said:
        on_host = rank(
            model, machine, batch=batch, space=f"{asked},{_ON_HOST}", profile=profile, **how
        )
        if len(on_host):
            return on_host
    framework, _ = software(None, profile, model)
    nodes = how.pop("nodes", None)
    search = Search(model, machine, batch, framework, profile, "", how, nodes=nodes)
    found = search.plans(None)
    return ranking.with_outside(found[0]) if found else ranking
