"""The JSON of every subcommand has the documented fields and types."""

from __future__ import annotations

import csv
import json

import pytest

MACHINE = "dgx-a100-80g:1"
NUMBER = (int, float)

PREDICT = {
    "iteration_time_s": float,
    "iteration_time_interval_s": list,
    "tokens_per_s": float,
    "samples_per_s": float,
    "tokens_per_s_per_gpu": float,
    "model_tflops_per_gpu": float,
    "hardware_tflops_per_gpu": float,
    "mfu": float,
    "mfu_causal": float,
    "hfu": float,
    "flops_formula": str,
    "peak_memory_bytes": int,
    "fits": bool,
    "memory": list,
    "breakdown_s": dict,
    "critical_path_s": dict,
    "chosen": dict,
    "counters": dict,
    "tasks": int,
    "device_classes": int,
    "simulate_s": float,
    "provenance": dict,
    "cost": dict,
}
MEMORY = {
    "device_class", "ranks", "parameters", "gradients", "optimizer", "activations", "workspace",
    "allocated", "rounding", "fragmentation", "reserved", "nccl", "context", "device", "host",
}  # fmt: skip
BREAKDOWN = {
    "compute", "recompute", "exposed_tp", "exposed_dp", "exposed_pp", "exposed_cp", "exposed_ep",
    "exposed_offload", "bubble", "straggler", "launch", "optimizer", "other",
}  # fmt: skip
COUNTERS = {"tasks", "device_classes", "blocks", "instances", "materialised_tasks"}


def check_predict(value):
    for field, kind in PREDICT.items():
        assert isinstance(value[field], kind), field
    low, high = value["iteration_time_interval_s"]
    assert low <= value["iteration_time_s"] <= high
    assert set(value["breakdown_s"]) == BREAKDOWN
    assert set(value["counters"]) == COUNTERS
    assert set(value["cost"]) == {"usd_per_iteration", "kwh_per_iteration"}
    for entry in value["memory"]:
        assert set(entry) == MEMORY
        assert entry["allocated"] <= entry["reserved"] <= entry["device"]
    assert value["peak_memory_bytes"] == max(entry["device"] for entry in value["memory"])


@pytest.mark.parametrize(
    "strategy",
    ["tp=8,mb=1", "tp=2,sp,pp=2,mb=1", "pp=4,vpp=1,mb=1,recompute=full", "dp=8,zero=1,mb=2"],
)
def test_predict(cli, small_file, strategy):
    value = cli.json("predict", "-m", small_file, "-c", MACHINE, "-s", strategy, "--batch", "32")
    check_predict(value)
    assert value["tokens_per_s"] == pytest.approx(32 * 256 / value["iteration_time_s"])
    assert value["samples_per_s"] == pytest.approx(32 / value["iteration_time_s"])
    assert value["tokens_per_s_per_gpu"] == pytest.approx(value["tokens_per_s"] / 8)


@pytest.mark.parametrize("strategy", ["tp=8,mb=1", "tp=2,pp=4,mb=1", "pp=2,vpp=2,mb=1,zero=1"])
def test_breakdown_sums_to_the_iteration_time(cli, small_file, strategy):
    value = cli.json("predict", "-m", small_file, "-c", MACHINE, "-s", strategy, "--batch", "32")
    assert sum(value["breakdown_s"].values()) == pytest.approx(value["iteration_time_s"], rel=1e-9)
    assert min(value["breakdown_s"].values()) >= 0


def test_no_shortcuts_change_no_digit(cli, small_file):
    plan = ("predict", "-m", small_file, "-c", MACHINE, "-s", "tp=2,pp=2,mb=1", "--batch", "16")
    forecasts = [cli.json(*plan, *more) for more in ((), ("--no-shortcuts",))]
    stepped = []
    for forecast in forecasts:
        del forecast["simulate_s"]
        stepped.append(forecast["counters"].pop("materialised_tasks"))
    assert forecasts[0] == forecasts[1]
    assert stepped[0] < stepped[1]


