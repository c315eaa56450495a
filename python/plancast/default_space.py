"""What a space of plans leaves open: one answer for `rank`, `plan` and whoever asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.model import Model

# Parameters from which one sample keeps a GPU busy, so that small micro-batches do.
LARGE = 3e9
# Micro-batches of smaller models, of sequences and of others; of large ones the core's default.
_SEQUENCES, _OTHERS = "1..64", "1..512"


def completed(space: str, model: Model) -> str:
    """A space with the values that hang on the model, where it does not say them; else as it is.

    All other defaults are the core's (`planner/search/space.h`, docs/cli.md).

    >>> from plancast import Model
    >>> completed("tp=1|2", Model.preset("gpt2")), completed("", Model.preset("resnet50"))
    ('tp=1|2,mb=1..64', 'mb=1..512')
    >>> completed("mb=4", Model.preset("gpt2")), completed("", Model.preset("llama3-8b"))
    ('mb=4', '')
    """
    if model.parameters >= LARGE or "mb" in _keys(space):
        return space
    sizes = _SEQUENCES if model.seq > 0 else _OTHERS
    return f"{space},mb={sizes}" if space.strip() else f"mb={sizes}"


def _keys(space: str) -> list[str]:
    return [item.partition("=")[0].strip() for item in space.split(",")]
