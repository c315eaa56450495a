"""What an argument file says: a plan, and what else a forecast needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.strategy import Strategy


@dataclass(frozen=True)
class LaunchConfig:
    """An argument file in the language of plans; `plancast.launchers.read` makes it.

    Nothing of the file is lost: what is neither in the plan nor in a field below is a
    line of `notes` or of `unsupported`.
    """

    framework: str
    """`torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`."""
    strategy: Strategy
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
    cuda_graphs: bool = False
    """Whether CUDA graphs are captured."""
    notes: tuple[str, ...] = ()
    """Settings that make no difference to a forecast, and how others were understood."""
    unsupported: tuple[str, ...] = ()
    """Settings that do make a difference and that a plan cannot say, each in words."""

    def open_model(self) -> Model:
        """The model that the file names or describes, with the file's sequences.

        Raises:
          InputError: the file names none, or one that Plancast does not know.
        """
        from plancast.errors import InputError
        from plancast.model import Model

        if self.model is None:
            raise InputError(f"the {self.framework} file names no model; give one.")
        if isinstance(self.model, str):
            return Model.open(self.model, seq=self.seq)
        return self.model

    def settings(self) -> dict[str, Any]:
        """What the file says beside the plan, as `plancast.launchers.write` takes it.

        The model is one that can be built without reading files.
        """
        from plancast.model import Model
        from plancast.models import presets

        model = self.model
        if isinstance(model, str):
            model = Model.preset(model) if model in presets.transformers() else None
        return {
            "model": model,
            "batch": self.batch,
            "seq": self.seq,
            "dtype": self.dtype,
            "profile": self.profile,
            "cuda_graphs": self.cuda_graphs,
            "types": dict(self.types),
        }

    def predict(self, machine: Machine, *, model: Model | None = None, **options: Any) -> Forecast:
        """Predicts the run that the file describes; `options` are those of `plancast.predict`.

        Args:
          machine: where.
          model: what is trained; the file's model by default.
          options: go before what the file says.
        """
        from plancast.planning import predict

        said: dict[str, Any] = {
            "batch": self.batch,
            "profile": self.profile,
            "cuda_graphs": self.cuda_graphs,
            **({"dtype": self.dtype} if self.dtype else {}),
            **self.types,
        }
        return predict(model or self.open_model(), machine, self.strategy, **{**said, **options})

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        model = self.model if self.model is None or isinstance(self.model, str) else self.model.name
        return {
            "framework": self.framework,
            "strategy": self.strategy.short_form,
            "profile": self.profile,
            "batch": self.batch,
            "seq": self.seq,
            "dtype": self.dtype,
            "types": dict(self.types),
            "model": model,
            "gpus": self.gpus,
            "cuda_graphs": self.cuda_graphs,
            "notes": list(self.notes),
            "unsupported": list(self.unsupported),
        }
