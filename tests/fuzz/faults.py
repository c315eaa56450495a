"""Faults of the world: commands that write are killed, stopped, out of space, and run in pairs.

    python -m tests.fuzz.faults --count 200 [--command rank] [--fault kill]

Every case is a child that runs one command (tests.fuzz.fault_commands). Where it ends is a random
point of the CPU time that the whole command takes, so that points do not depend on who else
computes. Afterwards each file is as it was, or whole; a store goes on to what it would have been.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plancast import output
from plancast.cli.main import main as plancast

from tests.fuzz.fault_commands import COMMANDS, Command, contents, write_inputs

STOPS_WITHIN = 1.0  # seconds of CPU after SIGINT
_PROCESS_CPU = 2  # CLOCK_PROCESS_CPUTIME_ID
_OLD = b"what was there before\n"


class _Event(ctypes.Structure):
    """What a timer does (struct sigevent)."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


class _Times(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Times), ("value", _Times))


def signal_after(cpu_s: float, number: int) -> None:
    """Has this process sent a signal once it has computed for so long, from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    event = _Event(signo=number)
    whole = int(cpu_s)
    when = _Timer(value=_Times(whole, max(1, int((cpu_s - whole) * 1e9))))
    if libc.timer_create(_PROCESS_CPU, ctypes.byref(event), ctypes.byref(timer)) or (
        libc.timer_settime(timer, 0, ctypes.byref(when), None)
    ):
        raise OSError(ctypes.get_errno(), "no timer of CPU time")


@dataclass
class Ended:
    """How a child ended."""

    code: int  # negative: of a signal
    cpu_s: float
    said: str


def run(line: tuple[str, ...], folder: Path, before: Callable[[], object] = lambda: None) -> Ended:
    """Runs a command line in a child, in a folder."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(write, 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(folder)
            before()
            # New streams: those of before know of the files that they went to.
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            code = plancast(list(line))
        except KeyboardInterrupt:  # before the command, or behind it
            code = 130
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            output.clean()  # as the interpreter does where a process ends by itself (atexit)
            os._exit(code)
    os.close(write)
    with os.fdopen(read, errors="replace") as said:
        words = said.read()
    _, status, used = os.wait4(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, words)


