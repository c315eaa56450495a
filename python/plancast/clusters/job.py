"""One job of a cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE
from plancast.question import core_of
from plancast.session import Session
from plancast.strategy import Strategy

PLACEMENTS = ("packed", "spread")
_PS = 1e12
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "h": 3600.0}
_SIZES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SIZES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ]*)\s*")
_LONGEST_S = 1e6

# What `_core.simulate_cluster` takes of a job.
_Core = tuple[
    str, str, int, str, list[int], int, int, list[tuple[int, int, float]], int, float, int, int
]


def seconds(value: Any, what: str) -> float:
    """A time: a number of seconds, or text such as `300 ms`.

    >>> seconds("300 ms", "compute"), seconds(2, "compute")
    (0.3, 2.0)
    """
    found = _quantity(value, what, _TIMES)
    if found is None:
        raise InputError(f"`{what}` is `{value}`; give seconds, or text such as `300 ms`.")
    return found


def transfer(value: Any, what: str) -> tuple[float, float]:
    """What is sent: (seconds alone, bytes), one of which is 0.

    >>> transfer("2 s", "communicate"), transfer("3 GB", "communicate")
    ((2.0, 0.0), (0.0, 3000000000.0))
    """
    size = _quantity(value, what, _SIZES)
    if size is not None:
        return 0.0, size
    time = _quantity(value, what, _TIMES)
    if time is None:
        raise InputError(
            f"`{what}` is `{value}`; give bytes, such as `3 GB`, or what it takes alone, `0.4 s`."
        )
    return time, 0.0


def _quantity(value: Any, what: str, units: dict[str, float]) -> float | None:
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        if match is None or match[2] not in units:
            return None
        number, unit = float(match[1]), units[match[2]]
    elif "" in units:
        number, unit = arguments.number(value, what), 1.0
    else:
        return None
    if not 0 <= number * unit < float("inf"):
        raise InputError(f"`{what}` is `{value}`; it cannot be negative.")
    return number * unit


@checked
@dataclass(frozen=True, kw_only=True)
class ClusterJob:
    """A job that iterates on GPUs of a cluster.

    Say what an iteration does by `compute` and `communicate` (and `overlap`), or by `model` and
    `strategy`, as of a `TrainingJob`; then its phases are those of a forecast.

    Args:
      name: what reports call it.
      gpus: how many; absent where the placement says it.
      placement: `packed`, `spread`, or GPUs: `hosts 0-3`, `hosts 0-3 gpus 0-3`, `devices 0-15`.
      arrival: when it asks for GPUs, seconds.
      iterations: how many until it ends; None: it runs on.
      duration: or what they take alone, seconds.
      compute: of an iteration, seconds or `300 ms`.
      communicate: likewise, bytes that each of its hosts sends to the next of a ring (`3 GB`), or
        what that takes alone (`0.4 s`).
      overlap: the share of the computation beside which it communicates.
      weight: its share of links where weights count.
      priority: its class where given priorities count, 0 first.
      model: in place of compute and communicate, what is trained.
      strategy: the plan of a model.
      batch: global batch of a model.
      dtype: matmul precision of a model.
      profile: how the framework of a model runs.
      where: what errors say of its place, such as `jobs.yaml:12`.
    """

    name: str
    gpus: int | None = None
    placement: str = "packed"
    arrival: float = 0.0
    iterations: int | None = None
    duration: float | None = None
    compute: float | str = 0.0
    communicate: float | str = 0.0
    overlap: float = 0.0
    weight: int = 1
    priority: int = 0
    model: Model | None = None
    strategy: Strategy | str | None = None
    batch: int | None = None
    dtype: str = "bf16"
    profile: str = DEFAULT_PROFILE
    where: str = ""

    def __post_init__(self) -> None:
        told = any((self.compute, self.communicate, self.overlap))
        if (self.model is None) != (self.strategy is None):
            raise self.error("has only one of `model` and `strategy`; a plan takes both.")
        if self.model is not None and told:
            raise self.error("has a model and phases of its own. Say one of the two.")
        if self.iterations is not None and self.duration is not None:
            raise self.error("has both `iterations` and `duration`. Say one of the two.")
        if not 0 <= self.overlap <= 1:
            raise self.error(f"has the overlap {self.overlap}; give a share from 0 to 1.")
        if self.duration is not None and not 0 < self.duration <= 1e7:
            raise self.error(f"runs for {self.duration} s; give seconds up to ten million.")
        if not 0 <= self.arrival <= 7e6:
            raise self.error(f"arrives at {self.arrival} s; give seconds from 0 to 7 million.")
        for name, value, least, most in (
            ("gpus", self.gpus, 1, 1 << 24),
            ("weight", self.weight, 1, 1000),
            ("priority", self.priority, 0, 1 << 16),
        ):
            if value is not None and not least <= value <= most:
                shown = str(value)[:20]
                raise self.error(f"has the {name} {shown}; give {least} to {most:,}.")
        if self.iterations is not None and not 1 <= self.iterations < 1 << 50:
            raise self.error(f"has {self.iterations} iterations; give a whole number from 1 on.")

    def error(self, what: str) -> InputError:
        """An error about this job."""
        return InputError(f"{self.where}{': ' if self.where else ''}job `{self.name}` {what}")


@dataclass(frozen=True)
class Placed:
    """What the core is told of a job, and what its GPUs compute in an iteration."""

    core: _Core
    gpus: int
    busy_s: float


# (compute, transfer alone, bytes of a host): picoseconds, 0 where not said.
_Phase = tuple[int, int, float]


def placed(job: ClusterJob, fabric: _core.Fabric, machine: Machine, session: Session) -> Placed:
    """A job as the core takes it."""
    given = job.placement not in PLACEMENTS
    try:
        devices = _core.placed_devices(machine._core, job.placement) if given else []
        gpus = len(devices) if given else job.gpus
        if gpus is None:
            raise InputError("it does not say how many GPUs it takes. Say `gpus`, or a placement.")
        if given and job.gpus not in (None, gpus):
            raise InputError(f"it asks for {job.gpus} GPUs and its placement names {gpus}.")
        if job.model is None:
            phases, busy_ps = _told_phases(job)
        else:
            phases, busy_ps = _plan_phases(job, gpus, machine, session)
    except InputError as error:
        said = str(error).removeprefix(f"job `{job.name}`: ")
        raise job.error(f"cannot run: {said}") from None
    iterations = -1 if job.iterations is None else job.iterations
    if job.duration is not None:
        alone = sum(max(compute, sent or _at_full(size, fabric)) for compute, sent, size in phases)
        iterations = max(1, round(job.duration * _PS / max(alone, 1)))
    core = (
        job.name,
        job.where,
        gpus,
        "given" if given else job.placement,
        devices,
        round(job.arrival * _PS),
        iterations,
        phases,
        busy_ps,
        busy_ps / _PS * gpus,
        job.weight,
        job.priority,
    )
    return Placed(core, gpus, busy_ps / _PS)


def _told_phases(job: ClusterJob) -> tuple[list[_Phase], int]:
    compute = seconds(job.compute, "compute")
    time, size = transfer(job.communicate, "communicate")
    for what, value in (("compute", compute), ("communicate", time)):
        if value > _LONGEST_S:
            raise InputError(f"`{what}` is {value} s; an iteration takes a million at most.")
    whole, beside = round(compute * _PS), round(compute * job.overlap * _PS)
    phases = [(whole - beside, 0, 0.0), (beside, round(time * _PS), size)]
    return [phase for phase in phases if any(phase)], whole


def _plan_phases(
    job: ClusterJob, gpus: int, machine: Machine, session: Session
) -> tuple[list[_Phase], int]:
    """Of a forecast where the job is; of a job that waits for GPUs, on the first of the machine."""
    assert job.model is not None and job.strategy is not None
    placement = f"devices 0-{gpus - 1}" if job.placement in PLACEMENTS else job.placement
    iteration, network, overlapped, busy, size = _core.plan_phases(
        job.model._core,
        machine._core,
        core_of(job.strategy).copy(),
        session._core,
        name=job.name,
        placement=placement,
        batch=arguments.batch(job.batch),
        dtype=arguments.dtype(job.dtype),
        profile=job.profile,
    )
    if network == 0:
        return [(iteration, 0, 0.0)], round(busy)
    return [(iteration - network, 0, 0.0), (overlapped, network, size)], round(busy)


def _at_full(size: float, fabric: _core.Fabric) -> float:
    """What bytes take over all interfaces of a host, picoseconds."""
    return size / (fabric.capacity(0) * fabric.nics_per_host) * _PS
