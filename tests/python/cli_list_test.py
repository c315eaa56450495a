"""What is known by name, whether the installation is whole, and what shells complete."""

from __future__ import annotations

import shutil
import subprocess

import plancast as pc
import pytest
from plancast import doctor, shipped
from plancast.cli import completion
from plancast.cli.main import build_parser

KINDS = ["models", "machines", "gpus", "profiles", "ops", "recipes"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_printed_one_a_line(cli, kind):
    code, out, _ = cli("list", kind, "--names")
    assert code == 0
    assert out.splitlines() == shipped.KINDS[kind]()


@pytest.mark.parametrize("name", shipped.KINDS["gpus"]())
def test_every_gpu_has_its_story(cli, name):
    code, out, err = cli("show", name)
    assert (code, err) == (0, "")
    assert out.split()[0] == name


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize(
    "words",
    [
        ("models", "llama"),
        ("machines",),
        ("gpus",),
        ("profiles",),
        ("ops", "conv"),
        ("recipes", "qwen3", "gb200"),
    ],
)
def test_lists_fit_their_page_and_name_all(cli, monkeypatch, width, words):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = cli("list", *words)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= width
    assert "…" not in out
    for name in shipped.names(words[0], list(words[1:])):
        assert name in out


def test_a_list_of_nothing_is_answered_with_what_there_is(cli):
    kinds = ", ".join(f"`{kind}`" for kind in KINDS)
    assert cli.error("list") == f"`plancast list` needs what to list: {kinds}."


def test_lists_as_json(cli):
    (row,) = cli.json("list", "models", "llama3-70b")
    assert row["parameters"] == pc.Model.preset("llama3-70b").parameters
    rows = cli.json("list", "machines", "dgx", "h100")
    assert [row["name"] for row in rows] == ["dgx-h100"]
    assert rows[0]["gpu"] == "H100-SXM-80GB"
    measured = {row["name"]: row["own_kernels"] for row in cli.json("list", "gpus")}
    assert measured["H100-SXM-80GB"] > 0.9
    assert measured["MI210"] == 0


def test_singular_and_other_words(cli):
    assert cli("list", "gpu", "--names") == cli("list", "gpus", "--names")
    assert cli("list", "clusters", "--names") == cli("list", "machines", "--names")


def test_unknown_words_are_answered_with_few_names(cli):
    assert "Did you mean `models`?" in cli.error("list", "model5")
    assert "Did you mean `dgx-h100`?" in cli.error("list", "machines", "dgx-h1000")
    answer = cli.error("show", "softmaxx")
    assert answer.startswith("nothing is called `softmaxx`. Did you mean `softmax`?")
    assert answer.count("`") <= 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama3-8b", "8,030,261,248"),
        ("llama3-70b-l4", "layers"),
        ("resnet50", "25,557,032"),
        ("dgx-h100", "8 H100-SXM-80GB"),
        ("dgx-h100:4", "8 H100-SXM-80GB"),
        ("h100-sxm-80gb", "memory_gb"),
        ("torchtitan", "zero=1"),
        ("softmax", "backward:"),
    ],
)
def test_all_about_one(cli, name, said):
    code, out, err = cli("show", name)
    assert code == 0, err
    assert said in out
    assert cli.json("show", name)[0]["kind"] in KINDS


def test_memory_of_hosts_is_shown_or_asked_for(cli):
    assert "host: 2,048 GiB of memory" in cli("show", "dgx-h100")[1]
    assert "host: its memory is unknown; `host_memory_gb`" in cli("show", "rtx4090-pcie")[1]


def test_prices_of_a_machine_have_sources_and_dates(cli):
    (row,) = cli.json("show", "dgx-h100")
    assert [quote["kind"] for quote in row["prices"]] == ["on-demand", "reserved", "spot"]
    assert row["usd_per_gpu_hour"] == row["prices"][0]["usd"]
    out = " ".join(cli("show", "dgx-h100")[1].split())
    for quote in row["prices"]:
        told = f"${quote['usd']:g} per GPU-hour {quote['kind']} ({quote['source']}, {quote['date']}"
        assert told in out
    assert "no price is on record; give `--price`" in cli("show", "gb300-nvl72")[1]


def test_an_installation_that_is_whole(cli):
    code, out, _ = cli("doctor")
    assert code == 0
    assert "all is well" in out
    assert "broken" not in out
    answer = cli.json("doctor")
    assert answer["well"]
    assert "forecast" in [finding["what"] for finding in answer["findings"]]


def test_a_forecast_that_is_off_is_told(cli, monkeypatch):
    wanted = doctor.golden()
    monkeypatch.setattr(doctor, "golden", lambda: {**wanted, "iteration_time_s": 18.0})
    code, out, _ = cli("doctor")
    assert code == 1
    assert "broken: forecast" in out


def test_a_check_that_fails_keeps_none_from_running(cli, monkeypatch):
    def fail():
        raise OSError("no such disk")

    monkeypatch.setattr(doctor, "_machines", fail)
    code, out, _ = cli("doctor")
    assert code == 1
    assert "OSError: no such disk" in out
    assert "as they have to be" in " ".join(out.split())


def test_version_in_short(cli):
    assert cli("-V") == cli("--version")


def test_every_command_and_option_is_completed():
    words = completion._words(build_parser())
    assert "--batch" in words["rank"]
    assert "ingest" in words["records"]
    for shell in ("bash", "zsh", "fish"):
        text = completion._fish(words) if shell == "fish" else completion._bash(words, shell)
        for name in words:
            assert name in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plancast pre", ["predict"]),
        ("plancast rank --obj", ["--objective"]),
        ("plancast predict -m llama3-4", ["llama3-405b"]),
        ("plancast records in", ["ingest"]),
        ("plancast plan llama3-4", ["llama3-405b"]),
        ("plancast list mac", ["machines"]),
        ("plancast show llama3-8", ["llama3-8b"]),
        ("plancast rank --for tor", ["torchtitan"]),
        ("plancast predict --dtype nv", ["nvfp4"]),
        ("plancast completion f", ["fish"]),
        ("plancast predict --profile deep", ["deepspeed"]),
        ("plancast rank --profile deepspeed+li", ["deepspeed+liger"]),
        ("plancast rank --profile deepspeed+liger+fl", ["deepspeed+liger+flash-attention-3"]),
    ],
)
def test_bash_completes(cli, line, expected):
    _, script, _ = cli("completion", "bash")
    words = line.split()
    listed = " ".join(f"'{word}'" for word in words)
    test = (
        "plancast() { printf '%s\\n' llama3-8b llama3-405b deepspeed +liger +flash-attention-3; }\n"
        f"{script}\n"
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _plancast\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", test], capture_output=True, text=True, check=True)
    # Whatever is listed has the same names here.
    assert list(dict.fromkeys(done.stdout.split())) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(cli, tmp_path, shell):
    code, script, _ = cli("completion", shell)
    assert code == 0
    assert "plancast" in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", str(file)], check=True)


def test_a_shell_that_is_none(cli):
    assert cli.error("completion", "bsh").startswith("no shell `bsh`. Did you mean `bash`?")
