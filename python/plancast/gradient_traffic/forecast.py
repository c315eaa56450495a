"""One iteration of data-parallel workers, by when their gradients are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from plancast import _core, arguments, files, precision
from plancast.checked import checked
from plancast.errors import InputError
from plancast.gradient_traffic import tuning as tune_
from plancast.gradient_traffic.traffic import (
    MOST_SERVERS,
    GradientTraffic,
    scheme,
    size_of,
    with_knobs,
)
from plancast.immutable import Immutable
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import check_nouns
from plancast.question import core_of
from plancast.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.gradient_traffic.tuning import Tuning
    from plancast.precision import Types

# What cuts a worker's model over devices.
_SPLITS = ("tp", "pp", "cp", "ep", "etp", "vpp")


@dataclass(frozen=True)
class GradientSpan:
    """What a worker does, seconds from the begin of its last backward pass.

    `what`: `forward`, `backward`, `update` or `host`; of communications `reduce` and, with
    servers, `push`, `pull` and `gather`. `unit` is the op whose gradients are made or sent, of a
    message the one that runs forward first.
    """

    what: str
    unit: str
    index: int
    bytes: int
    start_s: float
    end_s: float


@checked
class GradientForecast(Immutable):
    """An iteration whose gradients are sent as `traffic` says; times are seconds.

    It is counted from the begin of an iteration's last backward pass to the end of the next
    one's last forward pass, when nothing is on its way.
    """

    def __init__(self, plan: WorkerPlan, traffic: GradientTraffic, tuned: Tuning | None = None):
        self.model, self.machine = plan.model.name, plan.machine.name
        self.gpus = plan.machine.devices
        self.strategy, self.global_batch = plan.strategy, plan.global_batch
        self.traffic, self.tuning = traffic, tuned
        self._plan = plan
        self._run = plan.run(traffic)

    @property
    def iteration_time(self) -> float:
        """Of one optimizer step."""
        return self._run.iteration_ps * self._plan.second

    @property
    def alone_time(self) -> float:
        """Of a worker whose gradients take no time."""
        return self._alone_ps * self._plan.second

    @cached_property
    def _alone_ps(self) -> int:
        if self.traffic.wait == "all":
            return self._plan.alone_ps
        # Updates go on while the host prepares the next iteration.
        free = replace(self.traffic, call_us=0.0, bus_gb_per_s=1e6, half_bytes=0)
        local = replace(free, servers=0, host_sums=True, spread=0, credit=max(free.credit, 1))
        return min(self._plan.run(local).iteration_ps, self._run.iteration_ps)

    @property
    def exposed_time(self) -> float:
        """What workers wait for gradients."""
        return max(self.iteration_time - self.alone_time, 0.0)

    @property
    def efficiency(self) -> float:
        """What a worker does beside others, against what it would without gradients to send."""
        return self.alone_time / self.iteration_time

    @property
    def samples_per_s(self) -> float:
        """Of all workers."""
        return self.global_batch / self.iteration_time

    @property
    def gradient_bytes(self) -> int:
        """What a backward pass has to send."""
        return self._plan.gradient_bytes

    @property
    def messages(self) -> int:
        """Buckets, or tensors, of a backward pass."""
        return self._run.messages

    @property
    def parts(self) -> int:
        """In which they are sent."""
        return self._run.parts

    @property
    def most_in_flight(self) -> int:
        """Bytes at a time, of one sender."""
        return self._run.most_in_flight

    @property
    def sent_bytes(self) -> int:
        """Of an iteration, that a worker pushes to servers, or that are reduced."""
        return self._run.sent_bytes

    @cached_property
    def _spans(self) -> list[GradientSpan]:
        second, units = self._plan.second, self._plan.units
        return [
            GradientSpan(what, units[unit][0], unit, size, start * second, end * second)
            for what, unit, size, start, end in self._run.spans
        ]

    def spans(self) -> list[GradientSpan]:
        """What the first worker does, by end."""
        return list(self._spans)

    @property
    def units(self) -> list[tuple[str, int]]:
        """Ops with parameters in the order of the forward pass: name, bytes of the gradients."""
        return [(name, size) for name, _, _, _, size in self._plan.units]

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast gradients --json`."""
        fields: dict[str, Any] = {
            "model": self.model,
            "machine": self.machine,
            "gpus": self.gpus,
            "strategy": self.strategy,
            "traffic": str(self.traffic),
            "iteration_time_s": self.iteration_time,
            "alone_time_s": self.alone_time,
            "exposed_time_s": self.exposed_time,
            "efficiency": self.efficiency,
            "global_batch": self.global_batch,
            "samples_per_s": self.samples_per_s,
            "gradient_bytes": self.gradient_bytes,
            "messages": self.messages,
            "parts": self.parts,
            "most_in_flight_bytes": self.most_in_flight,
            "sent_bytes": self.sent_bytes,
        }
        if self.tuning is not None:
            fields["tuning"] = self.tuning.to_dict()
        return fields

    def to_svg(self, path: str | Path, against: GradientForecast | None = None) -> None:
        """Writes a picture of the iteration, below another one; of a tuned one as it was before."""
        from plancast.report.gradients_svg import gradients_svg

        runs = [self] if against is None else [against, self]
        if self.tuning is not None and self.tuning.default != self.traffic:
            runs.insert(-1, GradientForecast(self._plan, self.tuning.default))
        files.write_text(path, gradients_svg(runs))

    def __reduce__(self) -> tuple[Any, ...]:
        return GradientForecast, (self._plan, self.traffic, self.tuning)

    def __rich__(self) -> RenderableType:
        from plancast.report.gradients import gradient_tables

        return gradient_tables(self)

    def __repr__(self) -> str:
        from plancast.textual import duration

        return (
            f"<GradientForecast {self.model} on {self.machine} with {self.traffic}: "
            f"{duration(self.iteration_time)}>"
        )


