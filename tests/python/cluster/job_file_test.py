"""Jobs from files, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plancast.clusters import job_file
from plancast.errors import InputError

MACHINE = ("-c", "dgx-a100-80g:4")
EXAMPLES = Path(__file__).parents[3] / "examples" / "clusters"


@pytest.fixture
def written(tmp_path):
    def write(text: str, name: str = "jobs.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_yaml(written):
    read = job_file.read(
        written(
            "sharing: strict\nuntil: 2 h\njobs:\n"
            "  - {name: a, gpus: 16, compute: 200 ms, communicate: 3 GB, iterations: 10}\n"
            "  - {name: b, gpus: 8, compute: 1, copies: 3, arrival: 1 min, duration: 1 h}\n"
        )
    )
    assert read.settings == {"sharing": "strict", "until": 7200.0}
    assert [job.name for job in read.jobs] == ["a", "b-0", "b-1", "b-2"]
    assert read.jobs[0].where.endswith("jobs.yaml:4")
    assert (read.jobs[1].arrival, read.jobs[1].duration) == (60.0, 3600.0)


def test_a_table(written):
    read = job_file.read(
        written("name,arrival,gpus,compute,iterations\na,0,8,1.5,10\nb,5,16,300 ms,\n", "j.csv")
    )
    assert [(job.name, job.gpus, job.iterations) for job in read.jobs] == [
        ("a", 8, 10),
        ("b", 16, None),
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("j.csv", "name,arrival,gpus\na,5,1\nb,4,1\n", "j.csv:3: job `b` arrives at 4 s, before"),
        ("j.csv", "name,gpu\na,5\n", "j.csv:1: no column `gpu`. Did you mean `gpus`"),
        ("j.csv", "name,gpus\na\n", "j.csv:2: 1 values"),
        ("j.csv", "name,gpus\na,x\n", "j.csv:2: `gpus` is `x`"),
        ("j.csv", "name,gpus\n", "lists no jobs"),
        ("j.yaml", "jobs:\n - {name: a, gpuz: 1}\n", "j.yaml:2: no field `gpuz` of a job"),
        ("j.yaml", "jobs:\n - {gpus: 1}\n", "j.yaml:2: a job has no name"),
        ("j.yaml", "sharring: x\njobs:\n - {name: a}\n", "no setting `sharring`. Did you mean"),
        ("j.yaml", "jobs: []\n", "lists no jobs"),
        ("j.yaml", "jobs:\n - {name: a, model: gpt9}\n", "j.yaml:2:"),
        ("j.yaml", "jobs:\n - {name: a, gpus: 1, overlap: 2}\n", "the overlap 2"),
    ],
)
def test_bad_files_are_refused_with_their_line(written, name, text, words):
    with pytest.raises(InputError) as error:
        job_file.read(written(text, name))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("b,5,hosts 9,1,10", "j.csv:3: job `b`"),
        ("b,5,hosts 0-1,1,10", "j.csv:3: job `b` is given GPU 0 of host 0 at 5 s, where job `a`"),
    ],
)
def test_bad_placements_are_refused_with_their_line(cli, written, row, words):
    path = written(f"name,arrival,placement,compute,iterations\na,0,hosts 0,1,10\n{row}\n", "j.csv")
    code, out, err = cli("cluster", path, *MACHINE)
    assert (code, out) == (2, "")
    assert words in err


JOBS = """
jobs:
  - {name: gpt, gpus: 16, compute: 1.2, communicate: 0.4 s, overlap: 0.2, placement: spread}
  - {name: bert, gpus: 16, compute: 0.3, communicate: 0.2 s, placement: spread}
"""


def test_the_command(cli, written, tmp_path):
    path = written(JOBS)
    code, out, err = cli("cluster", path, *MACHINE, "--sharing", "strict")
    assert (code, err) == (0, "")
    assert "gpt" in out and "GPUs compute" in out
    trace = tmp_path / "t.json"
    code, out, _ = cli("cluster", path, *MACHINE, "--json", "--trace", str(trace), "--detail", "5")
    assert code == 0
    told = json.loads(out)
    assert [job["name"] for job in told["jobs"]] == ["gpt", "bert"]
    assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("intensity", "links: strict, by intensity, paths by hash; 1 job is slowed down by others"),
        ("given", "links: strict, by given priority, paths by hash; 2 jobs are slowed down"),
        ("reverse", "links: strict, the lowest intensity first, paths by hash; 1 job is slowed"),
    ],
)
def test_how_links_are_shared_is_said(cli, order, said):
    files = (str(EXAMPLES / "two-jobs.yaml"), "-c", str(EXAMPLES / "one-link.yaml"))
    code, out, _ = cli("cluster", *files, "--sharing", "strict", "--order", order)
    assert code == 0
    assert said in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cluster", "nowhere.yaml", *MACHINE), "there is no file"),
        (("cluster", "JOBS", *MACHINE, "--paths", "best"), "no paths `best`"),
        (("cluster", "JOBS"), "`-c` is missing"),
        (("cluster", "JOBS", "-c", "dgx-a100-80g:1+dgx-h100:1"), "of equal hosts"),
    ],
)
def test_errors_of_the_command(cli, written, arguments, words):
    path = written(JOBS)
    code, out, err = cli(*(path if word == "JOBS" else word for word in arguments))
    assert (code, out) == (2, "")
    assert words in err


def test_the_examples(cli):
    code, out, _ = cli(
        "cluster", str(EXAMPLES / "two-jobs.yaml"), "-c", str(EXAMPLES / "one-link.yaml"), "--json"
    )
    assert code == 0
    told = json.loads(out)
    assert [job["iteration_s"] for job in told["jobs"]] == pytest.approx([5.2, 6.5], abs=1e-9)
    code, out, _ = cli(
        "cluster",
        str(EXAMPLES / "shared-pods.yaml"),
        "-c",
        str(EXAMPLES / "oversubscribed.yaml"),
        "--what-if",
    )
    assert code == 0
    assert "llama" in out and "with one thing changed" in out
