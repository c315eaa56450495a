"""Commands that write: what each is asked, which files it makes, and what of them counts."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import seeds

JOBS = """\
jobs:
  - {name: P, placement: hosts 0-0 gpus 0-3, compute: 0.2, communicate: 0.2 s}
  - {name: Q, placement: hosts 0-1 gpus 4-5, compute: 0.1, communicate: 0.3 s}
"""
_PLAN = ["-m", "small.yaml", "-c", "machine.yaml", "-s", "mb=1", "--batch", "16"]
_SPACE = ["--space", "tp=1|2,pp=1|2,vpp=1,mb=1|2,recompute=none|full,zero=0,sp=0,ep=1,cp=1"]
# What says how long the answer took.
_TOOK = re.compile(rb'\\?"(simulate_s|seconds)\\?": ?[0-9.e+-]+|\b[0-9.]+ (s|ms|us) (to|for)\b')


@dataclass(frozen=True)
class Command:
    """A command line, the files that it writes, and the one that goes on where it was killed."""

    line: tuple[str, ...]
    writes: tuple[str, ...]  # the first first: without it the others are no set
    resume: tuple[str, ...] = ()  # where it is another
    store: Callable[[Path], object] | None = None  # what is in a file that grows


def rows(path: Path) -> object:
    """All rows of all tables of a database."""
    base = sqlite3.connect(path)
    try:
        names = [
            name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {name: sorted(map(repr, base.execute(f'SELECT * FROM "{name}"'))) for name in names}
    finally:
        base.close()


COMMANDS = {
    "ingest": Command(
        ("records", "ingest", "gemm.csv", "many.csv", "-o", "new.db", "--date", "2026-01-01"),
        ("new.db",), store=rows,
    ),
    "rank": Command(
        ("rank", *_PLAN[:4], "--batch", "16", *_SPACE, "--workers", "1", "--store", "search.db",
         "--all"),
        ("search.db",),
        resume=("--resume",), store=rows,
    ),
    "learn": Command(("learn", "measured-runs.csv", "-o", "new.learned"), ("new.learned",)),
    "calibrate": Command(
        ("calibrate", "--kernels", "measured/kernels", "-o", "out", "--date", "2026-01-01",
         "--workers", "1"),
        ("out",),
    ),
    "cluster": Command(
        ("cluster", "jobs.yaml", "-c", "dgx-h100:2", "--until", "20", "--trace", "jobs.json"),
        ("jobs.json",),
    ),
    "report": Command(("predict", *_PLAN, "--report", "page.html"), ("page.html",)),
    "trace": Command(("predict", *_PLAN, "--trace", "trace.json.gz"), ("trace.json.gz",)),
    "export": Command(
        ("export", "chakra", "-o", "et", *_PLAN), tuple(f"et.{rank}.et" for rank in range(4))
    ),
    "table": Command(
        ("rank", *_PLAN[:4], "--batch", "16", *_SPACE, "--workers", "2", "--out", "table.csv"),
        ("table.csv",),
    ),
    "plan": Command(
        ("plan", *_PLAN[:4], "--batch", "16", "--method", "grid", "--space", "tp=1|2,pp=1|2,mb=1",
         "--out", "found.yaml"),
        ("found.yaml",),
    ),
    "compare": Command(
        ("compare", *_PLAN, "-s", "mb=1,recompute=full", "--report", "page.html"), ("page.html",)
    ),
    "train": Command(
        ("train", *_PLAN, "--tokens", "1B", "--failures", "none", "--report", "page.html"),
        ("page.html",),
    ),
    "validate": Command(
        ("validate", "truth.csv", "--report", "page.html", "--workers", "1", "--date",
         "2026-01-01"),
        ("page.html",),
    ),
    "launch": Command(("export", "launch", "megatron-core", *_PLAN, "-o", "run.sh"), ("run.sh",)),
    "flows": Command(
        ("export", "flows", "--op", "all_reduce", "--gpus", "8", "--bytes", "4M", "-o", "f.csv"),
        ("f.csv",),
    ),
    "algorithm": Command(
        ("export", "msccl", "--op", "all_reduce", "--algo", "ring", "--gpus", "8", "-o", "r.xml"),
        ("r.xml",),
    ),
    "topology": Command(("import", "nccl", "topo.xml", "--export", "all.xml"), ("all.xml",)),
    "picture": Command(("predict", *_PLAN, "--memory-svg", "memory.svg"), ("memory.svg",)),
}  # fmt: skip
# What writes a page as `report` does, in half a second.
PAGES = ("compare", "train", "validate")


def write_inputs(folder: Path) -> None:
    """What the commands read."""
    seeds.write(folder)
    (folder / "jobs.yaml").write_text(JOBS)
    head, *rest = seeds.GEMM.splitlines()
    more = [rest[0].replace(",128,", f",{128 + 8 * n},", 1) for n in range(400)]
    (folder / "many.csv").write_text("\n".join([head, *more]) + "\n")
    (folder / "measured-runs.csv").write_text(seeds.TRUTH)


def contents(folder: Path, command: Command) -> dict[str, object]:
    """By name what each file has that is there, but for how long it took."""
    found: dict[str, object] = {}
    for name in command.writes:
        path = folder / name
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and ".plancast/" not in str(inner):
                    found[str(inner.relative_to(folder))] = inner.read_bytes()
        elif os.path.lexists(path):
            store = command.store
            found[name] = store(path) if store is not None else _TOOK.sub(b"", path.read_bytes())
    return found
