"""Learning from runs: laws of the posterior, files, forecasts with it, and the command."""

from __future__ import annotations

import json
import math
import random

import plancast as pc
import pytest
from plancast.learned import Evidence, Learned, _checksum, believed
from plancast.learned_memory import MemoryEvidence

MACHINE = pc.Machine.preset("dgx-h100")
ASK = {"strategy": "tp=2,mb=1", "batch": 16}


def run(name: str, log: float, gemm: float = 0.7, ring: float = 0.2, gpu: str = "G") -> Evidence:
    shares = {
        "G/gemm/bf16": (gemm, 0.1),
        "nvlink/ring": (ring, 0.2),
        "software/x": (1.0, believed("software/x", 0.0)),
    }
    return Evidence(name, gpu, log, shares)


def change(learned: Learned, name: str) -> float:
    return {f.name: f.change for f in learned.facts()}[name]


def test_nothing_is_learned_of_what_no_run_hangs_on():
    learned = Learned((run("a", 0.2, ring=0.0), run("b", 0.2, ring=0.0)))
    facts = {f.name: f for f in learned.facts()}
    assert facts["nvlink/ring"].change == 0
    assert facts["nvlink/ring"].after == pytest.approx(facts["nvlink/ring"].before)
    assert facts["G/gemm/bf16"].after < facts["G/gemm/bf16"].before


def test_runs_as_forecast_narrow_and_move_nothing():
    learned = Learned(tuple(run(f"r{i}", 0.0, gemm=0.4 + 0.1 * i) for i in range(4)))
    for fact in learned.facts():
        assert fact.change == 0 and fact.after < fact.before


def test_what_is_shared_goes_to_the_software_and_what_differs_to_its_cause():
    alike = Learned(tuple(run(f"r{i}", 0.05, gemm=0.5 + 0.02 * i, ring=0.1) for i in range(6)))
    assert change(alike, "software/x") > 0.01
    # Runs are slow in proportion to their communication.
    apart = Learned(
        tuple(run(f"r{i}", 0.5 * r, gemm=0.9 - r, ring=r) for i, r in enumerate([0, 0.2, 0.4, 0.6]))
    )
    assert change(apart, "nvlink/ring") > 0.2
    assert abs(change(apart, "G/gemm/bf16")) < 0.05


def test_the_order_of_runs_does_not_matter_and_merging_is_learning_from_all():
    draw = random.Random(3)
    runs = [run(f"r{i}", draw.gauss(0.05, 0.1), draw.random(), draw.random() / 2) for i in range(8)]
    whole = Learned(tuple(runs))
    mixed = Learned(tuple(runs[5:])).merge(Learned(tuple(runs[:6])))
    assert len(mixed) == 8
    for a, b in zip(whole.facts(), mixed.facts(), strict=True):
        assert a.name == b.name and a.change == pytest.approx(b.change, abs=1e-9)


def test_a_run_that_others_contradict_is_named_and_counts_for_little():
    runs = [run(f"r{i}", 0.02, gemm=0.5 + 0.05 * i) for i in range(6)]
    learned = Learned((*runs, run("odd", 0.9)))
    assert [name for name, _ in learned.doubts()] == ["odd"]
    assert abs(change(learned, "software/x") - change(Learned(tuple(runs)), "software/x")) < 0.03


def test_forecasts_go_by_it():
    model = pc.Model.preset("llama3-8b")
    before = pc.predict(model, MACHINE, **ASK)
    ours = pc.learn([(before, 1.2 * before.iteration_time)] * 1)
    session = pc.Session(learned=ours)
    after = pc.predict(model, MACHINE, **ASK, session=session)
    gain = sum(
        change(ours, name) * share
        for name, (share, _) in before.learnable().items()
        if share > 0 and name in {f.name for f in ours.facts()}
    )
    assert after.learned_log == pytest.approx(gain)
    assert 1.03 < after.iteration_time / before.iteration_time < 1.2
    assert sum(after.breakdown().values()) == pytest.approx(after.iteration_time)
    assert after.simulated_time == pytest.approx(before.simulated_time)
    # A second look at the same run tells the same: what was learned is not learned twice.
    again = Evidence.of("again", "H100-SXM-80GB", after, 1.2 * before.iteration_time)
    assert again.log == pytest.approx(math.log(1.2))
    ranking = pc.rank(model, MACHINE, batch=16, space="tp=1|2,pp=1,mb=1,zero=1", session=session)
    for plan in ranking:
        alone = pc.predict(model, MACHINE, plan.strategy, batch=16, session=session)
        assert plan.iteration_time == alone.iteration_time


