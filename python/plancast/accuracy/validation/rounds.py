"""Pipelines that take an iteration's micro-batches in rounds, each of which drains them."""

from __future__ import annotations


def in_rounds(stages: int, chunks: int, micro_batches: int, a_round: int) -> str:
    """The table of a schedule (docs/schedules.md, *Tables*): 1F1B, or interleaved 1F1B.

    Args:
      stages: stages of the pipeline.
      chunks: chunks of layers a stage; with more than one `stages` divides `a_round`.
      micro_batches: of an iteration.
      a_round: of these, how many go through the pipeline before the next ones begin.

    >>> in_rounds(2, 1, 4, 2)
    'F0 F1 B0 B1 F2 F3 B2 B3;F0 B0 F1 B1 F2 B2 F3 B3'
    """
    return ";".join(
        " ".join(
            step
            for first in range(0, micro_batches, a_round)
            for step in _round(stages, chunks, first, min(a_round, micro_batches - first), stage)
        )
        for stage in range(stages)
    )


def _round(stages: int, chunks: int, first: int, count: int, stage: int) -> list[str]:
    """What a stage does with `count` micro-batches from `first` on."""
    forward = [_step("F", i, stages, chunks, first) for i in range(count * chunks)]
    backward = [_step("B", i, stages, chunks, first) for i in range(count * chunks)]
    warm = stages - stage - 1
    if chunks > 1:  # Megatron-LM's warm-up, and torch's (ScheduleInterleaved1F1B)
        warm = 2 * warm + (chunks - 1) * stages
    warm = min(warm, len(forward))
    steps = forward[:warm]
    for i, step in enumerate(forward[warm:]):
        steps += [step, backward[i]]
    return steps + backward[len(forward) - warm :]


def _step(phase: str, i: int, stages: int, chunks: int, first: int) -> str:
    if chunks == 1:
        return f"{phase}{first + i}"
    group, within = divmod(i, stages * chunks)
    chunk = within // stages
    if phase == "B":
        chunk = chunks - 1 - chunk
    return f"{phase}{first + group * stages + within % stages}.{chunk}"
