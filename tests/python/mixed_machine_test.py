"""Machines of unlike hosts: written, put together, predicted, refused where one kind is needed."""

from __future__ import annotations

import pickle

import plancast as pc
import pytest

MIXED = "dgx-a100-80g:1+dgx-h100:2"


@pytest.fixture
def machine():
    return pc.Machine.preset(MIXED)


def test_a_list_of_presets_is_one_machine(machine):
    assert machine.name == MIXED
    assert machine.devices == 24
    assert machine.hosts == 3
    assert machine.gpus_per_host == 8
    assert machine.gpu == "A100-SXM-80GB+H100-SXM-80GB"
    assert [section.gpu for section in machine.sections] == ["A100-SXM-80GB", "H100-SXM-80GB"]
    assert [section.hosts for section in machine.sections] == [1, 2]
    assert str(machine) == "dgx-a100-80g:1x8+dgx-h100:2x8"
    assert "hosts 1-2, devices 8-23: 2 x 8 H100-SXM-80GB" in machine.describe()


def test_machines_are_put_together_with_plus(machine):
    a100, h100 = pc.Machine.preset("dgx-a100-80g"), pc.Machine.preset("dgx-h100")
    assert a100 + h100 + h100 == machine
    assert h100 + h100 == pc.Machine.preset("dgx-h100:2")
    assert (h100 + pc.Machine.preset("hgx4-h100")).gpus_per_host == 0
    with pytest.raises(TypeError):
        a100 + "dgx-h100"


def test_what_it_says_is_read_back(machine):
    assert pc.Machine.from_yaml(machine.to_yaml()) == machine
    assert pickle.loads(pickle.dumps(machine)) == machine
    with_links = pc.Machine.from_yaml(
        """
name: old and new
sections:
  - {preset: dgx-a100-80g, hosts: 1}
  - {gpu: H100-SXM-80GB, hosts: 2, intra_link: nvlink4, intra_gb_per_s: 450,
     nics_per_host: 8, nic_gbit_per_s: 400}
between_gbit_per_s: 800
link_overrides: [{link: nic, instance: 8, capacity_scale: 0.5}]
"""
    )
    assert with_links.name == "old and new"
    assert pc.Machine.from_dict(with_links.to_dict()) == with_links
    assert with_links.to_dict()["link_overrides"][0]["instance"] == 8


def test_forecasts_know_every_kind(machine, small):
    forecast = pc.predict(small, machine, "tp=8,mb=1", batch=24)
    slow = pc.predict(small, pc.Machine.preset("dgx-a100-80g:3"), "tp=8,mb=1", batch=24)
    fast = pc.predict(small, pc.Machine.preset("dgx-h100:3"), "tp=8,mb=1", batch=24)
    assert fast.iteration_time < forecast.iteration_time
    assert forecast.iteration_time == pytest.approx(slow.iteration_time, rel=0.1)
    assert len(forecast.memory) == 2
    assert forecast.memory.fullest in forecast.memory
    assert forecast.fits
    peaks = (8 * slow._core.peak_flops_per_gpu + 16 * fast._core.peak_flops_per_gpu) / 24
    assert forecast._core.peak_flops_per_gpu == pytest.approx(peaks)


def test_the_command_line_takes_lists_and_files(cli, small_file, tmp_path):
    said = cli.json("predict", "-m", small_file, "-c", MIXED, "-s", "tp=8,mb=1", "--batch", "24")
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "sections:\n  - {preset: dgx-a100-80g, hosts: 1}\n  - {preset: dgx-h100, hosts: 2}\n"
    )
    again = cli.json(
        "predict", "-m", small_file, "-c", str(path), "-s", "tp=8,mb=1", "--batch", "24"
    )
    assert again["iteration_time_s"] == said["iteration_time_s"]
    ranked = cli.json("rank", "-m", small_file, "-c", MIXED, "--batch", "24", "--top", "3")
    assert ranked


def test_collectives_over_both_go_at_the_pace_of_the_slower(machine):
    def time(where):
        return pc.collective(where, "all_reduce", sizes=[1 << 28]).rows[0].time_us

    assert time(machine) > time(pc.Machine.preset("dgx-h100:3"))


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (("import", "nccl", MIXED), "A topology as NCCL sees it"),
        (
            (
                "collective",
                "-c",
                MIXED,
                "--op",
                "all_reduce",
                "--bytes",
                "1M",
                "--fidelity",
                "chunks",
            ),
            "A collective chunk by chunk",
        ),
    ],
)
def test_what_needs_one_kind_of_host_says_so(cli, argv, what):
    error = cli.error(*argv)
    assert what in error
    assert "is for machines of equal hosts" in error
    assert "Take one of its sections" in error


def test_mistakes_in_lists_are_answered(cli, small_file):
    def error(machine):
        return cli.error("predict", "-m", small_file, "-c", machine, "-s", "tp=8,mb=1")

    assert "Did you mean" in error("dgx-a100-80g:1+dgx-h10:2")
    assert "does not say how many hosts" in error("dgx-a100-80g:1+dgx-h100")
    assert "is no machine" in error("dgx-a100-80g:1+")


def test_what_a_stage_always_holds_is_compared_with_its_own_gpus():
    # Only the first and the last stage hold a table; neither is on a P100, of 16 GB.
    machine = pc.Machine.preset("gcp-a3high-h100:1x1+deepbench-p100:1x2+lambda-b200:1x1")
    model = pc.Model.preset("llama3-8b-l8", seq=256)
    options = {"batch": 48, "profile": "megatron-sc21"}
    space = "dp=1,tp=1,pp=4,vpp=1,mb=1,recompute=none,zero=0,sp=0,ep=1,cp=1"
    (plan,) = pc.rank(model, machine, space=space, exhaustive=True, **options)
    alone = pc.predict(model, machine, plan.strategy, **options)
    assert max(one.device for one in alone.memory) > 16 << 30
    assert (plan.peak_memory, plan.fits) == (alone.peak_memory, True)
