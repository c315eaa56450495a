"""Plans beyond what is simulated are refused in words, at once."""

from __future__ import annotations

import plancast as pc
import pytest


@pytest.mark.parametrize(
    ("model", "machine", "strategy", "batch", "words"),
    [
        ("gpt-1t", "t4-pcie:1x1", "mb=1", 15_000, "more than 26 days"),
        ("mixtral-8x7b", "dgx1-v100-16g:1", "tp=2,mb=4", 1_000_000, "more than 26 days"),
        ("llama3-405b", "dgx-h100:1x1", "mb=1000000000", 1_000_000_000, "smaller mb"),
        ("gpt2", "dgx-h100:1x1", "mb=1", 1_000_000, "micro-batches times pp times vpp can be"),
        ("gpt2", "dgx-h100:1x2", "pp=2,vpp=2", 100_000, "Take a larger mb"),
    ],
)
def test_what_cannot_be_counted_is_refused(model, machine, strategy, batch, words):
    with pytest.raises(pc.InputError, match=words):
        pc.predict(pc.Model.preset(model), pc.Machine.preset(machine), strategy, batch=batch)


def test_a_huge_micro_batch_has_sound_figures():
    model, machine = pc.Model.preset("gpt2"), pc.Machine.preset("dgx-h100:1x1")
    forecast = pc.predict(model, machine, "mb=100000", batch=100_000)
    assert sum(forecast.breakdown().values()) == pytest.approx(forecast.iteration_time)
    assert min(forecast.breakdown().values()) >= 0
    assert 0 < forecast.mfu < 1


@pytest.mark.parametrize("strategy", ["mb=1", "tp=2,sp,zero=3,recompute=full", "pp=4,vpp=3"])
def test_gradients_of_what_ends_inside_a_model_have_memory(strategy):
    """T5's relative bias and the encoder's output end in its heads."""
    forecast = pc.predict(
        pc.Model.preset("t5-base"), pc.Machine.preset("dgx-h100:1"), strategy, batch=64,
        timeline=True,
    )  # fmt: skip
    for entry in forecast.memory:
        course = forecast.memory.timeline(entry.device_class)
        assert entry.activations >= 0
        assert min(course.kinds["activations"]) >= 0
        assert course.kinds["activations"][-1] == 0
