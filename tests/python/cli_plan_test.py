"""`plancast plan MODEL MACHINE`: the one question, its answer, and what is said where none fits."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import plancast as pc
import pytest
from plancast import alternatives, plan_search, simplicity
from plancast.causal import causal_mfu
from plancast.cli.main import main
from plancast.confidence import confidence
from plancast.plan_search import Search

HOST = "dgx-h100:1"
BATCH = ("--batch", "64")


@pytest.fixture
def asked(cli, small_file):
    """The answer about a small model, as text without line ends."""

    def run(*more, machine=HOST, code=0):
        got, out, err = cli("plan", small_file, machine, *BATCH, *more)
        assert got == code, err
        return " ".join(out.split()), err

    return run


def test_the_answer_has_plan_rate_memory_confidence_alternatives_and_command(asked):
    out, err = asked()
    assert err == ""
    for word in ("plan dp=", "tokens/s", "MFU", "causal)", "of headroom", "90 % between"):
        assert word in out
    assert out.index("measured") < out.index("extrapolated") < out.index("not in it")
    assert re.search(r"not in it .* confidence (high|fair|low)", out)
    assert out.index("confidence") < out.index("Alternatives")
    assert "megatron-core: --launch FOLDER/ writes its file" in out
    assert "torchrun --nproc-per-node 8 pretrain_gpt.py" in out
    assert "days for" not in out
    out, _ = asked("--profile", "nanotron")
    assert "no argument files of `nanotron` are written: the file is one of megatron-core" in out
    assert "vpp" not in out.partition("Alternatives")[0]


def test_with_tokens_it_has_days_and_dollars(asked):
    out, _ = asked("--tokens", "10T")
    assert re.search(r"time [\d.,]+ days for 10 T tokens, 90 % between", out)
    assert re.search(r"cost \$[\d.,]+.* per GPU-hour", out)
    dear, _ = asked("--tokens", "10T", "--price", "35")
    assert "$35 per GPU-hour, given" in dear


@pytest.mark.parametrize(
    ("framework", "file", "command"),
    [
        ("megatron", "plan.sh", "source {} && torchrun"),
        ("torchtitan", "plan.toml", "-m torchtitan.train --job.config_file {}"),
        ("deepspeed", "plan.json", "--deepspeed_config {}"),
        ("fsdp", "plan.yaml", "accelerate launch --config_file {} TRAIN.py"),
    ],
)
def test_the_launch_file_is_the_plan(cli, small_file, tmp_path, framework, file, command):
    answer = cli.json(
        "plan", small_file, HOST, *BATCH, "--for", framework, "--launch", f"{tmp_path}/out/"
    )
    written = tmp_path / "out" / file
    assert answer["launch_file"] == str(written)
    assert answer["launch"] == written.read_text()
    assert command.format(written) in answer["command"]
    launch = pc.launchers.read(written, gpus=8, gpus_per_host=8)
    said = alternatives.items(answer["strategy"])
    read = alternatives.items(launch.strategy.short_form)
    for key in ("tp", "zero"):
        assert read.get(key, "0" if key == "zero" else "1") in (said.get(key, "0"), "1")


def test_the_file_may_have_a_name_of_its_own(asked, tmp_path):
    out, _ = asked("--for", "torchtitan", "--launch", str(tmp_path / "job.toml"))
    assert f"wrote {tmp_path}/job.toml" in out.replace(" ", "").replace("wrote", "wrote ")
    assert "[parallelism]" in (tmp_path / "job.toml").read_text()


def test_paths_that_no_launch_file_can_have(cli, tmp_path):
    (tmp_path / "file").write_text("")
    plan = ("plan", "gpt2", HOST, *BATCH, "--space", "mb=8", "--launch")
    assert "is empty; give a folder or a file" in cli.error(*plan, "")
    assert "cannot be written" in cli.error(*plan, "/dev/full")
    assert "no folder" in cli.error(*plan, str(tmp_path / "file" / "below") + "/")


def test_nouns_in_either_order_or_as_options(cli, small_file):
    space = ("--space", "mb=4")
    usual = cli.json("plan", "gpt2", HOST, *BATCH, *space)
    for words in ((HOST, "gpt2"), ("-m", "gpt2", HOST), ("gpt2", "--machine", HOST)):
        assert cli.json("plan", *words, *BATCH, *space)["strategy"] == usual["strategy"]


def test_what_is_missing_is_said(cli):
    assert "needs a machine, such as `dgx-h100:2`" in cli.error("plan", "gpt2")
    assert "needs a model, such as `llama3-8b`" in cli.error("plan", HOST)
    assert "is one word too many" in cli.error("plan", "gpt2", HOST, "dp=8")
    assert "no framework `tortitan`. Did you mean `torchtitan`?" in cli.error(
        "plan", "gpt2", HOST, "--for", "tortitan"
    )


def test_one_host_where_none_is_said(cli):
    code, out, err = cli("plan", "gpt2", "dgx-h100", *BATCH)
    assert code == 0
    assert "(8 GPUs)" in out
    assert err == "plancast: note: no number of hosts is given: `dgx-h100:1`\n"


def test_a_batch_of_its_own_divides_over_odd_machines(cli):
    answer = cli.json("plan", "gpt2", "dgx-h100:3")
    assert answer["batch"] % 24 == 0
    assert any("no batch is given" in text for text in answer["said"])


def test_options_of_planners_stay_with_them(cli):
    error = cli.error("plan", "gpt2", HOST, *BATCH, "--mesh", "4")
    assert error == "--mesh is of planners of trees; add `--method intra-op`."
    error = cli.error("plan", "gpt2", HOST, *BATCH, "--method", "grid", "--tokens", "1T")
    assert "--tokens is of `plancast plan` without --method" in error
    assert "needs the batch" in cli.error("plan", "gpt2", HOST, "--method", "grid")


def test_host_memory_where_nothing_else_fits(cli, large_file):
    small = ("plan", "llama3-70b-l60", HOST, "--seq", "2048", "--batch", "16")
    answer = cli.json(*small)
    assert "offload=" in answer["strategy"]
    assert any("host memory" in text for text in answer["said"])


def test_where_nothing_fits_the_nearest_and_what_would_do(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = cli("plan", "gpt3-175b", HOST, "--seq", "512", "--batch", "64")
    assert code == 3, err
    assert max(map(len, out.splitlines())) <= 80
    said = " ".join(out.split())
    assert "no plan fits" in said
    assert re.search(r"lacks needs [\d.,]+ GiB of 79.1 a GPU: [\d.,]+ too much", said)
    assert re.search(r"would fit on `dgx-h100:\d+` fits dp=", said)
    assert "looks for another plan" not in said
    assert "run it" not in said


def test_a_wider_space_comes_before_more_hosts():
    answer = pc.plan(
        pc.Model.preset("llama3-405b", seq=1024), pc.Machine.preset("dgx-h100", hosts=16),
        framework="fsdp", batch=128, space="zero=0",
    )  # fmt: skip
    assert answer.best is None
    assert answer.would_fit[0].startswith("outside of `zero=0` fits")


def test_a_space_of_ones_own(cli, small_file):
    answer = cli.json("plan", small_file, HOST, *BATCH, "--space", "tp=4,mb=2")
    assert "tp=4" in answer["strategy"]
    assert "mb=2" in answer["strategy"]


def test_the_tree_is_written_for_other_commands(asked, tmp_path):
    asked("--out", str(tmp_path / "plan.yaml"))
    assert pc.Strategy.from_file(tmp_path / "plan.yaml").short_form


def test_predict_without_a_strategy_takes_the_plan(cli, small_file):
    chosen = cli.json("plan", small_file, HOST, *BATCH)
    code, out, err = cli("predict", "-m", small_file, "-c", HOST, *BATCH, "--json")
    assert code == 0
    forecast = json.loads(out)
    assert forecast["provenance"]["strategy"] == chosen["strategy"]
    assert forecast["iteration_time_s"] == chosen["forecast"]["iteration_time_s"]
    assert "without -s it is the plan that `plancast plan` chooses" in err
    assert main(["predict", "-m", "gpt3-175b", "-c", HOST, "--seq", "512", *BATCH]) == 3


def test_python_gives_the_same(cli, small, small_file):
    choice = pc.plan(small, pc.Machine.open(HOST), batch=64, framework="torchtitan")
    answer = cli.json("plan", small_file, HOST, *BATCH, "--for", "torchtitan")
    assert choice.best.strategy == answer["strategy"]
    assert choice.framework == "torchtitan"
    assert choice.best.profile == "torchtitan"
    assert choice.headroom == choice.best.memory_capacity - choice.best.peak_memory
    assert repr(choice).startswith("<Choice for small on dgx-h100:1x8: dp=")


def test_the_best_is_as_fast_as_the_best_of_the_whole_space(small):
    machine = pc.Machine.open(HOST)
    whole = pc.rank(small, machine, batch=64, space="mb=*")[0]
    best = pc.plan(small, machine, batch=64).best
    # Within what is called a tie.
    assert best.iteration_time <= whole.iteration_time * 1.005


def test_no_plan_of_the_default_space_of_a_framework_is_faster():
    # At mb=4, which the usual plans do not try; the fastest of all fills its memory.
    model = pc.Model.preset("gpt3-175b", seq=1024)
    machine = pc.Machine.preset("dgx-a100-80g", hosts=16)
    whole = pc.rank(model, machine, batch=512, profile="deepspeed", top=1)[0]
    choice = pc.plan(model, machine, framework="deepspeed", batch=512)
    assert choice.best.iteration_time <= whole.iteration_time * 1.04
    assert not any("were not looked at" in text for text in choice.said)


def test_of_a_very_large_space_the_usual_plans_are_looked_at(small, monkeypatch):
    machine = pc.Machine.open(HOST)
    best = pc.plan(small, machine, batch=64).best
    monkeypatch.setattr(plan_search, "_WHOLE", 10)
    choice = pc.plan(small, machine, batch=64)
    (said,) = (text for text in choice.said if "were not looked at" in text)
    whole, left, usual = (int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", said)[:3])
    assert whole == left + usual
    assert 0 < left < whole
    assert choice.best.iteration_time <= best.iteration_time * 1.2


@pytest.mark.parametrize("framework", ["megatron", "deepspeed", "fsdp"])
def test_gpus_without_bf16_train_in_fp16(cli, small_file, framework):
    job = ("plan", small_file, "dgx1-v100-32g:1", *BATCH, "--for", framework)
    answer = cli.json(*job)
    assert answer["forecast"]["provenance"]["dtype"] == "fp16"
    assert "V100-SXM-32GB has no units for bf16, so the type is fp16" in answer["said"]
    assert "fp16" in answer["launch"]
    assert "bf16" not in answer["launch"]
    asked = cli.json(*job, "--dtype", "fp32", "--space", "mb=4")
    assert asked["forecast"]["provenance"]["dtype"] == "fp32"
    predicted = cli.json("predict", "-m", small_file, "-c", "dgx1-v100-32g:1", *BATCH)
    assert predicted["provenance"]["dtype"] == "fp16"


def test_rank_keeps_to_what_a_framework_runs(cli, small_file, tmp_path):
    file = tmp_path / "best.toml"
    plan = ("-m", small_file, "-c", HOST, *BATCH, "--space", "mb=1,recompute=none|full")
    answer = cli.json("rank", *plan, "--for", "torchtitan", "--launch", str(file))
    assert answer["plans"]
    for one in answer["plans"]:
        assert pc.why_framework_cannot_run("torchtitan", one["strategy"]) == ""
        assert one["provenance"]["profile"] == "torchtitan"
    launch = pc.launchers.read(file, gpus=8, model=pc.Model.open(small_file))
    best = alternatives.items(answer["plans"][0]["strategy"])
    assert alternatives.items(launch.strategy.short_form).get("tp", "1") == best["tp"]
    code, out, err = cli("rank", *plan, "--for", "torchtitan", "--launch", str(file), "--top", "2")
    assert code == 0
    assert f"wrote {file} of the best plan" in err
    assert "profile torchtitan" in out


def test_plans_that_a_file_cannot_say_are_counted(small):
    ranking = pc.rank(small, pc.Machine.open(HOST), batch=64, space="tp=2,mb=1,sp=0|1,pp=1")
    kept = ranking.for_framework("torchtitan")
    assert len(kept) < len(ranking)
    assert any("sequence-parallel" in reason for reason in kept.excluded)
    assert len(ranking.for_framework("megatron", top=1)) == 1


def test_rank_looks_at_host_memory_and_outside_of_its_space(cli):
    job = ("rank", "-m", "llama3-70b-l60", "-c", HOST, "--seq", "2048", "--batch", "16")
    answer = cli.json(*job, "--space", "tp=8,mb=1,recompute=full")
    assert "offload=" in answer["plans"][0]["strategy"]
    code, out, _ = cli(*job, "--space", "tp=1,mb=1,pp=1,zero=0,offload=activations")
    assert code == 3
    said = " ".join(out.split())
    assert "outside of the space fits" in said
    assert "looks for another plan" not in said


def plans_of(*rows):
    """Plans by strategy, seconds and the share of memory that they fill."""
    return [
        SimpleNamespace(strategy=text, iteration_time=s, peak_memory=share, memory_capacity=1.0)
        for text, s, share in rows
    ]


@pytest.mark.parametrize(
    ("rows", "best", "said"),
    [
        ([("dp=4,tp=2,mb=1", 1.0, 0.5), ("dp=8,mb=1", 1.004, 0.6)], "dp=8,mb=1", "less simple"),
        ([("dp=4,tp=2,mb=1", 1.0, 0.5), ("dp=8,mb=1", 1.02, 0.6)], "dp=4,tp=2,mb=1", ""),
        ([("dp=8,mb=2", 1.0, 0.99), ("dp=8,mb=1", 1.03, 0.6)], "dp=8,mb=1", "fills the memory"),
        ([("dp=8,mb=2", 1.0, 0.99), ("dp=8,mb=1", 1.10, 0.6)], "dp=8,mb=2", ""),
        ([("dp=4,tp=2,mb=2", 1.0, 0.9), ("dp=8,mb=1", 1.001, 0.98)], "dp=4,tp=2,mb=2", ""),
    ],
)
def test_ties_go_to_the_simpler_and_full_plans_give_way(rows, best, said):
    search = object.__new__(Search)
    search.said = []
    ordered = search._simplest_first(plans_of(*rows))
    assert ordered[0].strategy == best
    assert len(ordered) == len(rows)
    assert said in "".join(search.said)
    assert bool(said) == bool(search.said)


def test_plans_that_fill_the_memory_are_no_alternatives():
    rows = [
        ("dp=4,pp=2,zero=1,mb=1", 1.0, 0.8),
        ("dp=8,zero=1,mb=1", 1.01, 0.99),
        ("dp=8,zero=2,mb=1", 1.02, 0.6),
    ]
    plans = plans_of(*rows)
    said = [other.forecast.strategy for other in alternatives.of(plans)]
    assert said == ["dp=8,zero=2,mb=1"]
    # Of plans that do so anyway all are.
    crowded = plans_of(*((text, s, 0.98) for text, s, _ in rows))
    assert len(alternatives.of(crowded)) == 2


def test_a_run_of_a_single_step_asks_for_a_unit(cli, small_file):
    answer = cli.json("plan", small_file, HOST, *BATCH, "--space", "mb=4", "--tokens", "15")
    assert answer["said"][-1] == (
        "that is a single step; a number of tokens is written 300B or 15T"
    )
    long = cli.json("plan", small_file, HOST, *BATCH, "--space", "mb=4", "--tokens", "15M")
    assert not any("single step" in text for text in long["said"])


def test_a_price_needs_a_run(cli):
    error = cli.error("plan", "gpt2", HOST, *BATCH, "--price", "2")
    assert error == "--price is of a whole run; add --tokens, such as `--tokens 1T`."


def test_what_is_simpler():
    plans = [
        SimpleNamespace(strategy="dp=4,tp=2,sp,mb=1", iteration_time=1.0),
        SimpleNamespace(strategy="dp=8,zero=3,mb=1", iteration_time=1.0),
        SimpleNamespace(strategy="dp=8,zero=1,mb=1", iteration_time=1.0),
        SimpleNamespace(strategy="dp=8,mb=2", iteration_time=1.5),
        SimpleNamespace(strategy="dp=8,mb=4", iteration_time=1.2),
    ]
    ordered = [plan.strategy for plan in simplicity.simplest_of_ties(plans)]
    assert ordered == [
        "dp=8,zero=1,mb=1", "dp=8,zero=3,mb=1", "dp=4,tp=2,sp,mb=1", "dp=8,mb=2", "dp=8,mb=4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "plan", "profile", "grade"),
    [
        (HOST, "tp=8,sp,zero=1,mb=1", "megatron-core", "high"),
        (HOST, "tp=8,sp,zero=1,mb=1", "deepspeed", "fair"),
        ("dgx-a100-80g:1", "tp=8,sp,zero=1,mb=1", "megatron-core", "fair"),
        ("mi250-gcd:1", "tp=8,sp,zero=1,mb=1", "megatron-core", "low"),
    ],
)
def test_grades(machine, plan, profile, grade):
    model = pc.Model.preset("llama3-70b-l8", seq=4096)
    forecast = pc.predict(model, pc.Machine.open(machine), plan, batch=32, profile=profile)
    sure = confidence(forecast)
    assert sure.grade == grade
    for warning in forecast.warnings:
        if "critical path" not in warning and not warning.startswith("fills"):
            assert warning in (*sure.extrapolated, *sure.not_modelled)


def test_causal_mfu_leaves_out_half_of_attention():
    machine = pc.Machine.open(HOST)
    model = pc.Model.from_config(
        name="m", layers=2, hidden=512, heads=8, ffn=2048, vocab=1000, seq=1024
    )
    forecast = pc.predict(model, machine, "mb=1", batch=8)
    weights = 2 * (4 * 512 * 512 + 2 * 512 * 2048) + 1000 * 512
    full = 6 * weights + 12 * 2 * 512 * 1024
    causal = 6 * weights + 6 * 2 * 512 * 1024
    assert causal_mfu(forecast) / forecast.mfu == pytest.approx(causal / full, rel=1e-2)
    for other in ("gemma2-2b", "bert-base", "resnet50"):
        plan = "mb=8" if other == "resnet50" else "mb=1"
        assert causal_mfu(pc.predict(pc.Model.preset(other), machine, plan)) is None


def test_alternatives_differ_from_the_best_and_say_what_they_trade(small):
    choice = pc.plan(small, pc.Machine.open("dgx-h100:2"), batch=64)
    assert 1 <= len(choice.others) <= 2
    plans = [choice.best.strategy, *(other.forecast.strategy for other in choice.others)]
    assert len(set(plans)) == len(plans)
    for other in choice.others:
        assert other.trades
        assert other.forecast.fits


def test_the_front_of_time_and_memory(cli, small_file):
    plan = ("rank", "-m", small_file, "-c", HOST, *BATCH, "--space", "mb=1|2,pp=1|2")
    every, front = cli.json(*plan)["plans"], cli.json(*plan, "--pareto")["plans"]
    assert 1 < len(front) < len(every)
    kept = {one["strategy"] for one in front}
    for one in every:
        beaten = any(
            other["iteration_time_s"] <= one["iteration_time_s"]
            and other["peak_memory_bytes"] < one["peak_memory_bytes"]
            for other in every
        )
        assert not (beaten and one["strategy"] in kept)
    assert len(cli.json(*plan, "--pareto", "--top", "2")["plans"]) == 2
