"""What a space of plans leaves open: one answer for `rank`, `plan` and whoever asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.model import Model

# Parameters from which one sample keeps a GPU busy, so that small micro-batches do.
LARGE = 3e9
# Micro-batches of smaller models, of sequences and of others; of large ones the core's default.
_SEQUENCES, _OTHERS = "1..64", "1..512"


# Keys that say how layers lie on stages; where none is said, unlike stages are tried, too.
_STAGES = {"pp", "vpp", "layout"}


def completed(space: str, model: Model) -> str:
    """A space with what it leaves open, beyond the defaults that the core has for its keys.

    Micro-batches of small models are larger. Where nothing is said of stages, layers are also dealt
    so that the first and the last, which have embedding and head, are no fuller than the others.
    The core's defaults are those of `planner/search/space.h` (docs/cli.md).

    >>> from plancast import Model
    >>> completed("tp=1|2,pp=1", Model.preset("gpt2")), completed("", Model.preset("llama3-8b"))
    ('tp=1|2,pp=1,mb=1..64', 'layout=even|balanced')
    >>> completed("pp=1", Model.preset("resnet50")), completed("mb=4,vpp=1", Model.preset("gpt2"))
    ('pp=1,mb=1..512', 'mb=4,vpp=1')
    """
    said = {item.partition("=")[0].strip() for item in space.split(",")}
    more = []
    if model.parameters < LARGE and "mb" not in said:
        more.append(f"mb={_SEQUENCES if model.seq > 0 else _OTHERS}")
    if not said & _STAGES:
        more.append("layout=even|balanced")
    return ",".join([space, *more] if space.strip() else more)
