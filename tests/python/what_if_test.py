"""What-if, randomness and several jobs, from Python and the command line."""

from __future__ import annotations

import json

import plancast as pc
import pytest
from plancast import randomness
from plancast.cli.main import main

PLAN = "tp=4,pp=2,mb=1"


@pytest.fixture(scope="module")
def nouns():
    return pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-a100-80g", hosts=2)


def test_what_if_is_a_prediction_with_changes(nouns):
    answer = pc.what_if(*nouns, PLAN, "nic=2x,op:attn=free", batch=16)
    assert answer.before.iteration_time == pc.predict(*nouns, PLAN, batch=16).iteration_time
    assert answer.after.iteration_time < answer.before.iteration_time
    assert answer.change < 0 < answer.speedup
    parts = answer.after.breakdown()
    assert sum(parts.values()) == pytest.approx(answer.after.iteration_time)


def test_convolutions_are_asked_about_by_their_name():
    net, machine = pc.Model.preset("resnet50"), pc.Machine.preset("dgx-a100-80g", hosts=1)
    ranked = pc.sensitivities(net, machine, "dp=8,mb=64", batch=512)
    changes = [row.change for row in ranked]
    assert "kernel:convolution=2x" in changes
    faster = pc.what_if(net, machine, "dp=8,mb=64", "kernel:convolution=2x", batch=512)
    assert faster.speedup > 1


def test_sensitivities_are_ranked(nouns):
    ranked = pc.sensitivities(*nouns, PLAN, batch=16)
    gains = [row.gain for row in ranked]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0
    few = pc.sensitivities(*nouns, PLAN, batch=16, candidates="nic=2x,launch=free")
    assert {row.change for row in few} == {"nic=2x", "launch=free"}


def test_hosts_that_launch_more_slowly_are_a_what_if():
    model = pc.Model.preset("mpt-125m")
    usual = pc.Machine.preset("dgx-h100", hosts=1)
    slow = pc.Machine.from_yaml("preset: dgx-h100\nhosts: 1\nhost_launch_factor: 2\n")
    assert pc.Machine.from_yaml(slow.to_yaml()) == slow != usual
    plan, batch = "dp=8,mb=1", 8
    asked = pc.predict(model, usual, plan, batch=batch, what_if="launch=50%")
    found = pc.predict(model, slow, plan, batch=batch)
    assert found.iteration_time == asked.iteration_time
    assert found.iteration_time > 1.3 * pc.predict(model, usual, plan, batch=batch).iteration_time


def test_unknown_names_are_errors(nouns):
    with pytest.raises(pc.InputError, match="Did you mean `nic`"):
        pc.predict(*nouns, PLAN, batch=16, what_if="nik=2x")


def test_the_same_seed_gives_the_same_digits(nouns):
    def drawn(**how):
        random = pc.Randomness(jitter=0.02, samples=4, **how)
        return pc.predict(*nouns, PLAN, batch=16, randomness=random).distribution

    one, again, other = drawn(seed=7), drawn(seed=7, workers=2), drawn(seed=8)
    assert one == again
    assert one.samples_s != other.samples_s
    assert one.p5_s <= one.p50_s <= one.p95_s


def test_nothing_random_is_nothing_drawn(nouns):
    assert pc.predict(*nouns, PLAN, batch=16).distribution is None
    never = pc.Randomness(stragglers=(0.0, 0.5), samples=3)
    sure = pc.predict(*nouns, PLAN, batch=16, randomness=never)
    assert set(sure.distribution.samples_s) == {sure.iteration_time}
    with pytest.raises(pc.InputError, match="need something random"):
        pc.Randomness(samples=3)
    with pytest.raises(pc.InputError, match="Write PROBABILITY:SPEED"):
        randomness.parse_stragglers("often")


def job(model, name, placement, **how):
    return pc.TrainingJob(
        name=name, model=model, strategy="tp=4,mb=1", placement=placement, batch=16, **how
    )


def test_jobs_share_interfaces(nouns):
    model, _ = nouns
    # Two GPUs of a DGX A100 have two interfaces between them; here one host has one.
    machine = pc.Machine.from_yaml("preset: dgx-a100-80g\nhosts: 2\nnics_per_host: 1")
    apart = pc.predict_jobs([job(model, "a", "hosts 0"), job(model, "b", "hosts 1")], machine)
    assert [row.slowdown for row in apart] == [1.0, 1.0]
    assert apart[0].shares_links_with == ()
    one, two = pc.predict_jobs(
        [job(model, "a", "gpus 0-3"), job(model, "b", "gpus 4-7", arrival=0.01)], machine
    )
    assert one.slowdown > 1.0
    assert one.shares_links_with == ("b",)
    assert two.forecast.devices == 8
    assert two.arrival == 0.01
    parts = one.forecast.breakdown()
    assert sum(parts.values()) == pytest.approx(one.forecast.iteration_time)


def test_overlapping_jobs_are_refused(nouns):
    model, machine = nouns
    with pytest.raises(pc.InputError, match="both placed on device 4"):
        pc.predict_jobs([job(model, "a", "hosts 0"), job(model, "b", "devices 4-11")], machine)


def test_the_command_line_answers_too(capsys):
    plan = ["-m", "llama3-8b", "-c", "dgx-a100-80g:1", "-s", "tp=8,mb=1", "--batch", "4"]
    questions = ["--what-if", "compute=2x", "--sensitivities", "--stragglers", "10%:0.5"]
    numbers = ["--samples", "3", "--seed", "7"]
    assert main(["predict", *plan, *questions, *numbers, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["distribution"]["seed"] == 7
    assert len(answer["distribution"]["samples_s"]) == 3
    assert answer["what_if"]["iteration_time_s_after"] == answer["iteration_time_s"]
    assert answer["what_if"]["speedup"] > 1
    assert answer["sensitivities"][0]["gain"] > 0
    assert main(["predict", *plan, *questions, *numbers]) == 0
    shown = capsys.readouterr().out
    assert "seed 7" in shown
    assert "What helps most" in shown
