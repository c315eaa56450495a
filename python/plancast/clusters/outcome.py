"""What becomes of jobs on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import files
from plancast.clusters import timeline
from plancast.shown import Shown, Tabular

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class JobOutcome:
    """One job. Times are seconds; `start` and `end` are None where it never came to that.

    `alone` is its iteration with its links to itself, `iteration` beside others: on average until
    it ended, and of a job without an end as things stand at last. `intensity` is what its GPUs
    compute in an iteration (GPU-seconds) over what it communicates alone (seconds), and `level`
    its last class of priority, 0 first.
    """

    name: str
    gpus: int
    arrival: float
    start: float | None
    end: float | None
    iterations: int
    alone: float
    iteration: float
    compute: float
    intensity: float
    correction: float
    level: int
    devices: tuple[int, ...]

    @property
    def slowdown(self) -> float:
        """How many times as long as alone an iteration takes."""
        return self.iteration / self.alone if self.alone > 0 else 1.0

    @property
    def waited(self) -> float | None:
        """For GPUs, seconds."""
        return None if self.start is None else self.start - self.arrival

    @property
    def completion(self) -> float | None:
        """From arrival to end, seconds."""
        return None if self.end is None else self.end - self.arrival

    def to_dict(self) -> dict[str, Any]:
        """Its fields with their units."""
        return {
            "name": self.name,
            "gpus": self.gpus,
            "arrival_s": self.arrival,
            "start_s": self.start,
            "end_s": self.end,
            "iterations": self.iterations,
            "alone_s": self.alone,
            "iteration_s": self.iteration,
            "slowdown": self.slowdown,
            "waited_s": self.waited,
            "completion_s": self.completion,
            "intensity": self.intensity if self.intensity < 1e29 else None,
            "correction": self.correction,
            "level": self.level,
        }


@dataclass(frozen=True)
class LinkOutcome:
    """One direction of a link that a job crossed; `utilisation` is a share of its capacity."""

    name: str
    utilisation: float
    jobs: int


@dataclass(frozen=True)
class Wait:
    """Seconds that one job's communication lost to another's, and the link where most of it was."""

    waiter: str
    other: str
    seconds: float
    link: str


@dataclass(frozen=True)
class Stretch:
    """A job while the same others were about: from, to and its mean iteration, seconds."""

    job: int
    start: float
    end: float
    iteration: float


@dataclass(frozen=True)
class Phase:
    """A stretch of computation or communication as it ran, seconds."""

    job: int
    transfer: bool
    iteration: int
    start: float
    end: float


@dataclass(frozen=True, repr=False)
class ClusterOutcome(Shown, Tabular):
    """The jobs of a cluster, its links and the whole.

    `gpus` are those of the cluster. `end` is when the last thing changed. Where jobs without an
    end remain, `steady` is True and shares are those of the state at last, else of the whole time.
    """

    jobs: tuple[JobOutcome, ...]
    links: tuple[LinkOutcome, ...]
    waits: tuple[Wait, ...]
    stretches: tuple[Stretch, ...]
    phases: tuple[Phase, ...]
    gpus: int
    end: float
    steady: bool
    options: dict[str, Any]
    steady_runs: int
    off_by: float
    notes: tuple[str, ...] = ()

    @property
    def busy_share(self) -> float:
        """The share of all GPU time in which GPUs compute."""
        return self._busy(of_all=True)

    @property
    def busy_share_of_jobs(self) -> float:
        """The same of the GPU time that jobs have."""
        return self._busy(of_all=False)

    def _busy(self, *, of_all: bool) -> float:
        busy = held = 0.0
        for job in self.jobs:
            if job.start is None:
                continue
            if self.steady:
                if job.end is None and job.iteration > 0:
                    busy += job.gpus * job.compute / job.iteration
                    held += job.gpus
                continue
            until = self.end if job.end is None else job.end
            busy += job.gpus * job.compute * job.iterations
            held += job.gpus * (until - job.start)
        whole = self.gpus * (1.0 if self.steady else self.end)
        below = whole if of_all else held
        return busy / below if below > 0 else 0.0

    @property
    def contended_share(self) -> float:
        """The share of jobs that others slowed down by more than a thousandth."""
        ran = [job for job in self.jobs if job.start is not None]
        return sum(job.slowdown > 1.001 for job in ran) / len(ran) if ran else 0.0

    @property
    def mean_completion(self) -> float | None:
        """From arrival to end, on average over jobs that ended, seconds."""
        times = [job.completion for job in self.jobs if job.completion is not None]
        return sum(times) / len(times) if times else None

    def job(self, name: str) -> JobOutcome:
        """The first job of a name."""
        return next(job for job in self.jobs if job.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast cluster --json`."""
        return {
            "gpus": self.gpus,
            "end_s": self.end,
            "steady": self.steady,
            "busy_share": self.busy_share,
            "busy_share_of_jobs": self.busy_share_of_jobs,
            "contended_share": self.contended_share,
            "mean_completion_s": self.mean_completion,
            "options": dict(self.options),
            "jobs": self.records(),
            "links": [vars(link) for link in self.links],
            "waits": [vars(wait) for wait in self.waits],
            "steady_runs": self.steady_runs,
            "off_by": self.off_by,
            "notes": list(self.notes),
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each job."""
        return [job.to_dict() for job in self.jobs]

    def __repr__(self) -> str:
        return (
            f"<ClusterOutcome of {len(self.jobs):,} jobs on {self.gpus:,} GPUs: "
            f"{100 * self.busy_share:.1f} % busy>"
        )

    def write_trace(self, path: str | Path) -> None:
        """Writes when which job ran how fast, for Perfetto."""
        timeline.write(self, path)

    def to_svg(self, path: str | Path, title: str = "Jobs on a cluster") -> None:
        """Writes a picture of the jobs over time, coloured by what others cost them."""
        from plancast.report.cluster_svg import cluster_svg

        files.write_text(path, cluster_svg(self, title))

    def plot_links(self) -> Any:
        """How full the fullest links are, as a plotly figure."""
        from plancast.charts.figure import drawn
        from plancast.report.page.cluster import links_figure

        return drawn(links_figure(self), "The fullest links")

    def __rich__(self) -> RenderableType:
        from plancast.report.cluster import cluster_tables

        return cluster_tables(self)