def test_rank(cli, small_file):
    value = cli.json(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "16", "--space", "tp=1|2,mb=1|2"
    )
    assert set(value) == {
        "plans",
        "evaluated",
        "bounded",
        "stopped",
        "open",
        "space",
        "excluded",
        "seconds",
        "nearest",
        "ties",
        "outside",
    }
    times = [plan["iteration_time_s"] for plan in value["plans"]]
    assert times == sorted(times)
    assert value["evaluated"] == len(times) > 0
    for plan in value["plans"]:
        assert plan["fits"]
        assert "tp=" in plan["strategy"]
        check_predict(plan)
    assert all(isinstance(number, int) for number in value["excluded"].values())


def test_rank_top_and_csv(cli, small_file, tmp_path):
    path = tmp_path / "plans.csv"
    value = cli.json(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "16", "--space", "tp=1|2,mb=1|2",
        "--top", "3", "--out", str(path),
    )  # fmt: skip
    assert len(value["plans"]) == 3
    with path.open() as file:
        records = list(csv.DictReader(file))
    assert [r["strategy"] for r in records] == [p["strategy"] for p in value["plans"]]
    assert float(records[0]["iteration_time_s"]) == value["plans"][0]["iteration_time_s"]


def test_rank_prints_the_same_plans_with_any_number_of_workers(cli, small_file):
    def strategies(workers):
        value = cli.json(
            "rank", "-m", small_file, "-c", MACHINE, "--batch", "16", "--workers", workers,
            "--space", "tp=1|2,mb=1|2",
        )  # fmt: skip
        return [(plan["strategy"], plan["iteration_time_s"]) for plan in value["plans"]]

    assert strategies("1") == strategies("3")


def test_compare_says_what_differs_in_size(cli, small_file):
    arguments = (
        "compare", "-m", small_file, "-c", MACHINE, "-c", "dgx-a100-80g:2", "-s", "tp=8,mb=1",
    )  # fmt: skip
    plans = cli.json(*arguments)["plans"]
    assert [(plan["devices"], plan["global_batch"]) for plan in plans] == [(8, 1), (16, 2)]
    assert "not of equal work" in cli(*arguments)[1]


def test_compare(cli, small_file):
    value = cli.json(
        "compare", "-m", small_file, "-c", MACHINE, "-c", "dgx-h100:1", "-s", "tp=8,mb=1",
        "--batch", "8",
    )  # fmt: skip
    assert len(value["plans"]) == 2
    for plan in value["plans"]:
        check_predict(plan)
    (difference,) = value["differences"]
    assert difference["iteration_time_s"] == pytest.approx(
        value["plans"][1]["iteration_time_s"] - value["plans"][0]["iteration_time_s"]
    )
    assert 0 <= difference["faster_probability"] <= 1
    assert difference["reason"]


def test_compile(cli, small_file):
    arguments = ("compile", "-m", small_file, "-c", MACHINE, "-s", "tp=2,pp=2,mb=1", "--batch", "8")
    value = cli.json(*arguments, "--dump-after", "all")
    assert list(value) == [
        "bind", "differentiate", "partition", "relayout", "synchronise", "schedule", "lower",
    ]  # fmt: skip
    assert all(value.values())
    code, out, _ = cli(*arguments, "--dump-after", "schedule")
    assert code == 0
    assert out.rstrip("\n") == value["schedule"].rstrip("\n")


def test_trace_is_json(cli, small_file, tmp_path):
    path = tmp_path / "trace.json"
    code, out, err = cli(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "tp=2,pp=2,mb=1", "--batch", "8",
        "--trace", str(path),
    )  # fmt: skip
    assert code == 0, err
    assert "Where the time goes" in out
    assert json.loads(path.read_text())["traceEvents"]


def test_reports_load_nothing(cli, small_file, tmp_path):
    path = tmp_path / "report.html"
    code, _, err = cli(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "16", "--space", "tp=1|2,mb=1",
        "--report", str(path),
    )  # fmt: skip
    assert code == 0, err
    page = path.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "recompute=none" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page


def test_tables_print_in_a_pipe_without_colours(cli, small_file):
    code, out, err = cli(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "16", "--space", "tp=1|2,mb=1"
    )
    assert code == 0
    assert "\x1b" not in out
    assert err == ""
