"""Tables of the command line at the widths that people have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plancast.textual import duration

MACHINE = "dgx-a100-80g:2"
ROWS = Path(__file__).parents[2] / "examples" / "validation" / "korthikanti_2022.csv"
WIDTHS = [60, 80, 100, 120, 200]
LONG = "dp=2,tp=2,sp,pp=4,zero=1,mb=1,recompute=selective,attn=flash,order=tp-cp-ep-dp-pp"


@pytest.fixture
def printed(cli, monkeypatch):
    def run(width, *arguments):
        if width is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(width))
        code, out, err = cli(*arguments)
        assert code == 0, err
        return out

    return run


@pytest.fixture
def commands(small_file, tmp_path):
    plan = ("-m", small_file, "-c", MACHINE, "--batch", "32")
    return {
        "predict": ("predict", *plan, "-s", LONG, "--memory-timeline", "--sensitivities"),
        "rank": ("rank", *plan, "--space", "tp=2|4,mb=1|2,order=tp-cp-ep-dp-pp"),
        "compare": ("compare", *plan, *("-s", LONG) * 3, "-s", "tp=8,mb=2"),
        "collective": ("collective", "-c", MACHINE, "--op", "all_reduce", "--bytes", "1K..1G"),
        "nccl": ("import", "nccl", "dgx-h100:2"),
    }  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["predict", "rank", "compare", "collective", "nccl"])
def test_tables_fit_and_nothing_is_clipped(printed, commands, command, width):
    out = printed(width, *commands[command])
    assert "…" not in out
    tables = [line for line in out.splitlines() if not line.startswith("plancast:")]
    assert max(map(len, tables)) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_scores_of_runs_fit(printed, width):
    out = printed(width, "validate", str(ROWS))
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width
    assert "MAPE" in out
    assert "measured" in out


@pytest.mark.parametrize("width", [60, 80])
def test_stores_of_measured_kernels_fit(printed, tmp_path, width):
    table, store = tmp_path / "gemm.csv", str(tmp_path / "kernels.db")
    source = "a-source-with-a-very-long-name-" * 3
    table.write_text(
        "gpu,m,n,k,batch,dtype,layout,time_us,n_meas,op,software,timing,source\n"
        f"H100-SXM-80GB,128,4096,4096,1,bf16,TN,20.5,1,linear,torch 2.5,graph,{source}\n"
    )
    printed(width, "records", "ingest", str(table), "--out", store)
    out = printed(width, "records", "show", store)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width
    assert "H100-SXM-80GB" in out


@pytest.mark.parametrize("width", WIDTHS)
def test_a_ranking_shows_every_time(cli, printed, commands, width):
    plans = cli.json(*commands["rank"])["plans"][:10]
    out = printed(width, *commands["rank"])
    for plan in plans:
        assert duration(plan["iteration_time_s"]) in out


@pytest.mark.parametrize("command", ["predict", "rank", "compare", "collective", "nccl"])
def test_in_a_pipe_without_columns_lines_are_as_long_as_they_are(printed, commands, command):
    out = printed(None, *commands[command])
    assert "…" not in out
    assert "not shown" not in out
    if command == "rank":
        assert re.search(r"tp=2,sp,.*order=tp-cp-ep-dp-pp.* m?s ", out)


@pytest.mark.parametrize("columns", ["0", "-5", "wide", "99999999999"])
def test_a_width_that_makes_no_sense_is_as_none(printed, commands, columns):
    assert printed(columns, *commands["collective"]) == printed(None, *commands["collective"])


def test_heads_name_what_the_plans_share(printed, commands):
    for command in ("predict", "rank", "compare"):
        out = printed(100, *commands[command])
        assert "batch 32, sequence 256, type bf16, profile megatron-core" in out


def test_rankings_and_comparisons_print_the_warnings_of_predictions(printed, small_file):
    plan = ("-m", small_file, "-c", "t4-pcie:1", "--batch", "32")
    for arguments in (
        ("predict", *plan, "-s", "tp=2,mb=1"),
        ("rank", *plan, "--space", "tp=2,mb=1"),
        ("compare", *plan, "-s", "tp=2,mb=1", "-s", "tp=4,mb=1"),
    ):
        out = printed(None, *arguments)
        assert "note: T4 has no bf16 units" in out
        assert "warning: no measured run of `megatron-core` is on T4" in out


def test_no_probability_where_a_path_is_extrapolated(printed, cli):
    arguments = (
        "compare", "-m", "llama3-8b", "-c", "dgx-h100:1", "-c", "dgx1-v100-32g:1", "-s",
        "tp=8,sp,mb=1", "--batch", "32",
    )  # fmt: skip
    out = printed(None, *arguments)
    assert "probability" not in out
    assert re.search(r"\d+ % of B's path are extrapolated from other GPUs or links", out)
    (difference,) = cli.json(*arguments)["differences"]
    assert difference["faster_probability"] is None
    assert difference["extrapolated"][1] > 0.5


def test_plans_of_one_unmeasured_machine_are_still_told_apart(printed):
    out = printed(
        None, "compare", "-m", "llama3-8b", "-c", "dgx1-v100-32g:1", "-s", "tp=8,sp,mb=1",
        "-s", "tp=8,sp,mb=2", "--batch", "32",
    )  # fmt: skip
    assert "faster with probability" in out


def test_a_what_if_does_not_stand_under_the_plans_own_name(printed, small_file, tmp_path):
    page = tmp_path / "page.html"
    plan = ("-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--batch", "32")
    out = printed(
        None, "predict", *plan, "--what-if", "compute=2x", "--report", str(page)
    )  # fmt: skip
    head = out[: out.index("iteration")]
    assert "WHAT IF compute=2x: not the plan as it is" in head
    html = page.read_text()
    assert "<title>small on dgx-a100-80g (16 GPUs), what if compute=2x</title>" in html
    assert "What if compute=2x: this is not the plan as it is." in html
