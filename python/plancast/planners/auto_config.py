"""Depth and micro-batch of a pipeline, as Varuna chooses them when machines come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.plan import Plan
from plancast.planners.stages import cut_points, nodes, stage_tree
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model


_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Configuration:
    """A pipeline of `depth` stages, `replicas` of it, and the seconds of an iteration.

    Each replica works on `micro_batches` of `micro_batch` samples; `gpus` that are left over idle.
    """

    depth: int
    replicas: int
    micro_batch: int
    micro_batches: int
    seconds: float

    @property
    def samples(self) -> int:
        """Of an iteration: the batch, or a little more or less where sizes do not divide it."""
        return self.replicas * self.micro_batch * self.micro_batches


def configurations(
    points: int,
    gpus: int,
    batch: int,
    *,
    sizes: Sequence[int],
    fits: Callable[[int, int, int], bool],
    simulate: Callable[[int, int, int, int], float],
) -> list[Configuration]:
    """What Varuna's AutoConfig tries (EuroSys'22, section 4), the fastest first.

    Depths are the divisors of the number of cut-points; each depth has as many replicas as GPUs
    allow, the largest micro-batch that fits, and ceil((batch // replicas) / size) micro-batches.

    Args:
      points: cut-points, units that stages share out evenly.
      gpus: how many there are.
      batch: samples of an iteration.
      sizes: micro-batches that may be tried, samples.
      fits: whether (depth, replicas, size) is within memory.
      simulate: seconds of (depth, replicas, size, micro-batches).

    >>> best, *others = configurations(
    ...     4, 4, 64, sizes=[1, 2, 4],
    ...     fits=lambda depth, replicas, size: size <= depth,
    ...     simulate=lambda depth, replicas, size, count: (count + depth - 1) * size / depth)
    >>> best
    Configuration(depth=1, replicas=4, micro_batch=1, micro_batches=16, seconds=16.0)
    """
    out = []
    for depth in (d for d in range(1, points + 1) if points % d == 0 and d <= gpus):
        replicas = gpus // depth
        share = batch // replicas
        fitting = [size for size in sizes if size <= share and fits(depth, replicas, size)]
        if not fitting:
            continue
        size = max(fitting)
        count = math.ceil(share / size)
        seconds = simulate(depth, replicas, size, count)
        out.append(Configuration(depth, replicas, size, count, seconds))
    return sorted(out, key=lambda found: (found.seconds, found.depth))


@checked
def auto_config(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    sizes: Sequence[int] | None = None,
    recompute: str = "full",
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """A pipeline with data parallelism, as Varuna's AutoConfig plans it (EuroSys'22).

    Every depth that divides the layers is tried with the largest micro-batch that fits, under
    Varuna's order of passes; the fastest is kept. GPUs beyond replicas times depth idle.

    Args:
      model: what is trained; its layers are the cut-points.
      machine: where.
      batch: global batch, samples per step. An iteration has as many as
        ceil((batch // replicas) / size) micro-batches of each replica make, which can differ.
      sizes: micro-batches to try, samples, as a profile of the model would have them: the
        largest that fits is taken, even where it leaves stages idle. 1, 2, 4 and 8 by default.
      recompute: as in the short form; Varuna recomputes all activations.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo of the forecasts.

    Raises:
      InputError: no depth fits.

    >>> from plancast import Machine, Model
    >>> plan = auto_config(Model.preset("gpt2-xl"), Machine.preset("dgx1-v100-32g:1"), batch=64)
    >>> plan.strategy.short_form
    'dp=8,pp=1,mb=8,recompute=full'
    """
    arguments.dtype(dtype)
    if batch < 1 or any(size < 1 for size in sizes or ()):
        raise InputError(f"a batch of {batch} and micro-batches of {sizes}; both are positive.")
    units = cut_points(model)
    memo = session or Session()
    tried = sizes or _SIZES

    def strategy(depth: int, replicas: int, size: int) -> Strategy:
        each = len(units) // depth
        plan = f"schedule=varuna,mb={size},recompute={recompute}"
        if depth == 1:
            plan = f"mb={size},recompute={recompute}"
        used = depth * replicas
        if used == machine.devices:
            return Strategy.parse(f"dp={replicas},pp={depth},{plan}")
        held = [
            {
                "nodes": nodes(units[stage * each : (stage + 1) * each]),
                "mesh": {"dp": replicas},
                "devices": f"gpus {stage * replicas}-{(stage + 1) * replicas - 1}",
            }
            for stage in range(depth)
        ]
        return Strategy.from_dict(stage_tree(plan, held, used=used, devices=machine.devices))

    def forecast(depth: int, replicas: int, size: int, count: int, **how: Any) -> Forecast:
        return predict(
            model,
            machine,
            strategy(depth, replicas, size),
            batch=replicas * size * count,
            dtype=dtype,
            profile=profile,
            session=memo,
            **how,
        )

    refused: list[str] = []

    def fits(depth: int, replicas: int, size: int) -> bool:
        count = math.ceil(batch // replicas / size)
        try:
            return forecast(depth, replicas, size, count, memory_first=True).fits
        except InputError as error:
            refused.append(str(error))
            return False

    found = configurations(
        len(units),
        machine.devices,
        batch,
        sizes=tried,
        fits=fits,
        simulate=lambda *shape: forecast(*shape).iteration_time,
    )
    if not found:
        why = f" The last was refused: {refused[-1]}" if refused else ""
        raise InputError(
            f"no depth that divides {len(units)} cut-points fits on {machine} with a batch of "
            f"{batch}.{why}"
        )
    best = found[0]
    remarks = []
    if best.samples != batch:
        remarks.append(
            f"An iteration has {best.samples} samples: {best.replicas} replicas with "
            f"{best.micro_batches} micro-batches of {best.micro_batch}."
        )
    idle = machine.devices - best.depth * best.replicas
    if idle:
        remarks.append(f"{idle} GPUs idle.")
    shape = (best.depth, best.replicas, best.micro_batch)
    return Plan(
        "auto-config",
        strategy(*shape),
        best.seconds,
        "s",
        forecast(*shape, best.micro_batches),
        {"tried": [{**asdict(one), "samples": one.samples} for one in found]},
        tuple(remarks),
    )
