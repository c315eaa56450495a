"""A simulation that is killed and goes on from its file, to the last digit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import plancast as pc
import pytest
from plancast.cli.main import main

MACHINE = "preset: dgx-a100-80g\nname: two pods\nhosts: 24\nhosts_per_pod: 6\noversubscription: 8\n"
OPTIONS = ("--sharing", "strict", "--paths", "intensity", "--uplinks", "4", "--json")
# Ends like a power cut when it has saved so often: not by the clock, so at any speed.
RUN = """
import os, signal, sys
from plancast.cli.main import main
from plancast.clusters.saved import Saved

left, save = int(os.environ["SAVES"]), Saved.save
def save_and_end(self, state):
    global left
    save(self, state)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Saved.save = save_and_end
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def files(tmp_path):
    """Jobs in a table, a machine, and the state's file."""
    draw = random.Random(5)
    rows, arrival = ["name,arrival,gpus,compute,communicate,iterations"], 0
    for number in range(120):
        arrival += draw.randrange(200)
        rows.append(
            f"j{number},{arrival},{draw.choice([8, 16, 32, 64])},{draw.uniform(0.2, 2):.4f},"
            f"{draw.uniform(0.1, 1):.4f} s,{draw.randrange(200, 4000)}"
        )
    jobs, machine = tmp_path / "jobs.csv", tmp_path / "machine.yaml"
    jobs.write_text("\n".join(rows) + "\n")
    machine.write_text(MACHINE)
    return str(jobs), str(machine), tmp_path / "state"


def ended(jobs, machine, state, out, saves=0):
    """The exit code of a run that is killed behind `saves` savings; 0: of none."""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "SAVES": str(saves)}
    line = [sys.executable, "-c", RUN, "cluster", jobs, "-c", machine, *OPTIONS]
    line += ["--checkpoint", str(state), "--checkpoint-every", "0"]
    with out.open("w") as stream:
        return subprocess.run(
            line, stdout=stream, env={**os.environ, **paths}, stderr=subprocess.DEVNULL
        ).returncode


def test_killed_again_and_again_it_gives_the_same_outcome(files, tmp_path, capsys):
    jobs, machine, state = files
    assert main(["cluster", jobs, "-c", machine, *OPTIONS]) == 0
    whole = json.loads(capsys.readouterr().out)
    out = tmp_path / "out.json"
    for saves in (1, 4, 2):
        assert ended(jobs, machine, state, out, saves) == -signal.SIGKILL
        assert state.exists()
    assert ended(jobs, machine, state, out) == 0
    assert json.loads(out.read_text()) == whole
    assert not state.exists()  # it is over


JOBS = [
    pc.ClusterJob(name=name, gpus=64, compute=1, communicate="1 s", iterations=5, arrival=arrival)
    for name, arrival in (("a", 0), ("b", 3), ("c", 4), ("d", 50))
]


def stopped(tmp_path, jobs, **options):
    """The state of a simulation that somebody stops at its first checkpoint."""
    from plancast.clusters import saved

    path = tmp_path / "kept"

    class StopError(Exception):
        pass

    def save(self, state):
        original(self, state)
        raise StopError

    original, saved.Saved.save = saved.Saved.save, save
    try:
        with pytest.raises(StopError):
            pc.cluster(jobs, pc.Machine.from_yaml(MACHINE), checkpoint=path, checkpoint_every=0,
                       **options)  # fmt: skip
    finally:
        saved.Saved.save = original
    return path


def test_a_state_goes_on_and_is_removed(tmp_path):
    machine = pc.Machine.from_yaml(MACHINE)
    path = stopped(tmp_path, JOBS)
    again = pc.cluster(JOBS, machine, checkpoint=path)
    assert again.to_dict() == pc.cluster(JOBS, machine).to_dict()
    assert again.stretches == pc.cluster(JOBS, machine).stretches
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"jobs": JOBS[:-1]}, "other jobs, options"),
        ({"sharing": "strict"}, "other jobs, options"),
        ({"seed": 2}, "other jobs, options"),
        ({"damage": lambda data: data[:-3] + b"xyz"}, "damaged"),
        ({"damage": lambda data: data[:70]}, "holds no state"),
        ({"damage": lambda data: b"name,gpus\n" + data}, "holds no state"),
    ],
)
def test_the_state_of_something_else_is_refused(tmp_path, change, words):
    path = stopped(tmp_path, JOBS)
    change = dict(change)
    damage = change.pop("damage", None)
    if damage is not None:
        path.write_bytes(damage(path.read_bytes()))
    jobs = change.pop("jobs", JOBS)
    before = path.read_bytes()
    with pytest.raises(pc.InputError, match=words):
        pc.cluster(jobs, pc.Machine.from_yaml(MACHINE), checkpoint=path, **change)
    assert path.read_bytes() == before


def test_many_changes_have_no_one_state(files, capsys):
    jobs, machine, state = files
    line = ["cluster", jobs, "-c", machine, "--checkpoint", str(state), "--what-if"]
    assert main(line) == 2
    assert "Leave one out" in capsys.readouterr().err
