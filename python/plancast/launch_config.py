"""Argument files as users have them: with a strategy, and ready to be predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.frameworks.contents import Contents

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.strategy import Strategy


class LaunchConfig(Contents["Strategy"]):
    """An argument file in the language of plans; `plancast.launchers.read` makes it.

    Nothing of the file is lost: what is neither in the plan nor in a field below is a
    line of `notes` or of `unsupported`.
    """

    @classmethod
    def of(cls, contents: Contents[str], strategy: Strategy) -> LaunchConfig:
        """What a file says, with the strategy that its plan is."""
        return cls(**{**vars(contents), "strategy": strategy})

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
