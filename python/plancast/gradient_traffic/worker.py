"""What one data-parallel worker computes, and what its gradients cost it beside that."""

from __future__ import annotations

from dataclasses import dataclass

from plancast import _core
from plancast.errors import InputError
from plancast.gradient_traffic.traffic import GradientTraffic, size_of
from plancast.machine import Machine
from plancast.model import Model
from plancast.session import Session

# What cuts a worker's model over devices.
_SPLITS = ("tp", "pp", "cp", "ep", "etp", "vpp")
_LARGE = 1 << 26


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
    wider: float = 1.0  # a gradient against how it is sent
    memory_s_per_byte: float = 0.0  # of kernels that only move bytes, read or written
    peak_memory: int = 0  # of the plan, without buckets

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

    def own_bytes(self, traffic: GradientTraffic) -> int:
        """Device memory of buckets beside the gradients, and of what is cast for sending."""
        wide = round(self.gradient_bytes * self.wider)
        beside = 0 if traffic.bucket_view else wide
        return beside + (self.gradient_bytes if self.wider > 1 else 0)

    def copies(self, traffic: GradientTraffic) -> tuple[float, float]:
        """Seconds of kernels for each byte that is sent: as it is made, and when its sum is there.

        Beyond the division by the number of workers, which every DDP does and `predict` has in its
        levels. Without `gradient_as_bucket_view` sums are copied back (the copy into the bucket
        divides). A hook that compresses (torch's default_hooks.py) casts, divides in the small type
        in place of the wide one, and casts back; without the view it is copied into the bucket,
        too.
        """
        wide = 2 * self.wider  # read and written
        pack = unpack = 0.0
        if self.wider > 1:
            pack, unpack = self.wider + 1 + 2 - wide, 1 + self.wider
            if not traffic.bucket_view:
                pack += wide
        if not traffic.bucket_view:
            unpack += wide
        return pack * self.memory_s_per_byte, unpack * self.memory_s_per_byte

    def flag_bytes(self, traffic: GradientTraffic) -> int:
        """Of which parameters were used (`find_unused_parameters`): an int32 for each op here."""
        if not traffic.find_unused or traffic.static_graph:
            return 0
        return 4 * sum(unit[4] > 0 for unit in self.units)

    def run(self, traffic: GradientTraffic) -> _core.GradientRun:
        """The iteration with gradients sent so."""
        return _core.run_gradients(
            self.units,
            self.machine._core,
            host_ps=self.host_ps,
            passes=self.passes,
            copies_s_per_byte=self.copies(traffic),
            flag_bytes=self.flag_bytes(traffic),
            **traffic.core(),
        )


def memory_s_per_byte(machine: Machine, session: Session) -> float:
    """Seconds for each byte that a large kernel reads or writes."""
    kernel = ("memory/copy", f"read={_LARGE} write={_LARGE} launches=1", "fp32", "")
    price = _core.price_kernel(kernel, machine._core, session._core, roofline=False)
    return float(price["seconds"]) / (2 * _LARGE)


def batch_of_worker(batch: int | None, workers: int) -> int | None:
    """Its part of a global batch."""
    if batch is None:
        return None
    if batch % workers:
        raise InputError(f"the global batch {batch} is no multiple of the {workers} workers.")
    return batch // workers


def samples_of(short: str) -> int:
    """Of a pass, as a short form says."""
    found = [word[3:] for word in short.split(",") if word.startswith("mb=")]
    return int(found[0]) if found else 1


def of_one_worker(strategy: str, workers: int) -> tuple[str, dict[str, str]]:
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
