"""Notes and warnings of several plans."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.report.remarks import merged, remarks, setting


@pytest.fixture(scope="module")
def forecasts():
    session = pc.Session()
    model = pc.Model.preset("llama3-8b", seq=4096)

    def predict(machine, strategy="tp=8,sp,mb=1", **options):
        return pc.predict(
            model, pc.Machine.preset(machine), strategy, batch=16, session=session, **options
        )

    return predict


def said(forecasts):
    names = "ABCDEFG".__getitem__
    return [line.plain for line in remarks(forecasts, lambda at: "".join(map(names, at)))]


def test_what_all_say_is_said_once(forecasts):
    captured = {"cuda_graphs": True}  # else the host decides
    plans = [
        forecasts("dgx1-v100-32g", **captured),
        forecasts("dgx1-v100-32g", "tp=4,dp=2,sp,mb=1", **captured),
    ]
    guessed = [line for line in said(plans) if "extrapolated from other GPUs" in line]
    assert len(guessed) == 1
    assert guessed[0].startswith("warning: ")
    assert "A: " not in guessed[0]


def test_what_one_says_has_its_name(forecasts):
    lines = said([forecasts("dgx-h100"), forecasts("dgx1-v100-32g")])
    assert any(line.startswith("warning: B: ") and "V100" in line for line in lines)


def test_notes_are_said_as_well(forecasts):
    lines = said([forecasts("t4-pcie", "tp=4,mb=1")] * 2)
    assert sum(line.startswith("note: ") and "no bf16 units" in line for line in lines) == 1


def test_the_setting_names_batch_sequence_type_and_software(forecasts):
    assert setting(forecasts("dgx-h100", dtype="fp16")) == {
        "batch": "16",
        "sequence": "4,096",
        "type": "fp16",
        "profile": "megatron-core",
    }


def test_figures_of_like_remarks_are_joined_in_their_order():
    assert merged([["9 of 10 %"], ["100 of 10 %"], ["on H100"], ["on H200"]]) == [
        ("9 to 100 of 10 %", [0, 1]),
        ("on H100", [2]),
        ("on H200", [3]),
    ]


def test_two_like_remarks_of_one_plan_stay_two():
    assert merged([["stage 1 waits", "stage 2 waits"]]) == [
        ("stage 1 waits", [0]),
        ("stage 2 waits", [0]),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "of 4 hosts (arXiv:2412.19437, section 2.1.2), which is not simulated",
        "zero=3 (at most 1), 1,024, 2,5 and 10.",
        "`H100-SXM-80GB/gemm/bf16` of v1.2",
    ],
)
def test_what_one_plan_says_is_said_as_it_is(text):
    assert merged([[text]]) == [(text, [0])]
    assert merged([[text], [text], []]) == [(text, [0, 1])]
