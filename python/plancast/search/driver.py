"""A ranking whose plans others evaluate, and whose results a store keeps.

The same as `_core.rank` (planner/search/rank.cc), plan by plan: bounds of all plans, then rounds of
simulations, best bound first, until no plan that is left can be among the best: one law of both,
`_core.BestFirst`. What is in the store is not asked for again, but decided on in the same order, so
that a search that was cut short ends as one that was not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from plancast import _core, several_spaces
from plancast.default_space import Space
from plancast.search.job import SearchJob
from plancast.search.pools import Pool, Step, Threads, Value
from plancast.search.store import Known, WritableStore

_SIMULATIONS = 4  # plans of a chunk
_AHEAD = 64  # plans that idle workers may begin with before a round is over
_SAMPLED = 32  # plans tell how long all of a large space take


@dataclass
class Callbacks:
    """Of `plancast.rank`; None where nobody asks."""

    progress: Callable[[int, int], object] | None = None
    found: Callable[[str, float, float], object] | None = None
    announce: Callable[[int, float], object] | None = None


@dataclass
class Outcome:
    """What a search says beside its plans: `plancast.ranking.Figures`."""

    space: str
    excluded: dict[str, int]
    evaluated: int = 0
    bounded: int = 0
    stopped: bool = False
    open: int = 0
    bound: float = 0.0
    seconds: float = 0.0
    nearest: tuple[str, int, int, str] | None = None
    plans: list[_core.Forecast] = field(default_factory=list)


class Search:
    """The plans of some spaces, and what is known of each."""

    def __init__(self, job: SearchJob, spaces: Sequence[Space]) -> None:
        self.begin = time.monotonic()
        self.job = job
        self._core = job.core()
        self.plans, texts = list[str](), list[str]()
        self._left_out: Counter[str] = Counter()
        for space in spaces:
            try:
                plans, left_out, text = self._core.enumerate(space.text, space.where)
            except space.may_raise:
                continue
            self.plans += plans
            self._left_out.update(space.left_out(left_out))
            texts.append(text)
        self.space = several_spaces.joined(texts)
        self.identity = job.identity(self.space, spaces[0].where, self.plans)

    def run(
        self,
        store: WritableStore,
        pool: Pool,
        *,
        top: int | None,
        exhaustive: bool,
        partial: bool,
        callbacks: Callbacks,
    ) -> Outcome:
        """Decides on the plans, and describes the best of them on as many threads."""
        self._store, self._pool, self._callbacks = store, pool, callbacks
        self._known = store.known()
        self._running: dict[object, list[int]] = {}
        self._flying: set[int] = set()
        self._decided: dict[int, None] = {}  # plans in this order
        self._bounded = 0
        self._left = 0.0  # what the objective of what is left is at least
        self._best: int | None = None  # of the plans that were decided on
        outcome = Outcome(self.space, {})
        # By runs of the user's own, what a plan takes is not a matter of its simulated time alone.
        by_bounds = top is not None and not exhaustive and self.job.session.learned is None
        try:
            if by_bounds and top is not None:
                self._try_best_bounds(top)
            else:
                self._try_all()
        except KeyboardInterrupt:
            if not partial:
                raise
            self._callbacks = Callbacks()
            self._decide(plan for plan in self._known if self._is_simulated(plan))
            outcome.stopped, outcome.bound = True, self._left
            outcome.open = len(self.plans) - len(self._decided)
        outcome.bounded = self._bounded
        self._finish(outcome, top)
        outcome.seconds = time.monotonic() - self.begin
        return outcome

    def _try_all(self) -> None:
        order = _core.alike_together(self.plans)
        begin, asked = time.monotonic(), 0
        missing = [plan for plan in order if not self._is_simulated(plan)]
        self._decide([plan for plan in order if self._is_simulated(plan)])
        for chunk in self._answers("simulate", missing, _SIMULATIONS):
            before, asked = asked, asked + len(chunk)
            self._decide(chunk)
            if before < _SAMPLED <= asked and self._callbacks.announce is not None:
                seconds = (time.monotonic() - begin) * len(missing) / asked
                if len(missing) >= 8 * _SAMPLED:
                    self._callbacks.announce(len(missing), seconds)

    def _try_best_bounds(self, top: int) -> None:
        together = _core.bodies_together(self.plans)
        missing = [plan for plan in together if plan not in self._known]
        # Of a store that all plans were simulated into, some have no bound.
        missing += [plan for plan, known in self._known.items() if _has_no_bound(known)]
        for _ in self._answers("bound", missing, self._pool.bounds_at_once):
            self._report()
        bounds = [
            (plan, known.bound)
            for plan, known in sorted(self._known.items())
            if known.bound is not None
        ]
        self._decide([plan for plan, known in self._known.items() if known.bound is None])
        order = _core.BestFirst(bounds, top)
        while now := order.next_round():
            self._left = order.bound
            # Rounds are as large for any number of workers, so that the answer is the same.
            self._simulate(now, order.ahead(_AHEAD * self._pool.width))
            self._decide(now)
            for plan in now:
                if (value := self._known[plan].value) is not None:
                    order.found(value)
        self._bounded = order.left
        self._report(done=len(self.plans))

    def _simulate(self, now: Sequence[int], later: Iterable[int]) -> None:
        """Until all plans of a round are known; meanwhile idle workers begin with the next."""
        for chunk in _chunks([plan for plan in now if self._is_open(plan)], _SIMULATIONS):
            self._submit("simulate", chunk)
        ahead = (plan for plan in later if self._is_open(plan))
        while not all(map(self._is_simulated, now)):
            while len(self._running) < self._pool.width:
                chunk = [plan for plan, _ in zip(ahead, range(_SIMULATIONS), strict=False)]
                if not chunk:
                    break
                self._submit("simulate", chunk)
            self._take("simulate")
            self._report()

    def _answers(self, step: Step, plans: Sequence[int], size: int) -> Iterable[list[int]]:
        """Has all of them evaluated; chunks as they come in."""
        # Smaller ones of few plans, so that every worker has some.
        size = max(1, min(size, len(plans) // (4 * self._pool.width)))
        for chunk in _chunks(plans, size):
            while len(self._running) >= 2 * self._pool.width:
                yield self._take(step)
            self._submit(step, chunk)
        while self._running:
            yield self._take(step)

    def _submit(self, step: Step, chunk: list[int]) -> None:
        self._running[self._pool.submit(step, [self.plans[plan] for plan in chunk])] = chunk
        self._flying.update(chunk)

    def _take(self, step: Step) -> list[int]:
        """Waits for a chunk, and commits it."""
        ticket, values = self._pool.finished()
        chunk = self._running.pop(ticket)
        self._flying.difference_update(chunk)
        found = [(plan, self.plans[plan], value) for plan, value in zip(chunk, values, strict=True)]
        add = self._store.add_bounds if step == "bound" else self._store.add_values
        add(found)
        for plan, _, value in found:
            before = self._known.get(plan, Known())
            self._known[plan] = _with(before, step, value)
        return chunk

    def _is_simulated(self, plan: int) -> bool:
        known = self._known.get(plan)
        return known is not None and (known.value is not None or known.reason is not None)

    def _is_open(self, plan: int) -> bool:
        return plan not in self._flying and not self._is_simulated(plan)

    def _decide(self, plans: Iterable[int]) -> None:
        for plan in plans:
            self._decided[plan] = None
            value = self._known[plan].value
            if value is None:
                continue
            if self._best is None or value < self._value(self._best):
                self._best = plan
        self._report()

    def _report(self, done: int | None = None) -> None:
        if self._best is not None and self._callbacks.found is not None:
            self._callbacks.found(self.plans[self._best], self._value(self._best), self._left)
        if self._callbacks.progress is not None:
            self._callbacks.progress(len(self._decided) if done is None else done, len(self.plans))

    def _value(self, plan: int) -> float:
        value = self._known[plan].value
        return inf if value is None else value

    def _finish(self, outcome: Outcome, top: int | None) -> None:
        """Describes the plans that are listed; those of equal values in the order of the space."""
        counted = [plan for plan in self._decided if self._known[plan].value is not None]
        outcome.evaluated = len(counted)
        best = sorted(counted, key=lambda plan: (self._value(plan), plan))[:top]
        described = self._described(best)
        reasons = Counter(self._left_out)
        reasons.update(self._known[plan].reason or "" for plan in self._decided)
        del reasons[""]
        reasons.update(text for text in described if isinstance(text, str))
        outcome.excluded = dict(sorted(reasons.items()))
        outcome.plans = [plan for plan in described if not isinstance(plan, str)]
        if not outcome.plans and not outcome.stopped:
            no_room = _core.PlanSearch.unfit()
            unfit = [i for i in sorted(self._known) if self._known[i].reason == no_room]
            if unfit:
                outcome.nearest = self._core.nearest([self.plans[plan] for plan in unfit])

    def _described(self, best: list[int]) -> list[_core.Forecast | str]:
        if not best:
            return []
        threads = Threads(self.job, max(1, min(self._pool.width, len(best))))
        try:
            tickets = [threads.submit("describe", [self.plans[plan]]) for plan in best]
            answers = dict(threads.finished() for _ in tickets)
        finally:
            threads.close()
        return [answers[ticket][0] for ticket in tickets]


def _has_no_bound(known: Known) -> bool:
    return known.bound is None and known.value is not None


def _with(before: Known, step: Step, value: Value) -> Known:
    if isinstance(value, str):
        return before._replace(reason=value)
    return before._replace(bound=value) if step == "bound" else before._replace(value=value)


def _chunks(plans: Sequence[int], size: int) -> Iterable[list[int]]:
    return (list(plans[start : start + size]) for start in range(0, len(plans), size))
