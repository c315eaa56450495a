"""Some random sessions of users; `make soak` runs more."""

from __future__ import annotations

import re
from collections import Counter

import plancast as pc
import pytest

from tests.fuzz import children
from tests.fuzz.random_session import Drawn, draw
from tests.fuzz.sessions import fault_of
from tests.fuzz.small_models import model_of

CASES = 24


def test_random_sessions_keep_all_laws():
    faults: list[str] = []
    seeds = list(range(5000, 5000 + CASES))
    outcomes = children.run(seeds, lambda seed: fault_of(draw(seed)), draw, faults.append)
    assert not faults, "\n".join(faults)
    assert outcomes["good"] > CASES / 3
    assert outcomes["plans"] > 10 * CASES


def test_a_number_always_draws_the_same_session():
    assert str(draw(7)) == str(draw(7))
    assert len({str(draw(seed)) for seed in range(30)}) == 30


def test_every_kind_of_session_is_drawn():
    drawn = [draw(seed) for seed in range(120)]
    kinds = Counter(one.kind for one in drawn)
    assert set(kinds) == {"small", "layers", "zoo", "graph", "import", "catalogue"}
    assert {one.damage for one in drawn} == {"", "device", "link", "figures", "both"}
    assert any("sections" in one.machine for one in drawn)
    assert any(isinstance(one.strategy, str) for one in drawn)
    assert any(one.told for one in drawn)