def test_intervals_narrow_with_runs():
    model = pc.Model.preset("llama3-8b")
    plans = ["tp=2,mb=1", "tp=4,mb=1", "tp=8,mb=1", "tp=1,zero=1,mb=1"]
    forecasts = [pc.predict(model, MACHINE, plan, batch=16) for plan in plans]

    def width(session):
        f = pc.predict(model, MACHINE, "tp=2,pp=2,mb=1", batch=16, session=session)
        return math.log(f.interval[1] / f.interval[0])

    ours = pc.learn([(f, f.iteration_time) for f in forecasts])
    assert len(ours.teaches(forecasts)) == 4
    assert all(0 <= gain < 0.5 for gain in ours.teaches(forecasts))
    one = pc.learn([(forecasts[0], forecasts[0].iteration_time)])
    assert width(pc.Session(learned=ours)) < width(pc.Session(learned=one))
    assert max(one.teaches(forecasts)) > max(ours.teaches(forecasts))


def test_files_come_back_and_say_when_they_were_changed(tmp_path):
    learned = Learned(tuple(run(f"r{i}", 0.1 * i) for i in range(3)))
    path = tmp_path / "ours.learned"
    learned.write(path)
    assert Learned.read(path) == learned
    text = json.loads(path.read_text())
    text["evidence"][0]["log"] = 0.5
    path.write_text(json.dumps(text))
    with pytest.raises(pc.InputError, match="checksum"):
        Learned.read(path)
    for wrong in ("{}", "[]", '{"format": "x", "version": 1, "evidence": []}', "3", "{"):
        path.write_text(wrong)
        with pytest.raises(pc.InputError, match=r"ours\.learned"):
            Learned.read(path)


def test_what_was_learned_on_other_accelerators_is_refused():
    learned = Learned((run("a", 0.1, gpu="A100-SXM-80GB"),))
    session = pc.Session(learned=learned)
    with pytest.raises(pc.InputError, match="about A100-SXM-80GB and the machine has H100"):
        pc.predict(pc.Model.preset("llama3-8b"), MACHINE, **ASK, session=session)
    with pytest.raises(pc.InputError, match="prior"):
        pc.Session(learned=learned, prior=False)
    with pytest.raises(pc.InputError, match="no runs"):
        pc.learn([])


ROWS = (
    "row_id,source,model,layers,hidden,heads,seq_len,vocab,machine,strategy,global_batch,dtype,"
    "software,iter_time_s\n"
    'one,us,gpt-small,4,1024,16,1024,32000,dgx-h100:1,"dp=8,mb=1",8,bf16,Megatron-LM 2024,0.05\n'
    'two,us,gpt-small,4,1024,16,1024,32000,dgx-h100:1,"dp=8,mb=2",16,bf16,Megatron-LM 2024,0.07\n'
)