@dataclass(frozen=True)
class WorkerPlan:
    """What one worker computes, and where its gradients go."""

    model: Model
    machine: Machine
    strategy: str
    global_batch: int
    units: list[tuple[str, int, int, int, int]]
    passes: int
    host_ps: int
    level: float

    @property
    def second(self) -> float:
        """Of a picosecond that is simulated, the seconds that runs take."""
        return 1e-12 * self.level

    @property
    def alone_ps(self) -> int:
        """An iteration of a worker without others."""
        passes = sum(forward + backward for _, forward, backward, _, _ in self.units)
        return self.host_ps + self.passes * passes + sum(unit[3] for unit in self.units)

    @property
    def gradient_bytes(self) -> int:
        """What a backward pass has to send."""
        return sum(unit[4] for unit in self.units)

    def run(self, traffic: GradientTraffic) -> _core.GradientRun:
        """The iteration with gradients sent so."""
        knobs = traffic.core()
        return _core.run_gradients(
            self.units, self.machine._core, host_ps=self.host_ps, passes=self.passes, **knobs
        )


@checked
def gradients(
    model: Model,
    machine: Machine,
    strategy: str = "",
    *,
    scheme: str = "ddp",
    bucket: int | str | None = None,
    first_bucket: int | str | None = None,
    partition: int | str | None = None,
    order: str | None = None,
    credit: int | str | None = None,
    wait: str | None = None,
    sync: str | None = None,
    servers: int = 0,
    host_sums: bool | None = None,
    spread: int | str | None = None,
    call_us: float | None = None,
    bus_gb_per_s: float | None = None,
    half_bytes: int | str | None = None,
    tune: Sequence[str] | str = (),
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = "ddp",
    session: Session | None = None,
    **types: Unpack[Types],
) -> GradientForecast:
    """Forecasts an iteration of data-parallel workers by when their gradients are sent.

    Args:
      model: what is trained, whole on every GPU.
      machine: the workers' hosts.
      strategy: of one worker: `mb=8,accum=4,recompute=full`.
      scheme: where the knobs below begin: `ddp`, `tensors` or `bytescheduler`.
      bucket: as of `GradientTraffic`, like all up to `half_bytes`; sizes may be text, `25MiB`.
      first_bucket: of the first message.
      partition: of parts of messages.
      order: `made` or `priority`.
      credit: in flight; `one` part at a time, or one to `each` server.
      wait: `all` or `own`.
      sync: `last` or `each`.
      servers: hosts that sum, beside those of the machine, with the same interfaces.
      host_sums: of workers of a host, before they push.
      spread: over all servers.
      call_us: of each part beside what the machine says, microseconds.
      bus_gb_per_s: what links are known to reach, in place of the machine's prices.
      half_bytes: of such a link.
      tune: knobs to be chosen for the machine: `bucket,partition,credit`, or some of them.
      batch: global batch; absent: GPUs * mb * accum.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo.
      types: of what is stored and sent, as for `predict`: `reduce_dtype="fp16"` halves fp32.

    >>> found = gradients(Model.preset("resnet50"), Machine.preset("t4-pcie"), "mb=32",
    ...     dtype="fp16")
    >>> found.messages
    5
    >>> found.exposed_time < found.iteration_time / 2
    True
    """
    check_nouns(model, machine, session)
    short, told = _of_one_worker(strategy, machine.devices)
    traffic = _start(scheme, servers)
    knobs = {
        "bucket": told.get("bucket") if bucket is None else bucket,
        "first_bucket": first_bucket,
        "partition": partition,
        "order": order,
        "credit": credit,
        "wait": wait,
        "sync": told.get("sync") if sync is None else sync,
        "host_sums": host_sums,
        "spread": spread,
        "call_us": call_us,
        "bus_gb_per_s": bus_gb_per_s,
        "half_bytes": half_bytes,
    }
    traffic = with_knobs(traffic, knobs)
    wanted = tune_.knobs_of(tune)
    own = _batch_of_worker(arguments.batch(batch), machine.devices)
    units, passes, host_ps, level = _core.plan_gradients(
        model._core,
        machine._core,
        core_of(short),
        (session or Session())._core,
        batch=own,
        dtype=arguments.dtype(dtype),
        profile=arguments.word(profile, "profile"),
        precision=precision.asked(types),
    )
    size = own or _samples(short) * passes
    plan = WorkerPlan(model, machine, short, size * machine.devices, units, passes, host_ps, level)
    if not wanted:
        return GradientForecast(plan, traffic)
    tuned = tune_.tune(lambda one: plan.run(one).iteration_ps, traffic, wanted, plan.gradient_bytes)
    return GradientForecast(plan, tuned.best, tuned.in_seconds(plan.second))


