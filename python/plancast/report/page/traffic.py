"""What a step sends over which links, from the compiled plan."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.question import PlanQuestion, core_of

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# How often a ring sends (n - 1) / n of the tensor from every one of n GPUs.
_ROUNDS = {"all_reduce": 2}


@dataclass(frozen=True)
class Traffic:
    """One kind of communication of a device class: bytes that a GPU sends in a step.

    `inside` goes over the links of a host or NVLink domain, `network` beyond.
    """

    collective: str
    axes: tuple[str, ...]
    count: int
    inside: float
    network: float


@dataclass(frozen=True)
class ClassTraffic:
    """All communication of one device class, and where its devices are.

    `kinds_sent`: bytes inside and over the network by stream, purpose and name of the tasks.
    """

    device_class: str
    where: Mapping[str, int]
    kinds: tuple[Traffic, ...]
    kinds_sent: Mapping[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)

    @property
    def inside(self) -> float:
        """Bytes over links of the host."""
        return sum(kind.inside for kind in self.kinds)

    @property
    def network(self) -> float:
        """Bytes over the network."""
        return sum(kind.network for kind in self.kinds)


@dataclass(frozen=True)
class Rates:
    """Bytes a second that a GPU's share of links carries in one direction, of the data sheet."""

    inside: float
    network: float
    domain: int


def rates(fields: Mapping[str, Any]) -> Rates:
    """Of a machine's own fields."""
    domain = max(1, fields["gpus_per_host"] * fields["hosts_per_domain"])
    nics = fields["nics_per_host"] * fields["nic_gbit_per_s"] / 8
    return Rates(
        (fields["intra_gb_per_s"] or fields["pcie_gb_per_s"]) * 1e9,
        nics / max(1, fields["gpus_per_host"]) * 1e9,
        domain,
    )


def traffic(forecast: Forecast, domain: int = 0) -> list[ClassTraffic]:
    """By device class; none for machines of unlike hosts, meshes of stages' own, other plans.

    `domain`: GPUs beyond which is the network; those that a machine's links join by default.
    """
    question = forecast._question
    if not isinstance(question, PlanQuestion) or len(question.machine.sections) != 1:
        return []
    graph = _core.execution_graph(
        question.model._core,
        question.machine._core,
        core_of(question.strategy),
        batch=question.batch,
        dtype=question.dtype,
        profile=question.profile,
        precision=question.precision,
    )
    if graph["reshards"]:
        return []
    domain = domain or rates(question.machine.to_dict()).domain
    return [_of_program(program, graph["blocks"], domain) for program in graph["programs"]]


def _of_program(program: Mapping[str, Any], blocks: Sequence[Any], domain: int) -> ClassTraffic:
    runs: Counter[int] = Counter()
    for instance in program["instances"]:
        runs[instance["block"]] += instance["repeats"]
    strides = strides_of(program["axes"])
    base = program["shift"] + sum(strides[a] * at for a, at in program["where"].items())
    sums: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    named: dict[tuple[str, str, str], tuple[float, float]] = {}
    for block, repeats in runs.items():
        for task in blocks[block]["tasks"]:
            kind, axes = task["collective"], tuple(task["axes"])
            # Messages are counted where they are sent.
            if not kind or task["stream"].startswith("recv"):
                continue
            total, inside = _sent(task, program["axes"], strides, base, domain)
            found = sums.setdefault((kind, axes), [0.0, 0.0, 0.0])
            found[0] += repeats
            found[1] += repeats * total * inside
            found[2] += repeats * total * (1 - inside)
            name = (task["stream"], task["purpose"], task["label"])
            near, far = named.get(name, (0.0, 0.0))
            sent = repeats * total
            named[name] = (near + sent * inside, far + sent * (1 - inside))
    kinds = [
        Traffic(kind, axes, int(count), inside, network)
        for (kind, axes), (count, inside, network) in sums.items()
        if inside + network > 0
    ]
    kinds.sort(key=lambda one: -(one.inside + one.network))
    return ClassTraffic(program["name"], program["where"], tuple(kinds), named)


def strides_of(axes: Mapping[str, int]) -> dict[str, int]:
    """How far apart neighbours along an axis are; the last is the innermost.

    >>> strides_of({"pp": 2, "dp": 4, "tp": 8})
    {'pp': 32, 'dp': 8, 'tp': 1}
    """
    names = list(axes)
    return {
        name: math.prod(axes[inner] for inner in names[at + 1 :]) for at, name in enumerate(names)
    }


def _sent(
    task: Mapping[str, Any],
    axes: Mapping[str, int],
    strides: Mapping[str, int],
    base: int,
    domain: int,
) -> tuple[float, float]:
    """Bytes that a GPU sends, and the share of them that stays inside its domain."""
    names = task["axes"]
    if task["collective"] == "send_recv":
        distance = abs(task["peer_offset"]) * strides[names[0]] if names else domain
        return float(task["bytes"]), max(0.0, 1 - distance / domain)
    members = [
        sum(step * strides[name] for step, name in zip(steps, names, strict=True))
        for steps in itertools.product(*(range(axes[name]) for name in names))
    ]
    count = len(members)
    if count < 2:
        return 0.0, 1.0
    factor = _ROUNDS.get(task["collective"], 1) * (count - 1) / count
    together = sum(member < domain - base % domain for member in members)
    if together == count:
        return task["bytes"] * factor, 1.0
    # A ring leaves a domain once for all its members there.
    return task["bytes"] * factor, 1 - 1 / max(1, together)
