"""What is too much to read or to do is refused before it is begun, and the bound is said."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import plancast as pc
import pytest


@pytest.mark.parametrize("levels", [15, 25, 32, 49, 60, 70, 5000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}")])
def test_machines_nested_deep(tmp_path, levels, opening, closing):
    path = tmp_path / "m.yaml"
    path.write_text(f"gpu: A30\nhosts: {opening * levels}1{closing * levels}\n")
    with pytest.raises(pc.InputError) as error:
        pc.Machine.from_file(path)
    assert f"`{path}`" in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gpus", "1024", "--channels", "64"), "more than 4000000 steps"),
        (("--gpus", "1024"), "2095104 messages; at most 1000000 are listed"),
        (
            ("--gpus", "99999999999"),
            "`gpus` is `99999999999`; give a whole number from 1 to 65,536",
        ),
        (("--gpus", "8", "--channels", "99999"), "`channels` is `99999`"),
        (("--gpus", "8", "--root", "-1"), "`root` is `-1`"),
        (("--gpus", "8", "--bytes", "99999999999999G"), "`bytes` is `107"),
    ],
)
def test_flows_too_many_to_list(cli, options, said):
    bytes_ = () if "--bytes" in options else ("--bytes", "1M")
    assert said in cli.error("export", "flows", "--op", "all_reduce", *bytes_, *options)


def test_flows_of_more_hosts_than_are_searched(cli, tmp_path):
    path = tmp_path / "topo.xml"
    cli("import", "nccl", "dgx-a100-80g:1", "--export", str(path))
    said = cli.error(
        "export", "flows", "--op", "all_reduce", "--bytes", "1M", "--topology", str(path),
        "--nodes", "100000",
    )  # fmt: skip
    assert "`nodes` is `100000`; give a whole number from 1 to 4,096" in said


@pytest.mark.parametrize(
    ("steps", "rounds", "chunks", "said"),
    [
        ("32", "256", "64", "a search over 125829120 variables; it takes up to 1000000"),
        ("16", "256", "1", "can be dealt to 16 steps in more than 10000 ways"),
    ],
)
def test_searches_too_large_to_begin(cli, steps, rounds, chunks, said):
    assert said in cli.error(
        "export", "msccl", "--synthesize", "all_to_all", "--topology",
        "full:16" if chunks == "64" else "ring:3", "--steps", steps, "--rounds", rounds,
        "--chunks", chunks,
    )  # fmt: skip


def test_times_of_a_log_that_no_collective_takes_are_left_out(cli, tmp_path):
    log = tmp_path / "log.txt"
    row = "{} {} float sum -1 {} 0.1 0.1 0 {} 0.1 0.1 0\n"
    log.write_text(row.format(1024, 256, 1e-308, 1e-308) + row.format(2048, 512, 20.5, 20.5))
    result = cli.json("collective", "-c", "dgx-h100:1", "--against", str(log))
    assert "1e-308" not in str(result)


def test_a_ranking_goes_on_where_no_thread_can_be_had(small_file):
    def refuse_threads():
        # A thread's stack is as large as this limit, and larger than the address space.
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 30, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    command = [sys.executable, "-m", "plancast.cli.main", "rank", "-m", small_file]
    command += ["-c", "dgx-h100:1x2", "--batch", "8", "--workers", "4", "--json"]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        command, preexec_fn=refuse_threads, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert '"iteration_time_s"' in done.stdout or '"plans"' in done.stdout
