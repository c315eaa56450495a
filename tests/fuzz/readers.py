"""Readers of Python's that take text or a table: files of a few hundred bytes, many a second.

A case changes one seed and reads it, in at most a second and 256 MiB (tests/fuzz/bounds.py).
"""

from __future__ import annotations

import functools
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import plancast as pc
from plancast import documents, files, run_logs, schedule_file
from plancast.accuracy import calibrate_collectives, calibrate_kernels
from plancast.accuracy.validation import layers, rows
from plancast.clusters import job_file, lingjun
from plancast.learned import Learned, _checksum
from plancast.models.document_lengths import lengths
from plancast.profiling.replay import ReplayBackend
from plancast.records import Records, ingest
from plancast.search.store import _FORMAT, _SCHEMA, SearchStore
from plancast.training.availability import Availability

from tests.fuzz import learned_runs, mutate, seeds

SEEDS = Path(__file__).with_name("corpus") / "readers"


@dataclass(frozen=True)
class Reader:
    """Files by name, of which a case changes one, and what reads them."""

    files: dict[str, bytes]
    read: Callable[[Path], object]  # the first of them
    whole: bool = False  # reads the folder of them

    def write(self, rng: random.Random, folder: Path) -> Path:
        """Writes the files of a case."""
        changed = rng.choice(list(self.files))
        for name, data in self.files.items():
            path = folder / name
            if name == changed:
                data = _changed(rng, data, path.suffix)
            elif path.exists() and path.read_bytes() == data:
                continue
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return folder if self.whole else folder / next(iter(self.files))


