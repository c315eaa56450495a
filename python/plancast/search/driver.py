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
_UNFIT = _core.PlanSearch.unfit()  # why plans are none that need more memory than there is


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
        self._running: dict[object, tuple[Step, list[int]]] = {}
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
        # A plan that recomputes is bounded by what it is without, and looked at by itself only
        # where that may be among the best.
        without = _core.without_recompute(self.plans)
        first = [plan for plan in _core.bodies_together(self.plans) if without[plan] == plan]
        self._bound(first)
        self._decide(plan for plan in first if self._is_none(plan))
        order = _core.BestFirst(
            [
                (plan, self._known[root].bound or 0.0, plan == root)
                for plan, root in enumerate(without)
                if plan != root or not self._is_none(plan)
            ],
            top,
        )
        while True:
            if asked := order.to_ask():
                self._bound(asked)
                for plan in asked:
                    none = self._is_none(plan)
                    order.asked(plan, None if none else self._known[plan].bound)
                self._decide(plan for plan in asked if self._is_none(plan))
                continue
            if not (now := order.next_round()):
                break
            self._left = order.bound
            # Rounds are as large for any number of workers, so that the answer is the same.
            self._simulate(now, order.ahead(_AHEAD * self._pool.width))
            self._decide(now)
            for plan in now:
                if (value := self._known[plan].value) is not None:
                    order.found(value)
        self._bounded = order.left
        self._report(done=len(self.plans))

    def _bound(self, plans: Iterable[int]) -> None:
        """Until the bounds of plans are known, or why they are none."""
        missing = [plan for plan in plans if _has_no_bound(self._known.get(plan, Known()))]
        for _ in self._answers("bound", missing, self._pool.bounds_at_once):
            self._report()

    def _is_none(self, plan: int) -> bool:
        """Whether what a plan is at least is not known, or that of one that does not fit."""
        known = self._known[plan]
        return known.bound is None or known.reason == _UNFIT

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
            self._take()
            self._report()

    def _answers(self, step: Step, plans: Sequence[int], size: int) -> Iterable[list[int]]:
        """Has all of them evaluated; chunks as they come in."""
        # Smaller ones of few plans, so that every worker has some.
        size = max(1, min(size, len(plans) // (4 * self._pool.width)))
        waiting = 0
        for chunk in _chunks(plans, size):
            if waiting == 2 * self._pool.width:
                yield self._next(step)
                waiting -= 1
            self._submit(step, chunk)
            waiting += 1
        for _ in range(waiting):
            yield self._next(step)

    def _submit(self, step: Step, chunk: list[int]) -> None:
        ticket = self._pool.submit(step, [self.plans[plan] for plan in chunk])
        self._running[ticket] = (step, chunk)
        self._flying.update(chunk)

    def _next(self, wanted: Step) -> list[int]:
        """Waits for a chunk of a step, and commits what comes in until then."""
        while True:
            step, chunk = self._take()
            if step == wanted:
                return chunk

    def _take(self) -> tuple[Step, list[int]]:
        """Waits for a chunk, and commits it."""
        ticket, values = self._pool.finished()
        step, chunk = self._running.pop(ticket)
        self._flying.difference_update(chunk)
        found = [
            (plan, self.plans[plan], _learned(value))
            for plan, value in zip(chunk, values, strict=True)
        ]
        add = self._store.add_bounds if step == "bound" else self._store.add_values
        add(found)
        for plan, _, new in found:
            self._known[plan] = self._known.get(plan, Known()).with_(new)
        return step, chunk

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
            unfit = [i for i in sorted(self._known) if self._known[i].reason == _UNFIT]
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
    """Also of plans that a store knows by their simulation alone."""
    return known.bound is None and known.reason in (None, _UNFIT)


def _learned(value: Value) -> Known:
    if isinstance(value, tuple):
        return Known(bound=value[0], reason=value[1])
    return Known(reason=value) if isinstance(value, str) else Known(value=value)


def _chunks(plans: Sequence[int], size: int) -> Iterable[list[int]]:
    return (list(plans[start : start + size]) for start in range(0, len(plans), size))
