"""The machine as a picture: hosts, their GPUs by device class, and how full their links are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plancast.question import PlanQuestion
from plancast.report.page.frame import Chart, Part, Raw, Table
from plancast.report.page.links import link_figures
from plancast.report.page.single_links import classes_of, single_link_parts
from plancast.report.page.traffic import ClassTraffic, Rates, rates, traffic
from plancast.textual import html, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.report.page.slices import Lane

_MOST_HOSTS = 8
_MOST_GPUS = 16  # of a host that are drawn
_MOST_ROWS = 24
_MOST_CLASSES = 12
_OVER_TIME = (
    "When messages run is as simulated, with what they wait for and share; bytes are those of "
    "rings, as above. Above 100 %: the software sends less than a ring does."
)
_LEAST = 1e6  # bytes of a kind that a table has a row for
_WIDTH = 330
_STEPS = ("#6fb38a", "#c9c04f", "#f2a541", "#e07a5f", "#c75146")  # up to 20, 40, ... %
_CLASSES = ("#5aa9e6", "#f2c14e", "#7fb98f", "#d65f8f", "#a07cc5", "#57a5b5", "#e07a5f", "#9c8f7a")


def machine_parts(forecast: Forecast, lanes: Sequence[Lane] = ()) -> list[Part]:
    """The picture, links over time and the traffic by kind; nothing where it is not known."""
    question = forecast._question
    if not isinstance(question, PlanQuestion):
        return []
    found = traffic(forecast)
    if not found or not forecast.simulated_time:
        return []
    fields = question.machine.to_dict()
    speed = rates(fields)
    used = [_used(one, forecast.simulated_time, speed) for one in found]
    size = min(fields["gpus_per_host"], _MOST_GPUS)
    hosts = min(question.machine.hosts, _MOST_HOSTS)
    axes = _axes(forecast, found)
    drawn = classes_of(hosts * fields["gpus_per_host"], axes, found)
    pictures = [
        _host(
            host,
            drawn[host * fields["gpus_per_host"] :][:size].tolist(),
            used,
            fields,
        )
        for host in range(hosts)
    ]
    more = question.machine.hosts - hosts
    words = f"<p class='note'>and {more:,} more hosts, alike.</p>" if more else ""
    names = ", ".join(
        f'<span class="key" style="background:{_CLASSES[at % len(_CLASSES)]}"></span>'
        f"{html(one.device_class)}"
        for at, one in enumerate(found[:12])
    )
    note = (
        "<p class='note'>Links over the whole step: what rings send, of what the data sheet's "
        "rate could carry in that time, one direction. Trees and switches that reduce send less. "
        f"GPUs: {names}.</p>"
    )
    parts: list[Part] = [Raw(f'{note}<div class="hosts">{"".join(pictures)}</div>{words}')]
    figures = link_figures(lanes, found, speed, _MOST_CLASSES)
    if figures:
        parts.append(Chart("Links of a GPU over the step", figures, _OVER_TIME))
        pod = fields["hosts_per_pod"] * fields["gpus_per_host"]
        beyond = traffic(forecast, pod) if 0 < pod < forecast.devices else []
        classes = classes_of(forecast.devices, axes, found)
        parts += single_link_parts(fields, classes, lanes, found, beyond)
    return [*parts, _table(found)]


def _axes(forecast: Forecast, found: Sequence[ClassTraffic]) -> dict[str, int]:
    """Sizes of the mesh, the last innermost, as `chosen` says them."""
    chosen = forecast.chosen
    order = chosen.get("order", "tp-cp-ep-dp-pp").split("-")[::-1]
    sizes = {name: int(chosen.get(name, "1")) for name in order if name != "ep"}
    rest = forecast.devices
    for size in sizes.values():
        rest //= max(1, size)
    return sizes if rest == 1 else {"pp": len(found), "rest": forecast.devices // len(found)}


def _used(one: ClassTraffic, seconds: float, speed: Rates) -> tuple[float, float]:
    """Shares of what links could carry: inside a domain, and over the network."""
    inside = one.inside / seconds / speed.inside if speed.inside else 0.0
    return inside, one.network / seconds / speed.network if speed.network else 0.0


def _fill(share: float) -> str:
    return _STEPS[min(len(_STEPS) - 1, int(share * len(_STEPS)))]


def _host(
    host: int,
    classes: Sequence[int],
    used: Sequence[tuple[float, float]],
    fields: Mapping[str, Any],
) -> str:
    """A host: its GPUs in a row, the links that join them above, its network below."""
    inside = sum(used[at][0] for at in classes) / len(classes)
    network = sum(used[at][1] for at in classes) / len(classes)
    step = (_WIDTH - 20) / len(classes)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} 150" role="img" aria-label="host {host}">',
        f'<rect x="1" y="1" width="{_WIDTH - 2}" height="148" rx="8" class="box"/>',
        f'<text x="10" y="17" class="name">host {host}</text>',
        _bar(24, inside, f"{fields['intra_link'] or fields['topology']} {percent(inside)}"),
        _bar(112, network, f"{fields['fabric'] or 'network'} {percent(network)}"),
    ]
    for at, kind in enumerate(classes):
        x = 10 + step * at
        for y, share in ((46, used[kind][0]), (92, used[kind][1])):
            parts.append(
                f'<line x1="{x + step / 2:.1f}" x2="{x + step / 2:.1f}" y1="{y}" y2="{y + 20}" '
                f'stroke="{_fill(share)}" stroke-width="4"/>'
            )
        parts.append(
            f'<rect x="{x + 2:.1f}" y="62" width="{step - 4:.1f}" height="32" rx="3" '
            f'fill="{_CLASSES[kind % len(_CLASSES)]}"><title>GPU {at} of host {host}: links of the '
            f"host {percent(used[kind][0])}, network {percent(used[kind][1])}</title></rect>"
            f'<text x="{x + step / 2:.1f}" y="82" class="gpu">{at}</text>'
        )
    return "".join([*parts, "</svg>"])


def _bar(y: int, share: float, text: str) -> str:
    return (
        f'<rect x="10" y="{y}" width="{_WIDTH - 20}" height="24" rx="4" class="empty"/>'
        f'<rect x="10" y="{y}" width="{(_WIDTH - 20) * min(1.0, share):.1f}" height="24" rx="4" '
        f'fill="{_fill(share)}"/>'
        f'<text x="{_WIDTH / 2}" y="{y + 16}" class="said">{html(text)}</text>'
    )


def _table(found: Sequence[ClassTraffic]) -> Table:
    rows = [
        [
            one.device_class,
            f"{kind.collective} over {', '.join(kind.axes)}",
            f"{kind.count:,}",
            f"{kind.inside / 1e9:,.3g}" if kind.inside else "",
            f"{kind.network / 1e9:,.3g}" if kind.network else "",
        ]
        for one in found
        for kind in one.kinds
        if kind.inside + kind.network >= _LEAST
    ]
    columns = ["devices", "what", "times a step", "GB in the host", "GB over the network"]
    return Table(columns, rows[:_MOST_ROWS], (0, 1))
