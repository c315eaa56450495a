"""What of the strategy language frameworks have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast import _core, arguments
from plancast.question import core_of

if TYPE_CHECKING:
    from plancast.strategy import Strategy


def why_framework_cannot_run(
    profile: str, strategy: Strategy | str, micro_batches: int | None = None
) -> str:
    """What a plan has that the framework of a software profile has not, or an empty text.

    With the micro-batches that each rank runs in a step, where these are known: schedules of
    some frameworks take certain numbers of them.

    >>> why_framework_cannot_run("torchtitan", "dp=8,zero=1")
    'torchtitan has no zero=1'
    >>> why_framework_cannot_run("torchtitan", "dp=8,zero=3")
    ''
    >>> why_framework_cannot_run("torchtitan", "dp=8,pp=4,zero=3", micro_batches=2)
    'torchtitan has no schedule=1f1b with fewer micro-batches than stages'
    """
    name = arguments.word(profile, "profile")
    many = None
    if micro_batches is not None:
        many = arguments.whole(micro_batches, "micro_batches", 1, 1 << 40)
    text: str = _core.why_framework_cannot_run(name, core_of(strategy).short_form(), many)
    return text
