"""Alibaba's Lingjun data set of 2023: jobs, their workers and the hosts' switches.

Its network is said without rates: `Assumed` has what is taken instead. Its jobs are said without
what they compute and send, which is assumed as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from plancast import _core, csv_text, files
from plancast.arguments import listed
from plancast.checked import checked
from plancast.clusters.job import ClusterJob
from plancast.errors import InputError

_FILES = {"topo": "topo.csv", "job": "job.csv", "worker": "worker.csv"}
# The data set's README says what the columns hold, not what they are called.
_NAMES = {
    "job": ("job_id", "job", "id", "job_name", "name"),
    "start": ("start_time", "start", "gmt_start", "started"),
    "end": ("end_time", "end", "gmt_end", "ended"),
    "host": ("host_ip", "ip", "host", "node_ip"),
    "gpus": ("gpus", "gpu", "gpu_num", "num_gpus", "gpu_count"),
}
_TOPOLOGY = ("ip", "DSW", "PSW", "ASW")
_GPUS = re.compile(r"[0-9]{1,9}(\.0*)?")
_TIME_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S")


@checked
@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What the data set does not say.

    Args:
      gpus_per_host: GPUs of a host.
      nics_per_host: interfaces of a host.
      nic_gbit_per_s: one interface, one direction.
      asw_uplinks: uplinks of an ASW.
      psw_uplinks: uplinks of a PSW group.
      uplink_gbit_per_s: one of them, one direction.
      compute: of an iteration of every job, seconds.
      communicate: of an iteration, what it takes alone, seconds.
      overlap: the share of the computation beside which it communicates.
    """

    gpus_per_host: int = 8
    nics_per_host: int = 4
    nic_gbit_per_s: float = 200.0
    asw_uplinks: int = 8
    psw_uplinks: int = 32
    uplink_gbit_per_s: float = 400.0
    compute: float = 1.0
    communicate: float = 0.5
    overlap: float = 0.3


@dataclass(frozen=True)
class Topology:
    """Hosts by their switches; a leaf is the ASW of one PSW group."""

    hosts: tuple[str, ...]  # addresses
    leaf_of: tuple[int, ...]  # of each host
    pod_of: tuple[int, ...]  # of each leaf
    leaves: tuple[str, ...]
    pods: tuple[str, ...]

    def fabric(self, assumed: Assumed) -> _core.Fabric:
        """Its network, with rates that are assumed."""
        uplink = round(assumed.uplink_gbit_per_s * 1e9 / 8)
        return _core.Fabric(
            hosts=len(self.hosts),
            gpus_per_host=assumed.gpus_per_host,
            nics_per_host=assumed.nics_per_host,
            nic_bytes_per_s=round(assumed.nic_gbit_per_s * 1e9 / 8),
            inside_bytes_per_s=0,
            tiers=[
                ("ASW", list(self.leaf_of), assumed.asw_uplinks, uplink, False),
                ("PSW", list(self.pod_of), assumed.psw_uplinks, uplink, False),
            ],
        )


def read_topology(path: str | Path) -> Topology:
    """The hosts of `topo.csv`, sorted by switch so that neighbours have neighbouring numbers."""
    rows = _rows(path)
    if not rows or any(name not in rows[0][1] for name in _TOPOLOGY):
        raise InputError(f"{path}:1: the columns must be {listed(_TOPOLOGY)}.")
    seen: dict[str, int] = {}
    places = []
    for line, row in rows:
        if row["ip"] in seen:
            raise InputError(
                f"{path}:{line}: host `{row['ip'][:20]}` is there already, line {seen[row['ip']]}."
            )
        seen[row["ip"]] = line
        places.append((f"{row['DSW']}/{row['PSW']}", row["ASW"], row["ip"]))
    places.sort()
    pods = sorted({pod for pod, _, _ in places})
    leaves = sorted({(pod, leaf) for pod, leaf, _ in places})
    number = {leaf: index for index, leaf in enumerate(leaves)}
    return Topology(
        hosts=tuple(ip for _, _, ip in places),
        leaf_of=tuple(number[pod, leaf] for pod, leaf, _ in places),
        pod_of=tuple(pods.index(pod) for pod, _ in leaves),
        leaves=tuple(f"{pod}/{leaf}" for pod, leaf in leaves),
        pods=tuple(pods),
    )


@checked
def read_lingjun(
    folder: str | Path, assumed: Assumed | None = None
) -> tuple[list[ClusterJob], _core.Fabric]:
    """The jobs of the data set on its network.

    GPUs of a host are given out in the order of starts; a job takes as many iterations as its time
    in the data set holds.

    Raises:
      InputError: a file is missing, or says what cannot be; names the line.
    """
    paths = {what: Path(folder) / name for what, name in _FILES.items()}
    missing = [path.name for path in paths.values() if not files.is_file(path)]
    if missing:
        raise InputError(
            f"`{folder}` has no {listed(missing)}. The Lingjun data set is `topo.csv`, `job.csv` "
            "and `worker.csv`; put all three there."
        )
    told = assumed or Assumed()
    topology = read_topology(paths["topo"])
    jobs = _read_jobs(paths["job"])
    workers = _read_workers(paths["worker"], jobs, topology)
    return _placed(jobs, workers, topology, told), topology.fabric(told)


