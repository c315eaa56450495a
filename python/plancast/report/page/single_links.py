"""Links one by one: of GPUs, network interfaces and uplinks, and how full each is over the step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from plancast.report.page.figures import Figure
from plancast.report.page.frame import Chart, Part
from plancast.report.page.grid import Column, Grid
from plancast.report.page.links import POINTS, course_figure, link_course
from plancast.report.page.slices import Lane, end_of
from plancast.report.page.traffic import ClassTraffic, strides_of
from plancast.textual import percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

INSIDE, NETWORK, PODS = range(3)
_MOST_LINKS = 48  # unlike ones in the table
_MOST_DRAWN = 6  # of GPUs, and of the network
_MOST_GPUS = 1 << 17
# What of an interval a link must be used for the interval to count.
_BUSY = 0.005
_NOTE = (
    "Out of each, of the data sheet's rate. A ring that leaves a host does so by all its "
    "interfaces alike; messages between stages by those of their GPUs."
)


@dataclass(frozen=True)
class Link:
    """A link, out; `like` others carry the same.

    `senders`: by number of device class, how many of its GPUs' bytes of a `kind` go over it.
    """

    name: str
    kind: int
    rate: float
    senders: Mapping[int, float]
    like: int = 0


# A link, bytes by part of the step, and shares of its rate.
_Row: TypeAlias = "tuple[Link, NDArray[np.float64], NDArray[np.float64]]"


def classes_of(
    devices: int, axes: Mapping[str, int], found: Sequence[ClassTraffic]
) -> NDArray[np.int64]:
    """The number of the device class of every GPU, which a rank's place in the mesh says."""
    strides = strides_of(axes)
    rank = np.arange(devices)
    place = {name: rank // strides[name] % axes[name] for name in axes}
    out = np.zeros(devices, np.int64)
    for at in reversed(range(len(found))):
        here = np.ones(devices, dtype=bool)
        for name, value in found[at].where.items():
            if name in place:
                here &= place[name] == value
        out[here] = at
    return out


def links_of(fields: Mapping[str, Any], classes: NDArray[np.int64]) -> list[Link]:
    """All links of a machine that the GPUs of a plan send over, those that are alike once."""
    gpus, nics = fields["gpus_per_host"], fields["nics_per_host"]
    inside = (fields["intra_gb_per_s"] or fields["pcie_gb_per_s"]) * 1e9
    nic = fields["nic_gbit_per_s"] / 8 * 1e9
    named = fields["intra_link"] or "link"
    found: dict[tuple[int, frozenset[tuple[int, float]]], Link] = {}

    def add(name: str, kind: int, rate: float, senders: Mapping[int, float]) -> None:
        key = kind, frozenset(senders.items())
        old = found.get(key)
        like = 0 if old is None else old.like + 1
        found[key] = Link(old.name if old else name, kind, rate, senders, like)

    for host in range(len(classes) // gpus):
        here = classes[host * gpus : (host + 1) * gpus].tolist()
        for gpu, kind in enumerate(here):
            add(f"{named} of GPU {gpu}, host {host}", INSIDE, inside, {kind: 1.0})
        for at in range(nics if nic else 0):
            senders: Counter[int] = Counter()
            for gpu in {at * gpus // nics, *(g for g in range(gpus) if g * nics // gpus == at)}:
                senders[here[gpu]] += 1
            # Several interfaces of a GPU share its bytes.
            share = gpus / nics if nics > gpus else 1.0
            weights = {kind: number * share for kind, number in senders.items()}
            add(f"interface {at}, host {host}", NETWORK, nic, weights)
    pod = fields["hosts_per_pod"] * gpus
    if 0 < pod < len(classes):
        rate = fields["hosts_per_pod"] * nics * nic / fields["oversubscription"]
        for at in range(-(-len(classes) // pod)):
            counted = Counter(classes[at * pod : (at + 1) * pod].tolist())
            add(f"uplinks of pod {at}", PODS, rate, {k: float(n) for k, n in counted.items()})
    return list(found.values())


def used_over_time(
    links: Sequence[Link],
    found: Sequence[Lane],
    sent: Sequence[ClassTraffic],
    beyond_pods: Sequence[ClassTraffic],
) -> list[NDArray[np.float64]]:
    """Bytes that each link carries in each of `POINTS` parts of the step."""
    edges = np.linspace(0.0, end_of(found), POINTS + 1)
    lane_of = {lane.device_class: lane for lane in found}
    near: dict[int, NDArray[np.float64]] = {}
    far: dict[int, NDArray[np.float64]] = {}
    for courses, traffic in ((near, sent), (far, beyond_pods)):
        for at, one in enumerate(traffic):
            lane = lane_of.get(one.device_class)
            if lane is not None:
                courses[at] = link_course(lane, one, edges)
    out = []
    for link in links:
        courses, row = (far, 1) if link.kind == PODS else (near, link.kind)
        total = np.zeros(POINTS)
        for at, weight in link.senders.items():
            if at in courses:
                total = total + weight * courses[at][row]
        out.append(total)
    return out


def _drawn(rows: Sequence[_Row]) -> list[_Row]:
    """The fullest of GPUs and of the network."""
    taken: Counter[bool] = Counter()
    drawn = []
    for row in rows:
        of_gpus = row[0].kind == INSIDE
        if taken[of_gpus] < _MOST_DRAWN:
            taken[of_gpus] += 1
            drawn.append(row)
    return drawn


def single_link_parts(
    fields: Mapping[str, Any],
    classes: NDArray[np.int64],
    found: Sequence[Lane],
    sent: Sequence[ClassTraffic],
    beyond_pods: Sequence[ClassTraffic],
) -> list[Part]:
    """A table of the links, the fullest first, and each over the step."""
    end = end_of(found)
    if not end or len(classes) > _MOST_GPUS:
        return []
    links = [link for link in links_of(fields, classes) if link.rate > 0]
    courses = used_over_time(links, found, sent, beyond_pods)
    order = sorted(
        (at for at in range(len(links)) if courses[at].sum() > 0),
        key=lambda at: -courses[at].sum() / links[at].rate,
    )[:_MOST_LINKS]
    if not order:
        return []
    width = end / POINTS
    rows: list[_Row] = [
        (links[at], courses[at], courses[at] / (width * links[at].rate)) for at in order
    ]
    figures: dict[str, Figure] = {
        link.name: course_figure(share, end, link.name, link.kind)
        for link, _, share in _drawn(rows)
    }

    def column(label: str, values: Sequence[float]) -> Column:
        return Column(label, [round(v, 6) for v in values], [percent(v) for v in values])

    carried = [float(course.sum()) / 1e9 for _, course, _ in rows]
    table = Grid(
        [
            Column("link", [link.name for link, _, _ in rows]),
            Column("like it", [link.like for link, _, _ in rows]),
            Column("GB a step", [round(v, 6) for v in carried], [f"{v:,.3g}" for v in carried]),
            column("used", [float(share.mean()) for _, _, share in rows]),
            column("at most", [float(share.max()) for _, _, share in rows]),
            column("busy", [float((share > _BUSY).mean()) for _, _, share in rows]),
        ],
        page_size=12,
    )
    return [Chart("Single links over the step", figures, _NOTE), table]
