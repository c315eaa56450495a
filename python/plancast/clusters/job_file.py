"""Jobs of a cluster from files: YAML, or a table with a row per job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plancast import csv_text, documents, files
from plancast.arguments import listed, near
from plancast.clusters.job import ClusterJob, seconds
from plancast.errors import InputError
from plancast.model import Model

# What a file may say of the cluster: arguments of `cluster`.
SETTINGS = ("sharing", "order", "levels", "paths", "uplinks", "queue", "seed", "until", "detail")
_FIELDS = (
    "name", "gpus", "placement", "arrival", "iterations", "duration", "compute", "communicate",
    "overlap", "weight", "priority", "model", "seq", "strategy", "batch", "dtype", "profile",
    "copies",
)  # fmt: skip
_COLUMNS = tuple(name for name in _FIELDS if name not in ("model", "seq", "strategy", "copies"))
_WHOLE = ("gpus", "iterations", "weight", "priority", "batch", "seq", "copies")
_TIMES = ("arrival", "duration")
_MOST_COPIES = 100_000


@dataclass(frozen=True)
class JobFile:
    """Jobs, and what their file says of the cluster."""

    jobs: list[ClusterJob]
    settings: dict[str, Any] = field(default_factory=dict)


def read(path: str | Path) -> JobFile:
    """A `.yaml` or `.json` file with `jobs:`, or a `.csv` table of jobs.

    Raises:
      InputError: what a row or an entry says is wrong; names the line.
    """
    if str(path).endswith(".csv"):
        return JobFile(_from_table(files.read_text(path), path))
    return _from_document(path)


def _from_document(path: str | Path) -> JobFile:
    entries = files.read_mapping(path)
    jobs = entries.pop("jobs", None)
    for key in entries:
        if key not in SETTINGS:
            raise InputError(f"`{path}`: no setting `{key}`.{near(key, (*SETTINGS, 'jobs'))}")
    if not isinstance(jobs, list) or not jobs:
        raise InputError(f"`{path}` lists no jobs. Write `jobs:` and an entry for each.")
    settings = dict(entries)
    for name in ("until", "detail"):
        if name in settings:
            settings[name] = seconds(settings[name], name)
    lines = _lines_of_jobs(path)
    found: list[ClusterJob] = []
    for number, entry in enumerate(jobs):
        place = f"{path}:{lines[number]}" if number < len(lines) else f"{path}: job {number}"
        found += _jobs(documents.mapping(entry, place), place)
    return JobFile(found, settings)


def _lines_of_jobs(path: str | Path) -> list[int]:
    """The line of every entry of `jobs:`; none of JSON that is no YAML."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(files.read_text(path), Loader=loader)
    except yaml.YAMLError:
        return []
    for key, value in root.value if root is not None else ():
        if key.value == "jobs":
            return [item.start_mark.line + 1 for item in value.value]
    return []


def _from_table(text: str, path: str | Path) -> list[ClusterJob]:
    rows = csv_text.rows(text, path)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    for name in header:
        if name not in _COLUMNS:
            raise InputError(f"{path}:1: no column `{name}`.{near(name, _COLUMNS)}")
        if header.count(name) > 1:
            raise InputError(f"{path}:1: the column `{name}` is there twice.")
    if "name" not in header:
        raise InputError(f"{path}:1: there is no column `name`. Known are {listed(_COLUMNS)}.")
    jobs: list[ClusterJob] = []
    for line, row in rows:
        place = f"{path}:{line}"
        if not any(row):
            continue
        if len(row) != len(header):
            raise InputError(f"{place}: {len(row)} values; the header has {len(header)} columns.")
        entry: dict[str, Any] = {
            name: value.strip() for name, value in zip(header, row, strict=True) if value.strip()
        }
        found = _jobs(entry, place)
        if jobs and found[0].arrival < jobs[-1].arrival:
            raise InputError(
                f"{place}: job `{found[0].name}` arrives at {found[0].arrival:g} s, before the one "
                f"above it ({jobs[-1].arrival:g} s). Sort the rows by arrival."
            )
        jobs += found
    if not jobs:
        raise InputError(f"`{path}` lists no jobs. Write a row for each.")
    return jobs


def _jobs(entry: dict[str, Any], place: str) -> list[ClusterJob]:
    """The job of an entry, or its copies."""
    for key in entry:
        if key not in _FIELDS:
            raise InputError(f"{place}: no field `{key}` of a job.{near(key, _FIELDS)}")
    if not isinstance(entry.get("name"), str):
        raise InputError(f"{place}: a job has no name. Write `name: ...`.")
    values = dict(entry, where=place)
    for name in _WHOLE:
        if name in values:
            values[name] = _number(values[name], name, place, int)
    for name in _TIMES:
        if name in values:
            values[name] = _told(values[name], name, place)
    if "overlap" in values:
        values["overlap"] = _number(values["overlap"], "overlap", place, float)
    seq, copies = values.pop("seq", None), values.pop("copies", 1)
    if not 1 <= copies <= _MOST_COPIES:
        raise InputError(f"{place}: `copies` is {copies}; give 1 to {_MOST_COPIES:,}.")
    try:
        if "model" in values:
            values["model"] = Model.open(str(values["model"]), seq=seq)
        elif seq is not None:
            raise InputError("`seq` is of a model, and there is none.")
        if copies == 1:
            return [ClusterJob(**values)]
        name = values.pop("name")
        return [ClusterJob(name=f"{name}-{n}", **values) for n in range(copies)]
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(place) else f"{place}: {text}") from None


def _number(value: Any, name: str, place: str, kind: Any) -> Any:
    if isinstance(value, str):
        try:
            return kind(value)
        except ValueError:
            value = value[:40]
    elif kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    what = "a whole number" if kind is int else "a number"
    raise InputError(f"{place}: `{name}` is `{value}`; give {what}.")


def _told(value: Any, name: str, place: str) -> float:
    try:
        return seconds(value, name)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
