"""One iteration of data-parallel workers, by when their gradients are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from plancast import _core, arguments, files, precision
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.gradient_traffic import tuning as tune_
from plancast.gradient_traffic.traffic import (
    MOST_SERVERS,
    GradientTraffic,
    scheme,
    with_knobs,
)
from plancast.gradient_traffic.worker import (
    WorkerPlan,
    batch_of_worker,
    memory_s_per_byte,
    of_one_worker,
    samples_of,
)
from plancast.immutable import Immutable
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import check_nouns, predict
from plancast.question import core_of
from plancast.session import Session
from plancast.shown import Shown, Tabular

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.gradient_traffic.tuning import Tuning
    from plancast.precision import Types


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
class GradientForecast(Immutable, Shown, Tabular):
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
        free = replace(
            self.traffic, call_us=0.0, bus_gb_per_s=1e6, half_bytes=0, bucket_view=True,
            find_unused=False,
        )  # fmt: skip
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
    def bucket_bytes(self) -> int:
        """Device memory of buckets beside the gradients, and of what is cast for sending."""
        return self._plan.own_bytes(self.traffic)

    @property
    def peak_memory(self) -> int:
        """Device memory of a worker with its buckets, bytes."""
        return self._plan.peak_memory + self.bucket_bytes

    @property
    def copies_time(self) -> float:
        """Of an iteration, kernels that copy and cast gradients for sending, seconds."""
        sends = self._plan.passes if self.traffic.sync == "each" else 1
        each = sum(self._plan.copies(self.traffic)) * self._plan.level
        return each * self.gradient_bytes * sends

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

    def records(self) -> list[dict[str, Any]]:
        """A row for each span of the first worker."""
        return [asdict(span) for span in self._spans]

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
            "copies_time_s": self.copies_time,
            "bucket_bytes": self.bucket_bytes,
            "peak_memory_bytes": self.peak_memory,
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
    bucket_view: bool | None = None,
    find_unused: bool | None = None,
    static_graph: bool | None = None,
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
      bucket_view: DDP's `gradient_as_bucket_view`.
      find_unused: DDP's `find_unused_parameters`.
      static_graph: DDP's `static_graph`, with which nobody looks for unused parameters.
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
    short, told = of_one_worker(strategy, machine.devices)
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
        "bucket_view": bucket_view,
        "find_unused": find_unused,
        "static_graph": static_graph,
    }
    traffic = with_knobs(traffic, knobs)
    wanted = tune_.knobs_of(tune)
    own = batch_of_worker(arguments.batch(batch), machine.devices)
    memo = session or Session()

    def read(asked: Types) -> tuple[list[tuple[str, int, int, int, int]], int, int, float]:
        return _core.plan_gradients(
            model._core,
            machine._core,
            core_of(short),
            memo._core,
            batch=own,
            dtype=arguments.dtype(dtype),
            profile=arguments.profile(profile, machine.gpu),
            precision=precision.asked(asked),
        )

    units, passes, host_ps, level = read(types)
    size = own or samples_of(short) * passes
    plan = WorkerPlan(
        model,
        machine,
        short,
        size * machine.devices,
        units,
        passes,
        host_ps,
        level,
        wider=_wider(units, types, read),
        memory_s_per_byte=memory_s_per_byte(machine, memo),
        peak_memory=_peak(model, machine, short, size, dtype, profile, memo, types),
    )
    if not wanted:
        return GradientForecast(plan, traffic)
    tuned = tune_.tune(lambda one: plan.run(one).iteration_ps, traffic, wanted, plan.gradient_bytes)
    return GradientForecast(plan, tuned.best, tuned.in_seconds(plan.second))


def _start(name: str, servers: int) -> GradientTraffic:
    hosts = arguments.whole(servers, "servers", 0, MOST_SERVERS)
    return scheme(arguments.word(name, "scheme"), servers=hosts)


def _wider(
    units: list[tuple[str, int, int, int, int]],
    types: Types,
    read: Callable[[Types], tuple[Any, ...]],
) -> float:
    """Bytes of a gradient against those that are sent: 2 of a hook that compresses."""
    if types.get("reduce_dtype") is None:
        return 1.0
    usual = {name: value for name, value in types.items() if name != "reduce_dtype"}
    whole: int = sum(unit[4] for unit in read(cast("Types", usual))[0])
    return max(1.0, whole / max(1, sum(unit[4] for unit in units)))


def _peak(
    model: Model,
    machine: Machine,
    short: str,
    size: int,
    dtype: str,
    profile: str,
    session: Session,
    types: Types,
) -> int:
    """Device memory of a worker, bytes."""
    forecast = predict(
        model, machine, short, batch=size * machine.devices, dtype=dtype, profile=profile,
        session=session, **types,
    )  # fmt: skip
    return forecast.peak_memory
