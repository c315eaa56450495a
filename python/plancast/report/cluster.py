"""Rich tables of jobs on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.textual import count, counted, duration, gpus, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plancast.clusters.changes import ClusterChange
    from plancast.clusters.outcome import ClusterOutcome, LinkOutcome

_MOST_JOBS, _MOST_LINKS, _MOST_WAITS = 24, 6, 10
_IMMENSE = 1e29
# Of the length of a period: what is nearer need not be said.
_EXACT = 5e-5


def cluster_tables(outcome: ClusterOutcome) -> RenderableType:
    """The cluster, its jobs, its links and who waits for whom."""
    when = "in the long run" if outcome.steady else f"over {duration(outcome.end)}"
    head = Text(f"{counted(len(outcome.jobs), 'job')} on {gpus(outcome.gpus)}", style="bold")
    head.append(
        f" {when}: GPUs compute {percent(outcome.busy_share)} of the time, "
        f"{percent(outcome.busy_share_of_jobs)} of that of jobs",
        style="",
    )
    parts: list[RenderableType] = [head, Text(_said(outcome), style="dim")]
    if outcome.mean_completion is not None:
        parts.append(Text(f"from arrival to end: {duration(outcome.mean_completion)} on average"))
    parts += ["", _jobs(outcome)]
    if outcome.links:
        parts += ["", _links(outcome)]
    if outcome.waits:
        parts += ["", _waits(outcome)]
    if outcome.off_by > _EXACT:
        parts.append(
            Text(
                "steady states of unlike jobs repeat only roughly: the ends of a period are "
                f"{percent(outcome.off_by, 2)} of it apart on average",
                style="dim",
            )
        )
    parts += [Text(f"note: {note}", style="dim") for note in outcome.notes]
    return Group(*parts)


def change_table(rows: Sequence[ClusterChange], tenant: str | None = None) -> RenderableType:
    """What would help, and by how much."""
    table = FittedTable()
    table.words("with one thing changed", least=24)
    if tenant is not None:
        table.numbers(f"{tenant} slowdown")
    table.numbers("GPUs compute")
    table.numbers("of jobs", leaves=2)
    table.numbers("worst slowdown")
    table.numbers("last end", leaves=1)
    for row in rows:
        if row.outcome is None:
            table.row(row.change, "no room")
            continue
        ran = [job for job in row.outcome.jobs if job.start is not None]
        own = [] if tenant is None else [f"{row.outcome.job(tenant).slowdown:.3f}"]
        table.row(
            row.change,
            *own,
            percent(row.outcome.busy_share),
            percent(row.outcome.busy_share_of_jobs),
            f"{max((job.slowdown for job in ran), default=1.0):.3f}",
            "" if row.outcome.steady else duration(row.outcome.end),
        )
    return table


_ORDERS = {
    "intensity": "by intensity",
    "given": "by given priority",
    "reverse": "the lowest intensity first",
}


def _said(outcome: ClusterOutcome) -> str:
    options = outcome.options
    words = [f"links: {options['sharing']}"]
    if options["sharing"] == "strict":
        words.append(_ORDERS[options["order"]])
        if options["levels"]:
            words.append(f"in {options['levels']} levels")
    words.append(f"paths by {options['paths']}")
    slowed = sum(job.slowdown > 1.001 for job in outcome.jobs)
    verb = "is" if slowed == 1 else "are"
    return f"{', '.join(words)}; {counted(slowed, 'job')} {verb} slowed down by others"


def _jobs(outcome: ClusterOutcome) -> FittedTable:
    """Those that lose most, in the order of the file where all are shown."""
    jobs = list(outcome.jobs)
    if len(jobs) > _MOST_JOBS:
        jobs = sorted(jobs, key=lambda job: -job.slowdown)[:_MOST_JOBS]
    table = FittedTable()
    table.words("job")
    table.numbers("GPUs")
    for name, leaves in (("waits", 3), ("alone", 5), ("iteration", None), ("slowdown", None)):
        table.numbers(name, leaves=leaves)
    table.numbers("intensity", leaves=1)
    table.numbers("level", leaves=2)
    table.numbers("ends", leaves=4)
    for job in jobs:
        ran = job.start is not None
        table.row(
            job.name,
            f"{job.gpus:,}",
            duration(job.waited) if job.waited is not None else "for ever",
            duration(job.alone) if ran else "",
            duration(job.iteration) if ran else "",
            f"{job.slowdown:.3f}" if ran else "",
            count(job.intensity) if ran and job.intensity < _IMMENSE else "",
            str(job.level) if ran else "",
            duration(job.end) if job.end is not None else "",
        )
    if len(outcome.jobs) > len(jobs):
        table.row(f"and {len(outcome.jobs) - len(jobs):,} more, slowed down less")
    return table


def links_alike(outcome: ClusterOutcome) -> list[tuple[str, float, int, int]]:
    """Names, use and jobs of links, those that are used alike once, and how many they are."""
    groups: dict[tuple[str, int], list[LinkOutcome]] = {}
    for link in outcome.links:
        groups.setdefault((percent(link.utilisation), link.jobs), []).append(link)
    found = []
    for (_, jobs), links in groups.items():
        others = f" and {len(links) - 1:,} like it" if len(links) > 1 else ""
        found.append((f"{links[0].name}{others}", links[0].utilisation, jobs, len(links)))
    return found


def _links(outcome: ClusterOutcome) -> FittedTable:
    groups = links_alike(outcome)
    table = FittedTable()
    table.words("fullest links", least=20)
    table.numbers("used")
    table.numbers("jobs", leaves=1)
    for name, used, jobs, _ in groups[:_MOST_LINKS]:
        table.row(name, percent(used), f"{jobs:,}")
    if len(groups) > _MOST_LINKS:
        table.row(f"and {sum(many for *_, many in groups[_MOST_LINKS:]):,} more")
    return table


def _waits(outcome: ClusterOutcome) -> FittedTable:
    table = FittedTable()
    table.words("who waits", "for whom")
    table.numbers("lost")
    table.words("mostly at", least=20, leaves=1)
    for wait in outcome.waits[:_MOST_WAITS]:
        table.row(wait.waiter, wait.other, duration(wait.seconds), wait.link)
    if len(outcome.waits) > _MOST_WAITS:
        table.row(f"and {len(outcome.waits) - _MOST_WAITS:,} more pairs")
    return table
