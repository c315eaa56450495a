"""CPU seconds of one ranking in one process, with a store, and over a local Ray cluster.

    .venv/bin/python tools/measure/search_overhead.py [--space SPACE] [--workers N]

CPU time is that of this process and of all that it started, Ray's own included, read from /proc.
"""

import argparse
import multiprocessing
import os
import pathlib
import tempfile
import threading

TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Parent and CPU seconds by process."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text().rpartition(")")[2].split()
                name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:40]
            except OSError:
                continue
            found[int(folder.name)] = (int(text[1]), (int(text[11]) + int(text[12])) / TICKS, name)
    return found


class Watch:
    """Of this process and those below it, the last CPU time that was seen of each."""

    def __init__(self):
        self.seconds, self.names, self.over = {}, {}, threading.Event()
        self.family = {os.getpid()}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def look(self):
        now = processes()
        grown = True
        while grown:
            more = {pid for pid, (parent, *_) in now.items() if parent in self.family}
            grown = not more <= self.family
            self.family |= more
        for pid in self.family & now.keys():
            self.seconds[pid] = now[pid][1]
            self.names[pid] = now[pid][2] or self.names.get(pid, "")  # of a zombie there is none

    def run(self):
        while not self.over.wait(2):
            self.look()


def once(how, options, queue):
    import plancast as pc

    watch = Watch()
    watch.look()
    with tempfile.TemporaryDirectory() as folder:
        extra = {"one": {}, "store": {"store": f"{folder}/s.db"}}.get(
            how, {"store": f"{folder}/s.db", "ray": "local"}
        )

        def progress(done, total):
            # The last call comes before the cluster ends.
            if done == total:
                watch.look()

        workers = options.workers if how == "ray" else 1
        ranking = pc.rank(
            pc.Model.open(options.model), pc.Machine.open(options.machine), batch=options.batch,
            space=options.space, top=10, workers=workers, progress=progress, **extra,
        )  # fmt: skip
    watch.over.set()
    now = processes()[os.getpid()][1]
    watch.seconds[os.getpid()] = now
    work = sum(s for p, s in watch.seconds.items() if "ray::" in watch.names[p])
    total = sum(watch.seconds.values())
    queue.put((total, work, now, ranking.seconds, [plan.strategy for plan in ranking],
               ranking.evaluated, ranking.bounded + sum(ranking.excluded.values())))  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="llama3-8b")
    parser.add_argument("--machine", default="dgx-h100:4")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--space", default="")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    best = None
    for how in ("one", "store", "ray"):
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.Queue()
        process = spawn.Process(target=once, args=(how, options, queue))
        process.start()
        total, work, driver, wall, plans, evaluated, others = queue.get()
        process.join()
        best = best or plans
        print(
            f"{how:6} {total:7.1f} CPU s (workers {work:.1f}, driver {driver:.1f}), wall "
            f"{wall:.0f} s, {evaluated} simulated, {others} others, "
            f"{'equal' if plans == best else 'DIFFERENT'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
