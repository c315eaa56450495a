"""How gradients are sent: buckets, partitions, order, credit, and who sums them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from plancast import arguments
from plancast.errors import InputError

_MIB = 1 << 20
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": _MIB, "GIB": 1 << 30, "TIB": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)\s*")
_LARGEST = 1 << 50
MOST_SERVERS = 1000
ORDERS = ("made", "priority")
WAITS = ("all", "own")
SYNCS = ("last", "each")


@dataclass(frozen=True, kw_only=True)
class GradientTraffic:
    """How the gradients of data-parallel workers are sent.

    Args:
      bucket: gradients are joined, in the order in which they are made, until a message has so
        many bytes; 0: each tensor by itself.
      first_bucket: the same of the first message; 0: as the others.
      partition: messages are sent in parts of so many bytes at most; 0: whole.
      order: `made`: first come, first served; `priority`: those first that the next forward pass
        needs first.
      credit: bytes in flight below which a further part begins; 1: one part at a time; 0: one at
        a time to each server, as over connections that know nothing of one another.
      wait: what the next forward pass waits for: `all` gradients, or each layer for its `own`.
      sync: of several passes (accum), the `last` sends alone, or `each` does.
      servers: hosts that sum, behind those of the workers; 0: all-reduces among the workers.
      host_sums: whether workers of a host sum among themselves before they push, each its share;
        else each pushes all.
      spread: whole messages of at least so many bytes go to all servers, a part to each; 0: none.
      call_us: microseconds of each part beside what the machine says: launches, copies.
      bus_gb_per_s: in place of the machine's prices, what links are known to reach, GB/s.
      half_bytes: of such a link, the size of a message that reaches half of that rate.
      bucket_view: gradients are parts of buckets (`gradient_as_bucket_view`); else they are copied
        into them and back, and take memory twice.
      find_unused: parameters that a pass did not use are looked for, and a last message says which
        (`find_unused_parameters`); what the host does for it is not counted.
      static_graph: the same parameters are used in every pass, so that nobody looks.
    """

    bucket: int = 0
    first_bucket: int = 0
    partition: int = 0
    order: str = "made"
    credit: int = 1
    wait: str = "all"
    sync: str = "last"
    servers: int = 0
    host_sums: bool = True
    spread: int = 0
    call_us: float = 0.0
    bus_gb_per_s: float | None = None
    half_bytes: int = 0
    bucket_view: bool = True
    find_unused: bool = False
    static_graph: bool = False

    def __post_init__(self) -> None:
        for name, known in (("order", ORDERS), ("wait", WAITS), ("sync", SYNCS)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(
                    f"no {name} `{value}`; it is {arguments.listed(known)}."
                    f"{arguments.offer(value, known)}"
                )
        arguments.whole(self.servers, "servers", 0, MOST_SERVERS)
        if not 0 <= self.call_us <= 1e6:
            raise InputError(f"`call_us` is {self.call_us}; give 0 to a million microseconds.")
        rate = self.bus_gb_per_s
        if rate is not None and not 1e-6 <= rate <= 1e6:
            raise InputError(f"`bus_gb_per_s` is {rate}; give GB/s, such as 8.")
        if self.servers == 0 and (not self.host_sums or self.credit == 0):
            raise InputError(
                "sums inside of hosts and a part at a time to each server are of servers; give "
                "`servers`."
            )
        if self.half_bytes and rate is None:
            raise InputError("`half_bytes` belongs to `bus_gb_per_s`; give both.")

    def core(self) -> dict[str, Any]:
        """The keyword arguments of `_core.run_gradients`."""
        rate = self.bus_gb_per_s
        return {
            "bucket": self.bucket,
            "first_bucket": self.first_bucket,
            "partition": self.partition,
            "by_priority": self.order == "priority",
            "credit": self.credit,
            "waits_for_all": self.wait == "all",
            "overhead_ps": round(self.call_us * 1e6),
            "each_pass_sends": self.sync == "each",
            "servers": self.servers,
            "sums_in_hosts": self.host_sums,
            "spread": self.spread,
            "line": None if rate is None else (rate * 1e9, float(self.half_bytes)),
        }

    def __str__(self) -> str:
        """The knobs that are not as by default.

        >>> str(scheme("ddp"))
        'bucket=25MiB,first_bucket=1MiB,bucket_view=off'
        """
        words = []
        for name in ("bucket", "first_bucket", "partition", "credit"):
            value = getattr(self, name)
            if value != getattr(GradientTraffic, name):
                words.append(
                    f"{name}={credit_text(value) if name == 'credit' else size_text(value)}"
                )
        for name in ("order", "wait", "sync", "servers", "call_us", "bus_gb_per_s"):
            value = getattr(self, name)
            if value != getattr(GradientTraffic, name):
                words.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
        if not self.host_sums:
            words.append("host_sums=off")
        if not self.bucket_view:
            words.append("bucket_view=off")
        words += [f"{name}=on" for name in ("find_unused", "static_graph") if getattr(self, name)]
        if self.spread and self.servers and not self.partition:
            words.append(f"spread={size_text(self.spread)}")
        if self.half_bytes:
            words.append(f"half_bytes={size_text(self.half_bytes)}")
        return ",".join(words) or "each tensor by itself"


# What software does where nobody says otherwise. DDP: kDefaultBucketBytesCap and
# kDefaultFirstBucketBytes of torch/csrc/distributed/c10d/reducer.hpp, one communicator, gradients
# beside their buckets (gradient_as_bucket_view=False).
# ByteScheduler: partitions of 1e6 and a credit of 4e6 parameters with servers, 8e6 and 16e6 with
# all-reduces (github.com/bytedance/byteps, bytescheduler/docs/scheduling.md), four bytes each.
# Tensors by themselves, with servers: as ps-lite sends them for MXNet, which spreads arrays of
# MXNET_KVSTORE_BIGARRAY_BOUND = 1e6 elements and more (MXNet's docs, faq/env_var.md).
_SCHEMES: dict[str, dict[str, Any]] = {
    "ddp": {"bucket": 25 * _MIB, "first_bucket": _MIB, "bucket_view": False},
    "tensors": {"wait": "own"},
    "bytescheduler": {"order": "priority", "wait": "own"},
}
_SPREAD = 4_000_000
_BYTESCHEDULER = {True: (4_000_000, 16_000_000), False: (32_000_000, 64_000_000)}
SCHEMES = tuple(_SCHEMES)


def scheme(name: str, *, servers: int = 0) -> GradientTraffic:
    """`ddp`, `tensors` (each by itself, as it is made) or `bytescheduler`.

    >>> scheme("bytescheduler", servers=2).partition
    4000000
    """
    if name not in _SCHEMES:
        raise InputError(
            f"no scheme `{name}`; it is {arguments.listed(SCHEMES)}."
            f"{arguments.offer(name, SCHEMES)}"
        )
    knobs = dict(_SCHEMES[name])
    if name == "bytescheduler":
        knobs["partition"], knobs["credit"] = _BYTESCHEDULER[servers > 0]
    elif servers > 0:
        knobs["credit"] = 0
    return GradientTraffic(servers=servers, spread=_SPREAD if servers > 0 else 0, **knobs)


def with_knobs(traffic: GradientTraffic, knobs: dict[str, Any]) -> GradientTraffic:
    """The same with other values of what is not None; sizes may be text."""
    told: dict[str, Any] = {}
    for name, value in knobs.items():
        if value is None:
            continue
        if name in ("bucket", "first_bucket", "partition", "spread", "half_bytes"):
            told[name] = size_of(value, name, 0)
        elif name == "credit":
            told[name] = {"one": 1, "each": 0}.get(str(value), -1)
            if told[name] < 0:
                told[name] = size_of(value, name, 1)
        else:
            told[name] = value
    # DDP's first bucket is smaller where nobody says how large buckets are.
    if "first_bucket" not in told and told.get("bucket", traffic.bucket) != traffic.bucket:
        told["first_bucket"] = 0
    return replace(traffic, **told)


def size_of(value: Any, what: str, least: int) -> int:
    """Bytes: a number, or text such as `25MB` or `4MiB`.

    >>> size_of("25MB", "bucket", 0), size_of("0.5MiB", "bucket", 0)
    (25000000, 524288)
    """
    size: float | None = None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        unit = None if match is None else _UNITS.get(match[2].upper())
        if match is not None and unit is not None:
            size = float(match[1]) * unit
    elif arguments.is_whole(value):
        size = value
    if size is None or not least <= size <= _LARGEST:
        also = ", `one` or `each`" if what == "credit" else ""
        raise InputError(f"`{what}` is `{value}`; give bytes, such as 25MB or 4MiB{also}.")
    return round(size)


def credit_text(credit: int) -> str:
    """A credit as it is written: `one` part at a time, one to `each` server, or bytes."""
    return {0: "each", 1: "one"}.get(credit) or size_text(credit)


def size_text(size: int) -> str:
    """Bytes in the unit in which they are shortest.

    >>> size_text(26214400), size_text(4000000), size_text(1)
    ('25MiB', '4MB', '1B')
    """
    found = [
        f"{size // scale}{name}"
        for name, scale in (
            ("B", 1), ("kB", 10**3), ("KiB", 1 << 10), ("MB", 10**6), ("MiB", _MIB),
            ("GB", 10**9), ("GiB", 1 << 30),
        )
        if size % scale == 0
    ]  # fmt: skip
    return min(found, key=len)
