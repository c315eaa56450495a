"""What an argument file says: a plan, and what else a forecast needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from plancast.model import Model

_Plan = TypeVar("_Plan")


@dataclass(frozen=True)
class Contents(Generic[_Plan]):
    """An argument file in the language of plans, its plan as a short form or a Strategy."""

    framework: str
    """`torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`."""
    strategy: _Plan
    """The plan. Keys that the file leaves to the framework's default are said if it differs
    from the default of plans."""
    profile: str
    """The software profile that comes closest."""
    batch: int | None = None
    """Global batch, samples; None where the file leaves it open."""
    seq: int | None = None
    """Tokens per sequence."""
    dtype: str | None = None
    """Type of matrix products; None where the file leaves it open."""
    types: dict[str, str] = field(default_factory=dict)
    """Other types that the file says: `grad_dtype`, `reduce_dtype`, `gather_dtype`, ..."""
    model: str | Model | None = None
    """A preset's name, a path or name that the file gives, or a model built from its sizes."""
    gpus: int | None = None
    """Number of GPUs, where the file or the caller says it."""
    cuda_graphs: bool | str = False
    """Whether CUDA graphs are captured."""
    notes: tuple[str, ...] = ()
    """Settings that make no difference to a forecast, and how others were understood."""
    unsupported: tuple[str, ...] = ()
    """Settings that do make a difference and that a plan cannot say, each in words."""