def test_the_command_learns_merges_and_is_gone_by(cli, tmp_path):
    rows, file = tmp_path / "runs.csv", tmp_path / "ours.learned"
    rows.write_text(ROWS)
    code, out, _ = cli("learn", str(rows), "-o", str(file))
    assert code == 0 and "Learned from 2 runs" in out
    summary = cli.json("learn", "--merge", str(file))
    assert summary["runs"] == 2 and summary["gpus"] == ["H100-SXM-80GB"]
    ask = ["predict", "-m", "llama3-8b", "-s", "tp=2,mb=1", "--batch", "16"]
    with_it = cli.json(*ask, "-c", "dgx-h100:1", "--learned", str(file))
    without = cli.json(*ask, "-c", "dgx-h100:1")
    assert with_it["iteration_time_s"] != without["iteration_time_s"]
    ranked = ["rank", "-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "16"]
    ranked += ["--space", "tp=1|2|4,pp=1,mb=1,zero=1", "--learned", str(file)]
    code, text, _ = cli(*ranked)
    assert code == 0 and "would teach most" in text and "narrower" in text
    assert "nothing to learn from" in cli.error("learn")
    assert "is about H100" in cli.error(*ask, "-c", "dgx-a100-80g:1", "--learned", str(file))


def test_the_command_learns_from_a_log(cli, tmp_path):
    log = tmp_path / "run.log"
    log.write_text("iteration 1/9 | elapsed time per iteration (ms): 900.0 |\n" * 8)
    plan = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", "tp=2,mb=1", "--batch", "16"]
    summary = cli.json("learn", "--log", str(log), *plan)
    assert summary["runs"] == 1 and summary["gpus"] == ["H100-SXM-80GB"]
    forecast = cli.json("predict", *plan)
    faster = forecast["iteration_time_s"] > 0.9
    change = summary["factors"]["software/megatron-core"]["log"]
    assert (change < 0) == faster
    assert "-m and -c and -s" in cli.error("learn", "--log", str(log))
    assert "--log FILE" in cli.error("learn", *plan)


def held(name: str, kind: str, beyond: float, software: str = "torchtitan") -> MemoryEvidence:
    return MemoryEvidence(name, "H100-SXM-80GB", software, kind, beyond, 80.0 * 2**30)


def test_figures_of_memory_and_runs_that_ran_out_condition_it():
    def of(*evidence):
        (fact,) = Learned((), memory=evidence).memory_facts()
        return fact

    exact = of(*(held(f"r{i}", "figure", 0.04) for i in range(6)))
    assert 0.03 < exact.beyond < 0.04 and exact.after < 0.5 * exact.before
    # Of a run that ran out with room for a twentieth; of one that ran as forecast, nearly nothing.
    out = of(held("a", "ran out", 0.05))
    assert 0.02 < out.beyond < 0.08 and out.after < out.before
    assert abs(of(held("a", "ran out", -0.3)).beyond) < 1e-3  # forecast to
    assert abs(of(held("a", "ran", 0.4)).beyond) < 1e-3
    assert of(held("a", "ran", -0.03)).beyond < -0.01  # it ran although it was not to fit
    wrong = of(*(held(f"r{i}", "figure", 0.0) for i in range(8)), held("odd", "figure", 0.9))
    assert abs(wrong.beyond) < 0.01
    two = Learned((), memory=(held("a", "figure", 0.05), held("b", "figure", -0.05, "fsdp")))
    assert two.held("torchtitan") > 0 > two.held("fsdp") and two.held("megatron-core") == 0


def test_forecasts_of_memory_go_by_it_in_every_verdict():
    model, ask = pc.Model.preset("llama3-8b"), {"batch": 16, "profile": "torchtitan"}
    before = pc.predict(model, MACHINE, "zero=3,mb=1", **ask)
    ours = pc.learn(memory=[(before, before.peak_memory / 2**30 + 4.0)])
    session = pc.Session(learned=ours)
    after = pc.predict(model, MACHINE, "zero=3,mb=1", session=session, **ask)
    assert after.learned_memory == pytest.approx(
        ours.held("torchtitan") * before.memory_capacity, abs=2
    )
    assert after.peak_memory - before.peak_memory == pytest.approx(after.learned_memory, abs=2)
    assert after.iteration_time == before.iteration_time
    again = pc.learn(memory=[(after, before.peak_memory / 2**30 + 4.0)])
    assert again.held("torchtitan") == pytest.approx(ours.held("torchtitan"), rel=1e-6)
    # A run that ran out: what was said to fit by little is not said to fit any more.
    room = before.memory_capacity - before.peak_memory
    tight = Learned(
        (),
        memory=tuple(
            held(f"r{i}", "figure", room / before.memory_capacity + 0.05) for i in range(20)
        ),
    )
    session = pc.Session(learned=tight)
    assert not pc.predict(model, MACHINE, "zero=3,mb=1", session=session, **ask).fits
    (verdict,) = pc.fits(model, MACHINE, "zero=3,mb=1", session=session, **ask)
    assert not verdict.fits
    ranked = pc.rank(
        model, MACHINE, space="tp=1,pp=1,zero=3,mb=1,recompute=none", session=session, **ask
    )
    assert not len(ranked)
    # Of other software nothing was learned.
    other = pc.predict(model, MACHINE, "zero=3,mb=1", batch=16, profile="fsdp", session=session)
    assert other.learned_memory == 0
    with pytest.raises(pc.InputError, match="GiB"):
        pc.learn(memory=[(before, -1.0)])


def test_memory_is_in_files_and_files_of_before_are_read(tmp_path):
    learned = Learned((run("a", 0.1),), memory=(held("b", "ran out", 0.05),))
    path = tmp_path / "ours.learned"
    learned.write(path)
    again = Learned.read(path)
    assert again == learned and again.memory == learned.memory
    assert again.gpus == {"G", "H100-SXM-80GB"} and len(again) == 2
    assert len(again.merge(Learned((), memory=(held("b", "ran out", 0.05),))).memory) == 1
    text = json.loads(path.read_text())
    text["memory"][0]["beyond"] = -0.5
    path.write_text(json.dumps(text))
    with pytest.raises(pc.InputError, match="checksum"):
        Learned.read(path)
    # As version 1 wrote them.
    body = {"format": "plancast learned", "version": 1, "evidence": learned.to_dict()["evidence"]}
    del body["evidence"][0]["luck"]
    path.write_text(json.dumps({**body, "checksum": _checksum(body)}))
    assert Learned.read(path).facts() == Learned((run("a", 0.1),)).facts()


def test_a_log_tells_of_memory_too(cli, tmp_path):
    log = tmp_path / "run.log"
    plan = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", "zero=3,mb=1", "--batch", "16"]
    plan += ["--profile", "torchtitan"]
    log.write_text("step: 9  loss: 7.1  memory: 60.30GiB(76.0%)  tps: 6,000  tflops: 300\n" * 8)
    summary = cli.json("learn", "--log", str(log), *plan)
    assert (
        summary["memory"]["torchtitan"]["scale"] < summary["memory"]["torchtitan"]["scale_before"]
    )
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    code, text, _ = cli("learn", "--log", str(log), *plan)
    assert code == 0 and "GiB more than forecast" in text
