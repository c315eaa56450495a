"""CPU seconds of one ranking in one process, with a store, and over a local Ray cluster.

    PYTHONPATH=$PWD/python .venv/bin/python tools/measure/search_overhead.py [--space SPACE]
        [--workers N] [--only one ray]

The three run at the same time, so that what else the machine does slows all alike: CPU seconds grow
with the load, too. They are those of each process and of all that it started, read from /proc. Of
Ray, starting it (its daemons, and workers that have imported plancast) is counted apart.
"""

import argparse
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Parent, CPU seconds and command of every process."""
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


def seconds():
    """CPU seconds of this process, of Ray's workers below it, and of all else below it."""
    now = processes()
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, (parent, *_) in now.items() if parent in family}
        grown = not more <= family
        family |= more
    own = workers = rest = 0.0
    for pid in family & now.keys():
        _, spent, name = now[pid]
        if pid == os.getpid():
            own = spent
        elif name.startswith(("ray::IDLE", "ray::_answer", "ray::warm")):
            workers += spent
        else:
            rest += spent
    return own, workers, rest


def once(how, options, queue, barrier):
    import plancast as pc
    from plancast.search import pools

    def ranked(**extra):
        with tempfile.TemporaryDirectory() as folder:
            if how != "one":
                extra["store"] = f"{folder}/s.db"
            return pc.rank(
                pc.Model.open(options.model), pc.Machine.open(options.machine),
                batch=options.batch, space=options.space, top=10, progress=False,
                workers=options.workers if how == "ray" else 1, **extra,
            )  # fmt: skip

    if how == "ray":
        with pools._connected(pools.LOCAL, options.workers) as ray:

            def warm():
                import plancast

                time.sleep(0.5)  # so that every worker runs one
                return plancast.__name__

            task = ray.remote(num_cpus=1)(warm)
            ray.get([task.remote() for _ in range(options.workers)])
            barrier.wait()
            before, begin = seconds(), time.monotonic()
            ranking = ranked(ray="local")
            after, wall = seconds(), time.monotonic() - begin
    else:
        barrier.wait()
        before, begin = seconds(), time.monotonic()
        ranking = ranked()
        after, wall = seconds(), time.monotonic() - begin
    spent = [end - start for start, end in zip(before, after, strict=True)]
    queue.put((how, before, spent, wall, [plan.strategy for plan in ranking],
               ranking.evaluated, ranking.bounded + sum(ranking.excluded.values())))  # fmt: skip


def run(how, options, queue, barrier):
    try:
        once(how, options, queue, barrier)
    except BaseException:
        barrier.abort()  # the others do not wait for it
        raise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="llama3-8b")
    parser.add_argument("--machine", default="dgx-h100:4")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--space", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=["one", "store", "ray"])
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    queue, barrier = spawn.Queue(), spawn.Barrier(len(options.only))
    running = [
        spawn.Process(target=run, args=(how, options, queue, barrier)) for how in options.only
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if any(process.exitcode for process in running):
        sys.exit(1)
    answers = {how: rest for how, *rest in (queue.get() for _ in running)}
    best = next(iter(answers.values()))[3]
    for how in options.only:
        before, spent, wall, plans, evaluated, others = answers[how]
        print(
            f"{how:6} {sum(spent):7.1f} CPU s (driver {spent[0]:.1f}, workers {spent[1]:.1f}, "
            f"Ray's daemons {spent[2]:.1f}), wall {wall:.0f} s; before it {sum(before):.1f}; "
            f"{evaluated} simulated, {others} others, {'equal' if plans == best else 'DIFFERENT'}"
        )


if __name__ == "__main__":
    main()
