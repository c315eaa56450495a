"""What the devices of a plan are given to do, and what it takes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.errors import InputError
from plancast.parts import PARTS
from plancast.question import PlanQuestion

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# What a member of a group of n sends of the bytes of a collective, as the ring algorithms have it;
# bytes are those of graph/collective_kind.h.
_SENT = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
}
_PARTS_OF = {
    "recompute": "recompute",
    "tp": "exposed_tp",
    "dp": "exposed_dp",
    "pp": "exposed_pp",
    "cp": "exposed_cp",
    "ep": "exposed_ep",
    "offload": "exposed_offload",
    "optimizer": "optimizer",
    "other": "other",
}


@dataclass(frozen=True)
class Item:
    """Equal kernels or communications of one device in an iteration, all together.

    `ps` is what they take alone, one after another; `kind` a family of kernels or a collective;
    `bytes` of a communication are those of its collective.
    """

    purpose: str
    label: str
    kind: str
    count: int
    ps: int
    flops: float
    bytes: float
    members: int = 0  # of a communication's group; 0: a kernel
    algorithm: str = ""
    link: str = ""  # that a communication fills most
    factor: str = ""  # as in `Forecast.factors`, of which sigma is the scale
    sigma: float = 0.0
    detail: str = ""  # of a kernel: what it computes

    @property
    def is_kernel(self) -> bool:
        """Whether it computes."""
        return self.members == 0

    @property
    def part(self) -> str:
        """The part of the breakdown that its time belongs to."""
        if self.purpose in ("forward", "backward"):
            return "compute" if self.is_kernel else "other"
        return _PARTS_OF[self.purpose]

    @property
    def module(self) -> str:
        """Where in the model it is: `mlp` of `mlp.fc1.bwd`."""
        return self.label.partition(".")[0]

    @property
    def sent(self) -> float:
        """Bytes that a device sends."""
        share = _SENT.get(self.kind)
        return self.bytes * share(self.members) if share and self.members else self.bytes


@dataclass(frozen=True)
class Stage:
    """Devices that do the same: the parts of their iteration, simulated, and what they do.

    The parts are picoseconds and sum to `Forecast.simulated_time`, whatever the stage.
    """

    name: str
    devices: int
    parts: dict[str, int]
    items: tuple[Item, ...]

    @property
    def total(self) -> int:
        """All parts."""
        return sum(self.parts.values())

    @property
    def busy(self) -> int:
        """Without waiting for other stages."""
        return self.total - self.parts["bubble"] - self.parts["straggler"]

    def alone(self, part: str, *, kernels: bool = True) -> int:
        """What the kernels, or communications, of a part take alone, picoseconds."""
        return sum(i.ps for i in self.items if i.part == part and i.is_kernel == kernels)


def question_of(forecast: Forecast) -> PlanQuestion:
    """How it was asked for; refuses forecasts that no plan alone was asked for."""
    question = forecast._question
    if not isinstance(question, PlanQuestion):
        raise InputError(
            "this forecast is of a job beside others; explain the one that `predict` makes of it."
        )
    return question


def stages_of(forecast: Forecast) -> tuple[Stage, ...]:
    """The classes of devices of a forecast with their work."""
    classes = forecast._core.stages_ps
    works = _work(
        question_of(forecast), [(program, device) for _, program, device, _, _ in classes]
    )
    return tuple(
        Stage(name, devices, dict(zip(PARTS, parts, strict=True)), tuple(Item(**i) for i in items))
        for (name, _, _, devices, parts), items in zip(classes, works, strict=True)
    )


def _work(question: PlanQuestion, devices: list[tuple[int, int]]) -> list[list[dict[str, Any]]]:
    return _core.plan_work(
        *question._nouns(),
        devices,
        batch=question.batch,
        dtype=question.dtype,
        profile=question.profile,
        precision=question.precision,
        cuda_graphs=question.cuda_graphs,
        datasheet=question.datasheet,
        chunk_level=question.chunk_level,
    )
