"""Collective algorithms searched for on a topology, as SCCL does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.communication.algorithms import Algorithm
from plancast.communication.link_graph import Topology, graph_of

_CONFLICTS = 2_000_000


@dataclass(frozen=True)
class SynthesizedAlgorithm:
    """What `synthesize` found: an algorithm, the proof that there is none, or neither.

    Attributes:
      steps, rounds, chunks: what was asked for.
      answer: `found`, `none`, or `gave up` (after too many conflicts).
      proof: of `none`: `bound` (chunks cannot flow to where they are needed) or
        `search` (every possibility was tried).
      conflicts: dead ends that the search met.
      rounds_of_steps: rounds of each step, if found.
      algorithm: if found.
    """

    steps: int
    rounds: int
    chunks: int
    answer: str
    proof: str
    conflicts: int
    rounds_of_steps: list[int]
    algorithm: Algorithm | None

    @classmethod
    def _from(cls, fields: dict[str, Any]) -> SynthesizedAlgorithm:
        core = fields.pop("algorithm")
        return cls(**fields, algorithm=None if core is None else Algorithm(core, core.name))


@dataclass(frozen=True)
class ParetoFront:
    """Algorithms of which none is better in steps and in rounds per chunk at once.

    Attributes:
      least_steps: no algorithm has fewer.
      least_rounds_per_chunk: nor fewer of these, for the `reason` given.
      points: the algorithms, from fewest steps to fewest rounds per chunk.
      others: better ones that were asked for and do not exist (or were given up).
      complete: whether nothing was given up and the last point meets the bound.
    """

    least_steps: int
    least_rounds_per_chunk: Fraction
    reason: str
    points: list[SynthesizedAlgorithm]
    others: list[SynthesizedAlgorithm]
    complete: bool


@checked
def synthesize(
    op: str,
    topology: Topology,
    *,
    steps: int,
    rounds: int,
    chunks: int,
    root: int = 0,
    conflicts: int = _CONFLICTS,
) -> SynthesizedAlgorithm:
    """Searches for an algorithm of so many steps and rounds, as SCCL does.

    Args:
      op: `all_gather`, `reduce_scatter`, `all_reduce`, `all_to_all`, `broadcast`, `reduce`,
        `gather` or `scatter`.
      topology: `dgx1`, `ring:8`, `full:4`, `hypercube:8`, `mesh:2x4`, `torus:4x4`, one of NCCL's
        topology files, or links as (from, to, chunks in a round).
      steps: synchronous steps.
      rounds: of all steps; a link of width 1 moves one chunk in a round.
      chunks: pieces of a part (docs/collectives.md).
      root: of broadcast, reduce, gather and scatter.
      conflicts: give up after so many.

    >>> synthesize("all_gather", "dgx1", steps=3, rounds=7, chunks=6).answer
    'found'
    >>> synthesize("all_gather", "dgx1", steps=2, rounds=4, chunks=3).proof
    'bound'
    """
    arguments.word(op, "op")
    found = _core.synthesize(
        graph_of(topology),
        op,
        steps=steps,
        rounds=rounds,
        chunks=chunks,
        root=root,
        conflicts=conflicts,
    )
    return SynthesizedAlgorithm._from(found)


@checked
def pareto_front(
    op: str,
    topology: Topology,
    *,
    root: int = 0,
    extra_rounds: int = 4,
    most_steps: int | None = None,
    conflicts: int = _CONFLICTS,
) -> ParetoFront:
    """Algorithms between the fewest steps and the fewest rounds per chunk.

    Args:
      op, topology, root: as in `synthesize`.
      extra_rounds: rounds beyond the number of steps that an algorithm may have.
      most_steps: stop here, if the bound on rounds is not met before.
      conflicts: of each search; it gives up after so many.

    >>> front = pareto_front("all_gather", "dgx1")
    >>> [(p.steps, p.rounds, p.chunks) for p in front.points], front.complete
    ([(2, 3, 2), (3, 7, 6)], True)
    """
    arguments.word(op, "op")
    front = _core.pareto_front(
        graph_of(topology),
        op,
        root=root,
        extra_rounds=extra_rounds,
        most_steps=most_steps or 0,
        conflicts=conflicts,
    )
    return ParetoFront(
        least_steps=front["least_steps"],
        least_rounds_per_chunk=Fraction(*front["least_rounds_per_chunk"]),
        reason=front["reason"],
        points=[SynthesizedAlgorithm._from(p) for p in front["points"]],
        others=[SynthesizedAlgorithm._from(p) for p in front["others"]],
        complete=front["complete"],
    )