def reordered() -> list[Drawn]:
    """Named cases: other collectives run side by side (0.2 %); NCCL takes its ring (4e-6)."""
    damaged = pc.Machine.open("deepbench-m40:2x2").to_dict() | {
        "device_overrides": [{"device": 2, "compute_scale": 0.5}],
        "link_overrides": [{"link": "pcie", "instance": 0, "capacity_scale": 0.5}],
    }
    on = {"part1.layers[-5].s3.drop": {"on": {"dp": 0}}}
    return [
        Drawn(
            6034, "gpt-oss-20b-l6", "layers", pc.Machine.open("whitefiber-h200:2x4").to_dict(), "",
            "tp=2,mb=1,ep=4,zero=1,overlap=none,bucket=25MB",
            {"batch": 8, "profile": "composer-fp32-reduce", "dtype": "bf16"}, [],
            "tp=1|2|4,pp=1,vpp=1,mb=1,recompute=none|full,zero=0,sp=1,cp=1,ep=1",
        ),
        Drawn(
            6049, "random-graph-3544", "graph", damaged, "both",
            {"plan": "dp=4,mb=2,zero=3,sync=last,overlap=none", "nodes": on},
            {"batch": 40, "profile": "megatron-sc21", "dtype": "bf16"},
            ["--jitter", "0.1", "--samples", "3", "--workers", "1"],
            "tp=1|2,pp=1,vpp=1|2,mb=1|2,recompute=none,zero=0,sp=0,cp=1,ep=1",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("case", [0, 1])
def test_a_network_of_twice_the_rate_may_reorder_what_runs_beside_it(case):
    said = fault_of(reordered()[case])
    assert said is not None
    assert re.fullmatch(r"\+\d+ ", said), said


def test_a_faster_network_may_send_twice_as_much_over_a_link_that_is_slow():
    """The named case: NCCL takes LL, which sends each byte twice, and knows of no slow link."""
    fields = pc.Machine.open("mi100-pcie:2x2").to_dict()
    fields["link_overrides"] = [{"link": "pcie", "instance": 0, "capacity_scale": 0.01}]

    def waits_s(rate: float) -> float:
        forecast = pc.predict(
            model_of("random-graph-8643"),
            pc.Machine.from_dict({**fields, "nic_gbit_per_s": rate}), "dp=4,mb=1,recompute=full",
            batch=4, profile="layouts-2023-flash1", grad_dtype="bf16",
        )  # fmt: skip
        return forecast.breakdown()["exposed_dp"]

    assert 1 < waits_s(200) / waits_s(100) < 2


def test_faster_links_may_have_nccl_take_a_slower_protocol():
    """The named case: V100s of twice the NVLinks, where NCCL goes from LL to Simple earlier."""
    fields = pc.Machine.open("jeanzay-v100-16g:1").to_dict()

    def row(rate: float) -> tuple[str, float]:
        machine = pc.Machine.from_dict({**fields, "intra_gb_per_s": rate})
        (found,) = pc.collective(machine, "all_reduce", gpus=2, sizes=[393_216]).rows
        return found.protocol, found.time_us

    (before, slow_us), (after, fast_us) = row(150), row(300)
    assert (before, after) == ("LL", "Simple")
    assert 1 < fast_us / slow_us < 1.6


def test_interfaces_that_links_inside_hosts_outrun_slow_no_kernels():
    """Twice the network behind the same NVLink: what a gather moves stays what it is."""
    fields = pc.Machine.open("oci-h100:2").to_dict()

    def seconds(rate: float) -> float:
        machine = pc.Machine.from_dict({**fields, "nic_gbit_per_s": rate})
        model = pc.Model.preset("gemma3-12b", seq=256)
        options = {"batch": 80, "profile": "composer-fp32-reduce", "dtype": "bf16"}
        return pc.predict(model, machine, "zero=3,mb=1", **options).iteration_time

    assert seconds(800) / seconds(400) < 1.003  # 1.018 with the rate of the interfaces


def test_what_fits_also_fits_in_more():
    """Segments that are given back only when the device is full lie otherwise with more memory."""
    fields = pc.Machine.open("dgx-h200:1x2").to_dict()
    model, plan = pc.Model.preset("gpt2", seq=256), "mb=1,zero=3,recompute=every:2,attn=unfused"
    verdicts = []
    for size in range(3_700_000_000, 3_810_000_000, 10_000_000):
        gpu = {**fields["gpu"], "memory_gb": size / 2**30, "usable_gb": size / 2**30}
        machine = pc.Machine.from_dict({**fields, "gpu": gpu})
        options = {"batch": 10, "profile": "megatron-2021", "dtype": "mxfp8"}
        forecast = pc.predict(model, machine, plan, **options)
        (fit,) = pc.fits(model, machine, plan, **options)
        assert (fit.fits, fit.device) == (forecast.fits, forecast.peak_memory)
        verdicts.append(forecast.fits)
    assert verdicts == sorted(verdicts)
    assert set(verdicts) == {False, True}


def test_a_plan_near_the_capacity_takes_as_much_in_a_ranking_as_alone():
    """What it always holds, with a share for fragments, is more than where its blocks lie."""
    fields = pc.Machine.open("t4-host-bridge:1x4").to_dict()
    fields["gpu"] = {k: v for k, v in fields["gpu"].items() if k != "usable_gb"}
    fields["gpu"]["memory_gb"] = 24
    model, machine = pc.Model.preset("gpt3-1.3b", seq=256), pc.Machine.from_dict(fields)
    options = {"batch": 16, "profile": "fsdp", "dtype": "fp8"}
    space = "tp=1,pp=1,vpp=1,mb=1,recompute=full,zero=0,sp=0,cp=1,ep=1"
    plan = pc.rank(model, machine, space=space, **options)[0]
    alone = pc.predict(model, machine, plan.strategy, **options)
    assert plan.peak_memory == alone.peak_memory == max(entry.device for entry in plan.memory)


def test_a_gpu_of_twice_the_flops_may_borrow_from_slower_kernels():
    """The named case of a better machine that is slower: L40S has no products of its own. With half
    of its FLOPs an SM it is like RTX 4090, whose products reach nearly all of their peak.
    """
    fields = pc.Machine.open("l40s-pcie:2").to_dict()
    rates = [name for name in fields["gpu"] if name.endswith("_tflops")]

    def compute_s(factor: float) -> float:
        machine = {**fields, "gpu": dict(fields["gpu"])}
        for name in rates:
            machine["gpu"][name] *= factor
        forecast = pc.predict(
            model_of("gpt-oss-20b-l6"), pc.Machine.from_dict(machine), "dp=8,pp=2,mb=1", batch=80,
            profile="nemo-2024-dropout",
        )  # fmt: skip
        assert forecast.knowledge()["extrapolated"] > 0.5
        return forecast.breakdown()["compute"]

    assert 1 < compute_s(2) / compute_s(1) < 1.1
    assert 0.9 < compute_s(0.5) / compute_s(1) < 2
