"""The page of jobs that share a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.report.cluster import links_alike
from plancast.report.page.colours import plain
from plancast.report.page.figures import Figure, seconds_scale
from plancast.report.page.frame import Card, Chart, Page, Section, Words, csv_text, script_json
from plancast.report.page.grid import SCRIPTS, Column, Grid
from plancast.textual import counted, duration, gpus, percent

if TYPE_CHECKING:
    from plancast.clusters.changes import ClusterChange
    from plancast.clusters.outcome import ClusterOutcome, JobOutcome

_MOST_BARS = 30
_MOST_LINES = 400
_JOBS = ("job", "gpus", "arrival_s", "start_s", "end_s", "alone_s", "iteration_s", "slowdown")


def cluster_page(
    outcome: ClusterOutcome, title: str, command: str = "", changes: Sequence[ClusterChange] = ()
) -> Page:
    """The cluster, its jobs over time, its links, who waits for whom, and what would help."""
    ran = [job for job in outcome.jobs if job.start is not None]
    options = outcome.options
    page = Page(
        title=title,
        subtitle=f"{counted(len(outcome.jobs), 'job')} on {gpus(outcome.gpus)}",
        facts=[f"{name} {value}" for name, value in options.items() if value not in (None, "")],
        cards=_cards(outcome, ran),
        notes=outcome.notes,
        command=command,
        scripts=SCRIPTS,
    )
    page.sections = [Section("Jobs", [_jobs(outcome)], "jobs")]
    if ran and not outcome.steady:
        page.sections.append(
            Section(
                "Jobs over time",
                [Chart.of("From start to end", _course(ran, outcome.end))],
                "course",
            )
        )
    if outcome.links:
        names = [link.name for link in outcome.links]
        grid = Grid(
            [
                Column("link", names),
                Column(
                    "used",
                    [link.utilisation for link in outcome.links],
                    [percent(link.utilisation) for link in outcome.links],
                ),
                Column("jobs", [link.jobs for link in outcome.links]),
            ],
            10,
        )
        chart = Chart.of("The fullest links", links_figure(outcome))
        page.sections.append(Section("Links", [chart, grid], "links"))
    if outcome.waits:
        page.sections.append(Section("Who waits for whom", [_waits(outcome)], "waits"))
    if changes:
        page.sections.append(Section("With one thing changed", [_changes(changes)], "changes"))
    if not outcome.jobs:
        page.sections = [Section("Jobs", [Words("There are none.")])]
    page.files = {
        "cluster.json": script_json(outcome.to_dict()).replace("\\u003c", "<"),
        "jobs.csv": csv_text(
            _JOBS,
            [
                [j.name, j.gpus, j.arrival, j.start, j.end, j.alone, j.iteration, j.slowdown]
                if j.start is not None
                else [j.name, j.gpus, j.arrival, None, None, None, None, None]
                for j in outcome.jobs
            ],
        ),
    }
    return page


def _cards(outcome: ClusterOutcome, ran: Sequence[JobOutcome]) -> list[Card]:
    worst = max((job.slowdown for job in ran), default=1.0)
    slowed = sum(job.slowdown > 1.001 for job in ran)
    cards = [
        Card("GPUs compute", percent(outcome.busy_share), "of the time"),
        Card("GPUs of jobs compute", percent(outcome.busy_share_of_jobs), "of the jobs' time"),
        Card("slowed by others", f"{slowed:,}", f"of {len(outcome.jobs):,} jobs"),
        Card("worst slowdown", f"{worst:.3f}"),
    ]
    if outcome.mean_completion is not None:
        cards.append(Card("arrival to end", duration(outcome.mean_completion), "on average"))
    if not outcome.steady:
        end, _, days = duration(outcome.end).partition(" (")
        cards.append(Card("last end", end, days.rstrip(")")))
    return cards


def _jobs(outcome: ClusterOutcome) -> Grid:
    jobs = outcome.jobs

    def times(label: str, values: Sequence[float | None]) -> Column:
        return Column(label, values, ["" if v is None else duration(v) for v in values])

    ran = [job.start is not None for job in jobs]
    slow = [job.slowdown if on else None for job, on in zip(jobs, ran, strict=True)]
    return Grid(
        [
            Column("job", [job.name for job in jobs]),
            Column("GPUs", [job.gpus for job in jobs]),
            times("waits", [job.waited for job in jobs]),
            times("alone", [j.alone if on else None for j, on in zip(jobs, ran, strict=True)]),
            times(
                "iteration", [j.iteration if on else None for j, on in zip(jobs, ran, strict=True)]
            ),
            Column("slowdown", slow, ["" if v is None else f"{v:.3f}" for v in slow]),
            times("ends", [job.end for job in jobs]),
        ]
    )


def _course(ran: Sequence[JobOutcome], last: float) -> Figure:
    """A line a job, from start to end or `last`; as long as it waited in grey before."""
    shown = sorted(ran, key=lambda job: (job.start or 0.0, job.name))[:_MOST_LINES]
    scale, unit = seconds_scale(last)
    data: list[dict[str, Any]] = []
    begun = [job.start or 0.0 for job in shown]
    ended = [last if job.end is None else job.end for job in shown]
    for name, fill, begins, ends in (
        ("waits", "#a9b1bd", [job.arrival for job in shown], begun),
        ("runs", "#3b82c4", begun, ended),
    ):
        x: list[float | None] = []
        y: list[int | None] = []
        for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            x += [begin * scale, end * scale, None]
            y += [row, row, None]
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": name, "x": x, "y": y,
                "line": {"color": fill, "width": max(2, min(12, 600 // len(shown)))},
                "hoverinfo": "skip",
            }
        )  # fmt: skip
    few = len(shown) <= 60
    layout = {
        "height": max(240, min(900, 110 + 18 * len(shown))),
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": f"time, {unit}"}, "automargin": True},
        "yaxis": {
            "autorange": "reversed", "automargin": True, "showgrid": False, "zeroline": False,
            "showticklabels": few, "tickmode": "array", "tickvals": list(range(len(shown))),
            "ticktext": [plain(job.name[:24]) for job in shown],
        },
    }  # fmt: skip
    return {"data": data, "layout": layout}


def links_figure(outcome: ClusterOutcome) -> Figure:
    """How full the fullest links are; those that are used alike are one bar."""
    shown = sorted(links_alike(outcome), key=lambda link: -link[1])[:_MOST_BARS][::-1]
    trace = {
        "type": "bar", "orientation": "h", "y": [plain(name) for name, *_ in shown],
        "x": [float(f"{100 * used:.4g}") for _, used, *_ in shown],
        "marker": {"color": "#f2a541"},
        "hovertemplate": "%{y}: %{x} % used<extra></extra>",
    }  # fmt: skip
    layout = {
        "height": 90 + 26 * max(1, len(shown)),
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "showlegend": False,
        "xaxis": {"title": {"text": "% used"}, "range": [0, 100], "automargin": True},
        "yaxis": {"automargin": True, "type": "category"},
    }
    return {"data": [trace], "layout": layout}


def _waits(outcome: ClusterOutcome) -> Grid:
    waits = outcome.waits
    return Grid(
        [
            Column("who waits", [wait.waiter for wait in waits]),
            Column("for whom", [wait.other for wait in waits]),
            Column("lost", [w.seconds for w in waits], [duration(w.seconds) for w in waits]),
            Column("mostly at", [wait.link for wait in waits]),
        ],
        10,
    )


def _changes(changes: Sequence[ClusterChange]) -> Grid:
    busy = [None if c.outcome is None else c.outcome.busy_share for c in changes]
    jobs = [None if c.outcome is None else c.outcome.busy_share_of_jobs for c in changes]
    return Grid(
        [
            Column("change", [change.change for change in changes]),
            Column("GPUs compute", busy, ["no room" if v is None else percent(v) for v in busy]),
            Column("of that of jobs", jobs, ["" if v is None else percent(v) for v in jobs]),
        ],
        20,
    )