def _start(name: str, servers: int) -> GradientTraffic:
    hosts = arguments.whole(servers, "servers", 0, MOST_SERVERS)
    return scheme(arguments.word(name, "scheme"), servers=hosts)


def _batch_of_worker(batch: int | None, workers: int) -> int | None:
    if batch is None:
        return None
    if batch % workers:
        raise InputError(f"the global batch {batch} is no multiple of the {workers} workers.")
    return batch // workers


def _samples(short: str) -> int:
    found = [word[3:] for word in short.split(",") if word.startswith("mb=")]
    return int(found[0]) if found else 1


def _of_one_worker(strategy: str, workers: int) -> tuple[str, dict[str, str]]:
    """What of a plan says what one worker computes, and what says how gradients are sent."""
    kept, told = [], {}
    for word in filter(None, (part.strip() for part in strategy.split(","))):
        name, _, value = word.partition("=")
        if name in ("bucket", "sync"):
            told[name] = value
        elif name == "dp":
            if value != str(workers):
                raise InputError(f"`{word}`: each of the {workers} GPUs is a worker; leave dp out.")
        elif name in _SPLITS and value != "1":
            raise InputError(
                f"`{word}`: queues of gradients are those of workers of one GPU each. "
                "`plancast predict` has plans that are split."
            )
        elif name in ("zero", "overlap", "hsdp") and value != "0":
            raise InputError(
                f"`{word}`: here gradients are summed whole, when the knobs of this command say. "
                "`plancast predict` has sharded plans."
            )
        elif name not in (*_SPLITS, "zero", "hsdp"):
            kept.append(word)
    if "bucket" in told:
        size_of(told["bucket"], "bucket", 0)
    return ",".join(kept), told
