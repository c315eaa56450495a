"""The page of a run on hosts that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.report.page import colours
from plancast.report.page.figures import Figure, stacked_bars
from plancast.report.page.frame import (
    Card,
    Chart,
    Page,
    Part,
    Section,
    Table,
    csv_text,
    script_json,
)
from plancast.report.spot import shares, sources, unpriced
from plancast.textual import count, counted, percent
from plancast.training.amounts import money, whole_run

if TYPE_CHECKING:
    from plancast.training.spot import SpotRun

_FILLS = ("#3b82c4", "#8ab6de", "#e07a5f", "#a07cc5", "#a9b1bd")


def spot_page(run: SpotRun, title: str, command: str = "") -> Page:
    """Whether the hosts are worth it, hosts over time, plans, and where the time goes."""
    outcome = run.outcome
    page = Page(
        title=title,
        subtitle=run.reference.strategy,
        facts=[
            f"up to {counted(run.trace.most, 'host')} of {run.machine.name}",
            f"{count(outcome.samples)} samples",
        ],
        cards=_cards(run),
        warnings=[f"no price: {text}" for text in unpriced(run)],
        notes=sources(run),
        command=command,
    )
    page.sections = [
        Section("Where the time goes", _time(run), "time"),
        Section("Hosts over time", [Chart.of("Hosts that are there", hosts_figure(run))], "hosts"),
        Section("Plans", [_plans(run)], "plans"),
    ]
    page.files = {
        "spot.json": script_json(run.to_dict()).replace("\\u003c", "<"),
        "hosts.csv": csv_text(["time_s", "hosts"], _course(run)),
    }
    return page


def _cards(run: SpotRun) -> list[Card]:
    outcome = run.outcome
    low, high = run.interval
    until = "the end of the trace" if high is None else whole_run(high)
    interval = f"90 % between {whole_run(low)} and {until}"
    found = [
        Card(
            "time",
            whole_run(outcome.wall_s),
            f"{interval}; {counted(outcome.restarts, 'restart')}",
        ),
        Card(
            "goodput",
            percent(run.goodput),
            f"work for a paid host-hour, of {counted(run.reference.hosts, 'host')} that never go",
        ),
    ]
    if run.usd is not None and run.usd_per_sample is not None:
        each = f"{money(1000 * run.usd_per_sample)} for 1,000 samples"
        found.append(Card("cost", money(run.usd), each))
    other = run.dedicated_usd_per_sample
    if other is not None:
        each = f"{money(1000 * other)} for 1,000 samples"
        found.append(Card("on hosts that never go", money(other * outcome.samples), each))
    worth = f"worth it below {percent(run.goodput)} of the dedicated price"
    if run.wins is None:
        return [*found, Card("verdict", "no price", worth)]
    word, tone = ("cheaper", "good") if run.wins else ("dearer", "bad")
    return [*found, Card("verdict", word, worth, tone)]


def _time(run: SpotRun) -> list[Part]:
    parts = shares(run)
    wall = run.outcome.wall_s
    figure = stacked_bars(
        ["run"],
        {name: [100 * seconds / wall] for name, seconds in parts},
        dict(zip((name for name, _ in parts), _FILLS, strict=False)),
        {},
        "% of the wall time",
        {name: [whole_run(seconds)] for name, seconds in parts},
    )
    rows = [[name, whole_run(seconds), percent(seconds / wall)] for name, seconds in parts]
    bars = [seconds / wall for _, seconds in parts]
    return [
        Chart.of("Shares of the wall time", figure),
        Table(["part", "time", "share"], rows, bars=bars),
    ]


def _course(run: SpotRun) -> list[tuple[float, int]]:
    """Times and hosts until the run is through."""
    wall = run.outcome.wall_s
    known = [
        (at, hosts)
        for at, hosts in zip(run.trace.times_s, run.trace.hosts, strict=True)
        if at <= wall
    ]
    return [*known, (wall, known[-1][1])]


def hosts_figure(run: SpotRun) -> Figure:
    """A step for every change, and how many hosts the best plan of that moment uses."""
    course = _course(run)
    length, unit = (86400, "days") if run.outcome.wall_s > 2 * 86400 else (3600, "hours")
    times = [float(f"{at / length:.6g}") for at, _ in course]
    gears = sorted(gear.hosts for gear in run.gears)
    used = [max((gear for gear in gears if gear <= hosts), default=0) for _, hosts in course]
    data = [
        {
            "type": "scatter", "mode": "lines", "name": name, "x": times, "y": hosts,
            "line": {"shape": "hv", "color": fill, "width": 1.5}, "fill": "tozeroy",
            "hovertemplate": "%{y} %{fullData.name}<extra></extra>",
        }
        for name, hosts, fill in (
            ("hosts there", [hosts for _, hosts in course], colours.PARTS["bubble"]),
            ("hosts that train", used, colours.PARTS["compute"]),
        )
    ]  # fmt: skip
    layout = {
        "height": 320,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": unit}, "automargin": True},
        "yaxis": {"title": {"text": "hosts"}, "automargin": True, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}


def _plans(run: SpotRun) -> Table:
    each = run.reference.rate / run.reference.hosts
    rows = [
        [
            gear.strategy,
            f"{gear.hosts:,}",
            whole_run(run.outcome.by_gear_s[gear.hosts]),
            f"{gear.rate:,.3g}",
            percent(gear.rate / gear.hosts / each),
        ]
        for gear in sorted(run.gears, key=lambda gear: -gear.hosts)
    ]
    return Table(["plan", "hosts", "time", "samples/s", "of linear"], rows)
