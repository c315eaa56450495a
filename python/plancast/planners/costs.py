"""What communication costs on a logical mesh: formulas, bytes, or a machine's own prices.

In all of them `size` is bytes of the whole tensor as the ranks of one axis see it: the buffer of
an all-reduce, the result of an all-gather, the input of a reduce-scatter, and of an all-to-all
what all ranks have together. Axes with one rank cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from plancast import _core
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.machine import Machine

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "halo")


class MeshCosts(Protocol):
    """Prices on a logical mesh; `mesh` has the ranks of each axis, outermost first."""

    @property
    def mesh(self) -> tuple[int, ...]:
        """Ranks of each axis."""

    @property
    def unit(self) -> str:
        """Of all prices: `s`, `bytes`, or empty."""

    @property
    def busy(self) -> bool:
        """Products must be cut over every axis, since their work has no price."""

    @property
    def scatter(self) -> bool:
        """Sums that are read in parts are reduce-scattered; else all-reduced and cut."""

    def communicate(self, kind: str, axis: int, size: float) -> float:
        """One collective of `KINDS` along an axis."""

    def compute(self, product_flops: float, other_flops: float, moved: float) -> float:
        """A kernel of one device; `moved` bytes go through its memory."""

    def replicate(self) -> float:
        """A stored tensor of which every device has a copy."""


@checked
@dataclass(frozen=True)
class AlphaBeta:
    """Alpa's prices of a mesh (OSDI'22, its `cluster_env`): per axis a latency and a cost a byte.

    all_reduce = alpha + beta 2(n-1)/n size + 0.01, all_gather = alpha + beta (n-1)/n size + 0.1,
    reduce_scatter the same + 0.001, all_to_all = alpha + beta (n-1)/n^2 size + 0.001. The two
    last constants, which break ties, are not verified. Work has no price.

    >>> AlphaBeta((4,)).communicate("all_reduce", 0, 4096)
    6145.01
    """

    mesh: tuple[int, ...]
    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()
    replication_penalty: bool = False  # as Alpa adds for each stored tensor that is not cut
    scatter: bool = False  # sums between ops may be reduce-scattered; Alpa all-reduces them

    unit = ""
    busy = True

    def __post_init__(self) -> None:
        check_mesh(self.mesh)
        for name in ("alpha", "beta"):
            values = getattr(self, name) or (1.0,) * len(self.mesh)
            if len(values) != len(self.mesh) or not all(0 <= v < math.inf for v in values):
                raise InputError(
                    f"`{name}` is {values}; give a number for each of the {len(self.mesh)} axes."
                )
            object.__setattr__(self, name, tuple(float(v) for v in values))

    def communicate(self, kind: str, axis: int, size: float) -> float:
        """One collective of `KINDS` along an axis."""
        n = self.mesh[axis]
        if n == 1:
            return 0.0
        share, tie = {
            "all_reduce": (2 * (n - 1) / n, 0.01),
            "all_gather": ((n - 1) / n, 0.1),
            "reduce_scatter": ((n - 1) / n, 0.001),
            "all_to_all": ((n - 1) / n / n, 0.001),
            "halo": (1.0, 0.001),
        }[kind]
        return self.alpha[axis] + self.beta[axis] * share * size + tie

    def compute(self, product_flops: float, other_flops: float, moved: float) -> float:
        """Nothing: Alpa counts communication alone."""
        return 0.0

    def replicate(self) -> float:
        """All-reduces of one byte along two axes, rounded down, if `replication_penalty`."""
        if not self.replication_penalty:
            return 0.0
        return float(int(sum(map(self._one_byte, range(max(2, len(self.mesh)))))))

    def _one_byte(self, axis: int) -> float:
        if axis >= len(self.mesh):  # a mesh of one axis is n x 1
            return self.alpha[0] + 0.01
        n = self.mesh[axis]
        return self.alpha[axis] + self.beta[axis] * 2 * (n - 1) / n + 0.01


@dataclass(frozen=True)
class TotalBytes:
    """Bytes that all devices together receive, what Tofu minimises (EuroSys'19)."""

    mesh: tuple[int, ...]
    groups: float = 1.0  # as many meshes do the same

    unit = "bytes"
    busy = True
    scatter = True

    def __post_init__(self) -> None:
        check_mesh(self.mesh)

    def communicate(self, kind: str, axis: int, size: float) -> float:
        """One collective of `KINDS` along an axis."""
        n = self.mesh[axis]
        others = math.prod(self.mesh) / n
        share = {
            "all_reduce": 2.0 * (n - 1),
            "all_gather": n - 1.0,
            "reduce_scatter": n - 1.0,
            "all_to_all": (n - 1) / n,
            "halo": 0.0 if n == 1 else float(n),
        }[kind]
        return self.groups * others * share * size

    def compute(self, product_flops: float, other_flops: float, moved: float) -> float:
        """Nothing: only communication counts."""
        return 0.0

    def replicate(self) -> float:
        """Nothing: only communication counts."""
        return 0.0


@dataclass(frozen=True)
class MachineMesh:
    """Seconds on the first devices of a machine, numbered row by row.

    Collectives are priced alone on the machine (`plancast.collective`), kernels by the roofline
    of its nominal peaks.
    """

    machine: Machine
    mesh: tuple[int, ...]
    dtype: str = "bf16"
    _known: dict[tuple[str, int, int], float] = field(default_factory=dict, compare=False)

    unit = "s"
    busy = False
    scatter = True

    def __post_init__(self) -> None:
        check_mesh(self.mesh)
        if math.prod(self.mesh) > self.machine.devices:
            raise InputError(
                f"a mesh of {by(self.mesh)} needs {math.prod(self.mesh)} devices, and "
                f"{self.machine} has {self.machine.devices}."
            )

    def communicate(self, kind: str, axis: int, size: float) -> float:
        """One collective of `KINDS` along an axis."""
        n = self.mesh[axis]
        if n == 1 or size <= 0:
            return 0.0
        # What nccl-tests call the size of an all-to-all is one rank's part.
        part = size / n if kind == "all_to_all" else size
        key = (kind, axis, max(1, round(part)))
        if key not in self._known:
            self._known[key] = self._price(*key)
        return self._known[key]

    def _price(self, kind: str, axis: int, size: int) -> float:
        stride = math.prod(self.mesh[axis + 1 :])
        ranks = [rank * stride for rank in range(self.mesh[axis])]
        if kind == "halo":
            kind, ranks = "send_recv", ranks[:2]
        (answer,) = _core.collective_times(self.machine._core, kind, ranks, [size], "", "", False)
        return float(answer[0]) * 1e-12

    @cached_property
    def _peaks(self) -> tuple[float, float, float]:
        gpus = [section.to_dict()["gpu"] for section in self.machine.sections]
        name = f"{self.dtype.partition('-')[0].replace('mxfp8', 'fp8').replace('nvfp4', 'fp4')}"
        products = min(float(gpu[f"{name}_tflops"] or gpu["fp32_tflops"]) for gpu in gpus)
        others = min(float(gpu["fp32_tflops"]) for gpu in gpus)
        return products * 1e12, others * 1e12, min(gpu["memory_gb_per_s"] for gpu in gpus) * 1e9

    def compute(self, product_flops: float, other_flops: float, moved: float) -> float:
        """A kernel of one device; `moved` bytes go through its memory."""
        products, others, memory = self._peaks
        return max(product_flops / products + other_flops / others, moved / memory)

    def replicate(self) -> float:
        """Nothing: copies cost memory, not time."""
        return 0.0


def check_mesh(mesh: Sequence[int]) -> None:
    """Raises InputError unless a plan can name the axes."""
    if not 1 <= len(mesh) <= 2 or not all(isinstance(n, int) and n > 0 for n in mesh):
        raise InputError(
            f"a mesh of {by(mesh)}; give one or two axes with at least one rank each, such as 2x4."
        )


def by(mesh: Sequence[int]) -> str:
    """`2x4`."""
    return "x".join(map(str, mesh)) or "no axes"