def wider(folder: str | Path, assumed: Assumed | None = None) -> dict[str, _core.Fabric]:
    """Networks of the data set's hosts with something more each."""
    told = assumed or Assumed()
    topology = read_topology(Path(folder) / _FILES["topo"])
    return {
        f"{what} more": topology.fabric(replace(told, **{name: getattr(told, name) + 1}))
        for what, name in (
            ("an uplink of every ASW", "asw_uplinks"),
            ("an uplink of every PSW group", "psw_uplinks"),
            ("a rail (an interface of every host)", "nics_per_host"),
        )
    }


@dataclass
class _Job:
    name: str
    line: int
    start: float
    end: float


def _read_jobs(path: Path) -> dict[str, _Job]:
    found: dict[str, _Job] = {}
    for line, row in _rows(path):
        name = row[_column("job", row, path)]
        start = _time(row[_column("start", row, path)], path, line)
        end = _time(row[_column("end", row, path)], path, line)
        if end <= start:
            raise InputError(f"{path}:{line}: job `{name}` ends before it starts.")
        if name in found:
            raise InputError(
                f"{path}:{line}: job `{name}` is there already, line {found[name].line}."
            )
        found[name] = _Job(name, line, start, end)
    if not found:
        raise InputError(f"`{path}` lists no jobs.")
    return found


def _read_workers(
    path: Path, jobs: dict[str, _Job], topology: Topology
) -> dict[str, list[tuple[int, int, int]]]:
    """Of every job: (host, GPUs, line)."""
    hosts = {ip: number for number, ip in enumerate(topology.hosts)}
    found: dict[str, list[tuple[int, int, int]]] = {}
    for line, row in _rows(path):
        name = row[_column("job", row, path)]
        ip = row[_column("host", row, path)]
        if name not in jobs:
            raise InputError(f"{path}:{line}: there is no job `{name}` in job.csv.")
        if ip not in hosts:
            raise InputError(f"{path}:{line}: there is no host `{ip[:20]}` in topo.csv.")
        text = row[_column("gpus", row, path)]
        if _GPUS.fullmatch(text) is None:
            raise InputError(f"{path}:{line}: `{text[:20]}` is no number of GPUs.")
        gpus = int(float(text))
        if gpus > 0:
            found.setdefault(name, []).append((hosts[ip], gpus, line))
    return found


def _placed(
    jobs: dict[str, _Job],
    workers: dict[str, list[tuple[int, int, int]]],
    topology: Topology,
    assumed: Assumed,
) -> list[ClusterJob]:
    begin = min(job.start for job in jobs.values())
    alone = (1 - assumed.overlap) * assumed.compute + max(
        assumed.overlap * assumed.compute, assumed.communicate
    )
    # Until when each GPU of a host is taken, and by whom.
    taken: list[list[tuple[float, str]]] = [
        [(begin, "")] * assumed.gpus_per_host for _ in topology.hosts
    ]
    found = []
    for job in sorted(jobs.values(), key=lambda job: (job.start, job.line)):
        devices = []
        for host, gpus, line in workers.get(job.name, ()):
            free = [
                gpu for gpu, (until, who) in enumerate(taken[host])
                if until <= job.start and who != job.name
            ]  # fmt: skip
            if len(free) < gpus:
                others = sorted({who for until, who in taken[host] if until > job.start})
                raise InputError(
                    f"worker.csv:{line}: job `{job.name}` takes {gpus} GPUs of a host where "
                    f"{len(free)} of {assumed.gpus_per_host} are free; the others are with "
                    f"{listed(others[:4])}. Say more `gpus_per_host`, or mend the times."
                )
            for gpu in free[:gpus]:
                taken[host][gpu] = (job.end, job.name)
                devices.append(host * assumed.gpus_per_host + gpu)
        if not devices:
            continue
        several = len({device // assumed.gpus_per_host for device in devices}) > 1
        found.append(
            ClusterJob(
                name=job.name,
                placement="devices " + ",".join(map(str, sorted(devices))),
                arrival=job.start - begin,
                iterations=max(1, int((job.end - job.start) / alone)),
                compute=assumed.compute,
                communicate=assumed.communicate if several else 0.0,
                overlap=assumed.overlap if several else 0.0,
                where=f"job.csv:{job.line}",
            )
        )
    if not found:
        raise InputError("no job of the data set has a worker with GPUs.")
    return found


def _rows(path: str | Path) -> list[tuple[int, dict[str, str]]]:
    lines = csv_text.rows(files.read_text(path, most=1 << 30), path)
    header = [name.strip() for name in next(lines, (0, []))[1]]
    rows = []
    for line, row in lines:
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(f"{path}:{line}: the row has not as many values as the header.")
        rows.append((line, dict(zip(header, (value.strip() for value in row), strict=True))))
    return rows


def _column(what: str, row: dict[str, str], path: Path) -> str:
    by_lower = {name.lower().replace(" ", "_"): name for name in row}
    for name in _NAMES[what]:
        if name in by_lower:
            return by_lower[name]
    raise InputError(
        f"{path}:1: none of the columns {listed(row)} says the {what}; one of "
        f"{listed(_NAMES[what])} does."
    )


def _time(text: str, path: Path, line: int) -> float:
    """Seconds since 1970 or since whatever the file counts from."""
    try:
        return float(text)
    except ValueError:
        pass
    for form in _TIME_FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise InputError(f"{path}:{line}: `{text[:30]}` is no time; write `2023-08-01 12:30:00`.")