def _changed(rng: random.Random, data: bytes, suffix: str) -> bytes:
    data = mutate.contents(rng, data, suffix)
    if rng.random() < 0.01 and data:  # much of one thing
        at = rng.randrange(len(data))
        part = data[at : at + rng.choice((1, 2, 8, 64))]
        data = data[:at] + part * min(200_000, (1 << 20) // len(part)) + data[at:]
    if suffix == ".learned" and rng.random() < 0.7:
        data = _summed(data)
    return data


def _summed(data: bytes) -> bytes:
    """With the checksum that its contents have, so that what lies behind is reached."""
    try:
        parsed = json.loads(data)
        body = {key: parsed[key] for key in ("format", "version", "evidence")}
        return json.dumps({**body, "checksum": _checksum(body)}).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return data


JOBS = """\
sharing: fair
jobs:
  - {name: A, gpus: 8, compute: 1, communicate: 0.5 s, iterations: 10}
  - {name: B, placement: hosts 0-1, arrival: 2min, duration: 1h, compute: 1, copies: 2}
"""
JOB_TABLE = """\
name,gpus,arrival,compute,communicate,iterations,overlap
A,8,0,1,0.5,10,0.5
B,16,2 min,1,0.5,3,
"""
TOPO = "ip,DSW,PSW,ASW\n10.0.0.1,d,p,a\n10.0.0.2,d,p,b\n"
JOB = """\
job_id,start_time,end_time
x,2023-01-01 00:00:00,2023-01-01 01:00:00
y,2023-01-01 00:30:00,2023-01-01 02:00:00
"""
WORKER = "job_id,host_ip,gpus\nx,10.0.0.1,4\nx,10.0.0.2,4\ny,10.0.0.1,2.0\n"
STEPS = """\
stage,position,phase,micro_batch,chunk
0,0,F,0,0
0,1,B,0,0
1,0,F,0,0
1,1,B,0,0
"""
ROWS = "v:\nF0.0 F1.0 B0.0 B1.0\nF0.0 B0.0 F1.0 B1.0\n"
LOG = "".join(
    f" iteration {i}/ 10 | elapsed time per iteration (ms): 18{i}30.4 | loss\n" for i in range(8)
) + "".join(f"\x1b[32mstep: {i}  loss:  7.1  \x1b[0m tps: 3,89{i}  tflops: 1\n" for i in range(8))
YAML = "a: &a {b: [1, 2.5, 0x10, 1:30, 2026-01-01], <<: {c: ~}}\nd: *a\n'e': |\n  text\n? f\n: g\n"
TOML = "a = 1\n[b.c]\nd = [1, 2.5, 'x']\ne = 2026-01-01\n[[f]]\ng = {h = true}\n"
LAYERS = (
    "row_id,source,model,hidden,heads,ffn_hidden,seq_len,machine,strategy,dtype,software,"
    "fwd_time_s,bwd_time_s,layer_time_s\na,mine,gpt,256,4,1000,32,dgx-h100:1,tp=2,bf16,x,1,2,3\n"
)
COLLECTIVES = seeds.MEASURED["kernels/collective.csv"]


def _schedule(path: Path) -> None:
    text = schedule_file.with_tables(f"pp=2,mb=1,schedule={path.name}", path.parent)
    pc.Strategy.parse(text)


def _records(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    list(ingest._measured(text, path, "2026-01-01", set(), ingest.Ingested()))


def _store(path: Path) -> None:
    store = Records(path, create=False)
    found = store.select()
    assert all(record.seconds > 0 for record in found)
    store.query(
        pc.Kernel.gemm(128, 4096, 4096), gpu="H100-SXM-80GB", library="torch", version="2.5"
    )


def _search(path: Path) -> None:
    store = SearchStore(path)
    try:
        store.search, store.records(), len(store)
    finally:
        store.close()


def _log(path: Path) -> None:
    found = run_logs.read_log(path)
    assert found.steps > 0 and found.iteration_s(4096, 8) > 0


def _learned(path: Path) -> None:
    found = Learned.read(path)
    found.summary()
    assert Learned.read(_again(found, path)).to_dict() == found.to_dict()


def _again(found: Learned, path: Path) -> Path:
    path = path.with_suffix(".again")
    path.write_text(json.dumps(found.to_dict()))
    return path


def _document(parse: Callable[[str, str], object]) -> Callable[[Path], object]:
    def read(path: Path) -> None:
        parse(files.read_text(path), "`it`")

    return read


def _database(make: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.db"
        make(path)
        return path.read_bytes()


def _of_records(path: Path) -> None:
    table = path.with_name("gemm.csv")
    table.write_text(seeds.GEMM)
    Records(path).ingest(table)


def _of_search(path: Path) -> None:
    base = sqlite3.connect(path)
    for statement in (
        *_SCHEMA,
        f"INSERT INTO search VALUES ('format', '{_FORMAT}'), ('model', 'gpt2')",
        "INSERT INTO plans VALUES (0, 'tp=1', 0.5, 0.7, ''), (1, 'tp=2', 0.4, NULL, 'x')",
    ):
        base.execute(statement)
    base.commit()
    base.close()


def _file(name: str, text: str, read: Callable[[Path], object]) -> Reader:
    return Reader({name: text.encode()}, read)


@functools.cache
def readers() -> dict[str, Reader]:
    """By name of target."""
    measured = {name: text.encode() for name, text in seeds.MEASURED.items()}
    return {
        "machine": _file("machine.yaml", seeds.MACHINE, lambda p: pc.Machine.open(str(p))),
        "machine_json": _file(
            "machine.json",
            json.dumps({"preset": "dgx-h100", "hosts": 2}),
            lambda p: pc.Machine.open(str(p)),
        ),
        "strategy": _file("tree.yaml", seeds.STRATEGY, lambda p: pc.Strategy.open(str(p))),
        "schedule_table": _file("steps.csv", STEPS, _schedule),
        "schedule_rows": _file("steps.txt", ROWS, _schedule),
        "lengths": _file("lengths.txt", "512 2K\n8192\n", lambda p: lengths(str(p))),
        "jobs": _file("jobs.yaml", JOBS, job_file.read),
        "jobs_json": _file(
            "jobs.json", json.dumps({"jobs": [{"name": "A", "gpus": 8, "compute": 1}]}),
            job_file.read,
        ),
        "jobs_table": _file("jobs.csv", JOB_TABLE, job_file.read),
        "lingjun": Reader(
            {"topo.csv": TOPO.encode(), "job.csv": JOB.encode(), "worker.csv": WORKER.encode()},
            lingjun.read_lingjun,
            whole=True,
        ),
        "availability": _file("hosts.csv", seeds.HOSTS, Availability.from_file),
        "run_log": _file("run.log", LOG, _log),
        "learned": _file("ours.learned", learned_runs.seed(), _learned),
        "validation": _file("truth.csv", seeds.TRUTH, lambda p: rows.read_rows([p])),
        "layer_times": _file("layers.csv", LAYERS, layers.read_layers),
        "records_gemm": _file("gemm.csv", seeds.GEMM, _records),
        "records_attention": _file("attention.csv", seeds.ATTENTION, _records),
        "records_store": Reader({"kernels.db": _database(_of_records)}, _store),
        "search_store": Reader({"search.db": _database(_of_search)}, _search),
        "recorded_run": _file("run.json", json.dumps(seeds.RUN), ReplayBackend),
        "calibration": Reader(
            measured, lambda p: calibrate_kernels.read_measured(p / "kernels"), whole=True
        ),
        "collectives": _file("collective.csv", COLLECTIVES, calibrate_collectives.read_nodes),
        "json": _file("it.json", json.dumps(seeds.RUN), _document(documents.parse_json)),
        "yaml_text": _file("it.yaml", YAML, _document(documents.parse_yaml)),
        "toml": _file("it.toml", TOML, _document(documents.parse_toml)),
    }  # fmt: skip


NAMES = tuple(f"reader: {name}" for name in readers())


def attempt(rng: random.Random, name: str, folder: Path) -> bool:
    """Writes a case and reads it; whether it was not refused. Raises what the reader raises."""
    reader = readers()[name.partition(": ")[2]]
    path = reader.write(rng, folder)
    try:
        reader.read(path)
    except pc.InputError as error:
        message = str(error)
        assert message.strip(), "a refusal without words"
        assert len(message) < 5000, f"a refusal of {len(message)} characters"
        return False
    return True
