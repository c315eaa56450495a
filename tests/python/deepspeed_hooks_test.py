"""DeepSpeed's stage 3 has hooks around every module, which take its host longer than a small layer
takes the device."""

import plancast as pc
import pytest

HOOK_S = 270e-6  # strategy/data/deepspeed.textproto
PARAMETERS = 9  # of a layer: query, key and value, output, three of the feed-forward, two norms


def seconds(strategy: str, layers: int) -> float:
    """Of an iteration of so many layers, as simulated."""
    sizes = {"hidden": 256, "heads": 4, "ffn": 512, "vocab": 512, "seq": 16}
    model = pc.Model.from_config(
        name="tiny", layers=layers, mlp="swiglu", norm="rmsnorm", position="rope", **sizes
    )
    machine = pc.Machine.preset("dgx-a100-80g:1")
    session = pc.Session(prior=False)
    plan = f"dp=8,mb=1,{strategy}"
    forecast = pc.predict(model, machine, plan, batch=8, profile="deepspeed", session=session)
    return forecast.iteration_time


@pytest.mark.parametrize(("recompute", "passes"), [("none", 2), ("full", 3)])
def test_a_layer_takes_the_host_its_hooks(recompute, passes):
    def layer(zero: int) -> float:
        plan = f"zero={zero},recompute={recompute}"
        return (seconds(plan, 24) - seconds(plan, 8)) / 16

    hooks = layer(3) - layer(2)
    assert hooks == pytest.approx(passes * PARAMETERS * HOOK_S, rel=0.1)