class Place:
    """A folder with what a command reads, and what it writes when nothing goes wrong."""

    def __init__(self, name: str, base: Path) -> None:
        self.command: Command = COMMANDS[name]
        self.name = name
        self.clean = base / f"{name}-inputs"
        self.clean.mkdir()
        write_inputs(self.clean)
        self.folder = base / f"{name}-case"
        self.refresh()
        ended = run(self.command.line, self.folder)
        assert ended.code == 0, f"{name} ends with {ended.code}: {ended.said}"
        self.cpu_s = ended.cpu_s
        self.whole = contents(self.folder, self.command)
        assert self.whole, name

    def refresh(self) -> None:
        """The folder as it was."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.clean, self.folder)

    def put_old(self) -> dict[str, object]:
        """Files that are there before, where a command replaces them."""
        if self.command.store is None and self.name != "calibrate":
            for name in self.command.writes:
                (self.folder / name).write_bytes(_OLD)
        return contents(self.folder, self.command)

    def left(self) -> list[str]:
        """Names of what is under way or was when it ended."""
        return [path.name for path in self.folder.rglob(".*.plancast")]

    def wrong(self, old: dict[str, object]) -> str:
        """What is in the files that is neither old nor whole, or nothing."""
        now = contents(self.folder, self.command)
        if self.command.store is not None:
            return ""  # resumed instead
        if now in (old, self.whole):
            return ""
        first = next(iter(self.whole))
        if len(self.whole) > 1 and first not in now:
            return "" if len(old) > 1 or self.name == "calibrate" else "the first file is away"
        parts = {k: v for k, v in now.items() if v not in (old.get(k), self.whole.get(k))}
        return f"files are neither old nor whole: {sorted(parts or now)}"

    def recovers(self) -> str:
        """That the command, again, gives what it would have given."""
        again = run((*self.command.line, *self.command.resume), self.folder)
        if again.code:
            return f"again it ends with {again.code}: {again.said[-300:]}"
        now = contents(self.folder, self.command)
        if now != self.whole:
            others = sorted(name for name in now if now[name] != self.whole.get(name))
            return f"again it gives other files: {others}"
        return f"is left: {self.left()}" if self.left() else ""


def kill(place: Place, rng: random.Random) -> str:
    """SIGKILL at a random point; files are whole, and the command goes on or runs again."""
    old = place.put_old()
    when = rng.uniform(0.02, 1.05) * place.cpu_s
    ended = run(place.command.line, place.folder, lambda: signal_after(when, signal.SIGKILL))
    if ended.code not in (0, -signal.SIGKILL):
        return f"ends with {ended.code}: {ended.said}"
    return place.wrong(old) or place.recovers()


def kill_at_file(place: Place, rng: random.Random) -> str:
    """SIGKILL at a random one of the calls that open, rename or remove files."""
    old = place.put_old()
    left = rng.randrange(1, 40)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod") or (
            event == "open" and isinstance(arguments[1], str) and "w" in arguments[1]
        ):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    ended = run(place.command.line, place.folder, lambda: sys.addaudithook(hook))
    if ended.code not in (0, -signal.SIGKILL):
        return f"ends with {ended.code}: {ended.said}"
    return place.wrong(old) or place.recovers()


def stop(place: Place, rng: random.Random) -> str:
    """SIGINT at a random point: the documented exit code, soon, and nothing left."""
    old = place.put_old()
    when = rng.uniform(0.02, 1.05) * place.cpu_s
    ended = run(place.command.line, place.folder, lambda: signal_after(when, signal.SIGINT))
    # A ranking prints what it has found.
    if ended.code not in (0, 130):
        return f"ends with {ended.code}: {ended.said}"
    if ended.code == 130 and ended.cpu_s > when + STOPS_WITHIN:
        return f"ends {ended.cpu_s - when:.2f} s of CPU after SIGINT"
    if "Traceback" in ended.said or place.left():
        return f"leaves {place.left()}: {ended.said}"
    return place.wrong(old) or place.recovers()


@contextmanager
def _disk(place: Place, size: int) -> Iterator[None]:
    """The folder on a disk of that many bytes beyond its inputs."""
    inputs = sum(1 + (path.stat().st_size >> 12) for path in place.clean.rglob("*"))
    options = f"size={(inputs + 4 << 12) + size}"
    shutil.rmtree(place.folder)
    place.folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place.folder)]
    subprocess.run(command, check=True)
    try:
        shutil.copytree(place.clean, place.folder, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(place.folder)], check=True)


def full(place: Place, rng: random.Random) -> str:
    """A disk with less room than the files need: exit code 2 in words, files as they were."""
    with _disk(place, rng.choice((0, 4096, 16384, 65536, 300_000))):
        old = place.put_old()
        ended = run(place.command.line, place.folder)
        if ended.code not in (0, 2):
            return f"ends with {ended.code}: {ended.said}"
        if ended.code == 2 and "plancast: " not in ended.said:
            return f"is refused without words: {ended.said}"
        if ended.code == 2 and place.left():
            return f"leaves {place.left()}"
        return place.wrong(old)


def read_only(place: Place, rng: random.Random) -> str:
    """A folder that cannot be written."""
    with _disk(place, rng.choice((1 << 20, 8 << 20))):
        old = place.put_old()
        remount = ["mount", "-o", "remount,ro", str(place.folder)]
        subprocess.run(remount, check=True)
        ended = run(place.command.line, place.folder)
        if ended.code != 2 or "plancast: " not in ended.said:
            return f"ends with {ended.code}: {ended.said}"
        return place.wrong(old)


def pipe(place: Place, rng: random.Random) -> str:
    """A reader of standard output that goes away: the exit code stays, and files are whole."""

    def deaf() -> None:
        read, write = os.pipe()
        os.dup2(write, 1)
        os.close(read)

    ended = run(place.command.line, place.folder, deaf)
    if ended.code or "Traceback" in ended.said:
        return f"ends with {ended.code}: {ended.said}"
    return "" if contents(place.folder, place.command) == place.whole else "other files"


def pair(place: Place, rng: random.Random) -> str:
    """Two that write the same: one of both is whole at the end, nobody crashes."""
    line = (*place.command.line, *place.command.resume)
    other = os.fork()
    if other == 0:
        code = 70
        try:
            code = run(line, place.folder).code
        finally:
            os._exit(code & 0xFF)
    ended = run(line, place.folder)
    second = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
    if {ended.code, second} - {0, 2} or (ended.code and second):
        return f"end with {ended.code} and {second}: {ended.said}"
    now = contents(place.folder, place.command)
    return "" if now == place.whole and not place.left() else f"other files; left {place.left()}"


def damaged(place: Place, rng: random.Random) -> str:
    """A store of which bytes have changed: it is read, or refused in words."""
    if place.command.store is None:
        return ""
    run(place.command.line, place.folder)
    path = place.folder / place.command.writes[0]
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 50))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    path.write_bytes(bytes(data))
    ended = run((*place.command.line, *place.command.resume), place.folder)
    if ended.code not in (0, 2) or (ended.code == 2 and "plancast: " not in ended.said):
        return f"ends with {ended.code}: {ended.said}"
    return ""


FAULTS: dict[str, Callable[[Place, random.Random], str]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (kill, kill_at_file, stop, full, read_only, pipe, pair, damaged)
}


def can_mount() -> bool:
    """Whether small disks can be had here."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        if subprocess.run(command, capture_output=True).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def campaign(
    commands: list[str], faults: list[str], seeds: range, report: Callable[[str], None]
) -> Counter[str]:
    """Tries each fault on each command with each seed; counts cases, and those that are bad."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in commands:
            place = Place(name, Path(folder))
            for fault in faults:
                for seed in seeds:
                    place.refresh()
                    word = FAULTS[fault](place, random.Random(f"{name} {fault} {seed}"))
                    counts[fault] += 1
                    if word:
                        counts["bad"] += 1
                        report(f"{name}, {fault}, seed {seed}: {word}")
    return counts


def main() -> int:
    """Runs so many cases of each fault on each command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="cases of each")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--command", choices=COMMANDS, action="append")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    bad = 0
    for name in options.command or COMMANDS:
        counts = campaign(
            [name], options.fault or list(FAULTS), seeds, lambda word: print(word, flush=True)
        )
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{name}: {dict(counts)}; {used.ru_utime + used.ru_stime:.0f} s of CPU", flush=True)
        bad += counts["bad"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
