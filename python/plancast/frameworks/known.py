"""What a caller knows beside an argument file or a plan."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.model import Model


@dataclass(frozen=True)
class Known:
    """What is known of a run; None or empty: nothing.

    Readers use `gpus`, `gpus_per_host` and `model` to fill in what files leave to the
    launcher; writers use everything.
    """

    gpus: int | None = None
    gpus_per_host: int | None = None
    model: Model | None = None
    batch: int | None = None
    seq: int | None = None
    dtype: str | None = None
    profile: str | None = None
    cuda_graphs: bool | str = False
    types: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *, batch: int | None = None, dtype: str | None = None, **run: Any) -> Known:
        """What is known of a run; words that are no fields are types, such as `grad_dtype`."""
        own = {each.name for each in fields(cls)} - {"types"}
        return cls(
            batch=arguments.batch(batch),
            dtype=None if dtype is None else arguments.dtype(dtype),
            types={key: str(v) for key, v in run.items() if key not in own and v is not None},
            **{key: value for key, value in run.items() if key in own},
        )

    @property
    def layers(self) -> int | None:
        """Layers of the model."""
        return None if self.model is None else self.model.layers


def preset(name: str | None) -> str | None:
    """The preset that a name in an argument file means, or None.

    >>> preset("llama3-8B"), preset("meta-llama/Llama-2-7b-hf"), preset("my-model")
    ('llama3-8b', 'llama2-7b', None)
    """
    from plancast.models import hub

    return hub.preset(name) if name else None


def layers_of(name: str | None, known: Known) -> int | None:
    """Layers of the caller's model, or of the preset that the file names."""
    if known.model is not None or name is None:
        return known.layers
    from plancast.models import presets

    if name not in presets.transformers():
        return None
    layers: int = presets.config(name)["layers"]
    return layers


def data_parallel(gpus: int | None, rest: int, what: str, *, strict: bool = True) -> int | None:
    """Data-parallel ranks of so many GPUs, `rest` of which hold one replica of the model."""
    if gpus is None:
        return None
    if gpus % rest:
        if not strict:
            return None
        raise InputError(
            f"{what} lays one replica of the model over {rest} GPUs, which do not divide {gpus}. "
            f"Give a multiple of {rest} GPUs."
        )
    return gpus // rest


def accumulation(batch: int | None, dp: int | None, mb: int, what: str) -> int | None:
    """Micro-batches of each rank, where batch and ranks are known."""
    if batch is None or dp is None:
        return None
    if batch % (dp * mb):
        raise InputError(
            f"{what}: a global batch of {batch} samples is no multiple of {dp} data-parallel "
            f"ranks times micro-batches of {mb}. Multiples of {dp * mb} are."
        )
    return batch // (dp * mb)
