"""A search for tests, in this process or in one that can be killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import plancast as pc

MODEL = {
    "name": "small", "layers": 8, "hidden": 1024, "heads": 16, "ffn": 4096, "vocab": 1000,
    "seq": 1024,
}  # fmt: skip
SPACE = "tp=1|2|4|8,pp=1|2|4,mb=1|2,recompute=none|full,zero=0|1"


def nouns():
    return pc.Model.from_config(**MODEL), pc.Machine.preset("dgx-a100-80g", hosts=1)


def search(**options):
    return pc.rank(*nouns(), batch=64, **{"space": SPACE, **options})


def said(ranking):
    """All that a ranking says but how long it took."""
    fields = ranking.to_dict()
    del fields["seconds"]
    for plan in fields["plans"]:
        plan.pop("simulate_s", None)
    return fields


def rows(path):
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return base.execute("SELECT * FROM plans ORDER BY plan").fetchall()
    except sqlite3.OperationalError:
        return []  # not yet there
    finally:
        base.close()


def driver(path, *options):
    """Starts a process that searches into a store."""
    return subprocess.Popen(
        [sys.executable, __file__, str(path), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
    )


def kill_after(process, path, count):
    """SIGKILL once the store has at least so many values, or the end, whatever is first."""
    while process.poll() is None:
        if Path(path).exists() and sum(r[3] is not None for r in rows(path)) >= count:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.002)
    process.wait()


if __name__ == "__main__":
    search(store=sys.argv[1], resume=True, exhaustive=True, top=5, workers=2,
           ray=sys.argv[2] if len(sys.argv) > 2 else None)  # fmt: skip
