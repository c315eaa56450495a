"""Mixtures of experts from Python: ep and etp, by hand, unlike loads, ranking."""

import plancast as pc
import pytest

MODEL = pc.Model.from_config(
    name="tiny-moe",
    layers=4,
    hidden=2048,
    heads=16,
    experts=8,
    topk=2,
    moe_ffn=4096,
    vocab=1024,
    seq=4096,
    mlp="swiglu",
    norm="rmsnorm",
    position="rope",
)
MACHINE = pc.Machine.preset("dgx-h100", hosts=2)


def predict(plan: pc.Strategy | str) -> pc.Forecast:
    strategy = pc.Strategy.parse(plan) if isinstance(plan, str) else plan
    # Captured, so that what is sent decides and not the host.
    return pc.predict(MODEL, MACHINE, strategy, batch=64, cuda_graphs=True)


@pytest.mark.parametrize(
    "plan", ["ep=8", "ep=2", "tp=2,sp,ep=8", "tp=2,sp,ep=8,etp=1", "tp=4,sp,ep=2,etp=1"]
)
def test_exchanges_are_expert_parallelism(plan: str) -> None:
    forecast = predict(plan)
    assert forecast.breakdown()["exposed_ep"] > 0
    assert sum(forecast.breakdown().values()) == pytest.approx(forecast.iteration_time)
    assert predict("tp=2,sp").breakdown()["exposed_ep"] == 0


def test_experts_are_held_once_for_each_copy() -> None:
    whole, eighth = (predict(plan).memory[0].parameters for plan in ("ep=1", "ep=8"))
    experts = 2 * MODEL.layers * 8 * 3 * 2048 * 4096
    assert whole - eighth == experts * 7 // 8


def test_by_hand_is_what_the_short_form_says() -> None:
    tree = pc.Strategy.parse("ep=4")
    tree[""].split(ep=[])
    tree["layers.*.mlp.experts"].split(ep="experts")
    assert predict(tree).iteration_time == predict("ep=4").iteration_time
    assert "split ep: experts" in tree.explain("layers.*.mlp.experts.fc1")


def test_unlike_loads_take_longer() -> None:
    even = predict("ep=8")
    skewed = predict(pc.Strategy.parse("ep=8").load("experts", [9, 1, 1, 1, 1, 1, 1, 1]))
    assert skewed.iteration_time > even.iteration_time
    assert predict(pc.Strategy.parse("ep=8").load("experts", [2] * 8)).iteration_time == (
        even.iteration_time
    )
    with pytest.raises(pc.InputError, match="`load` of `experts` lists 2 numbers"):
        predict(pc.Strategy.parse("ep=8").load("experts", [1, 2]))


def test_tokens_come_in_pieces_beside_products() -> None:
    def exposed(pieces: int) -> float:
        tree = pc.Strategy.parse("dp=16,ep=8,mb=1")
        for product in ("fc1", "fc2") if pieces else ():
            tree[f"layers.*.mlp.experts.{product}"].communicate(pieces={"r": pieces})
        return predict(tree).breakdown()["exposed_ep"]

    assert exposed(4) < exposed(2) < exposed(0)
    assert exposed(4) > exposed(0) / 4  # what comes first, and what goes last


def _beside(profile: str) -> float:
    """Seconds of the first token exchange during which a shared expert runs."""
    model = pc.Model.from_config(
        name="tiny-shared",
        layers=2,
        hidden=2048,
        heads=16,
        experts=8,
        topk=2,
        moe_ffn=4096,
        shared_experts=1,
        vocab=1024,
        seq=4096,
        mlp="swiglu",
        norm="rmsnorm",
        position="rope",
    )
    plan = pc.Strategy.parse("dp=16,ep=8,mb=1")
    forecast = pc.predict(
        model, MACHINE, plan, batch=16, profile=profile, timeline=True, cuda_graphs=True
    )
    spans = [(p.name, p.start_s, p.end_s) for p in forecast.timeline()]
    sent = next(s for s in spans if s[0] == "all_to_all mlp.dispatch.d")
    shared = [s for s in spans if s[0] == "mlp.shared.fc1"]
    return sum(max(0, min(e, sent[2]) - max(b, sent[1])) for _, b, e in shared)


def test_shared_experts_run_beside_the_exchange_where_software_does_so() -> None:
    assert _beside("megatron-bridge") > 0
    assert _beside("megatron-bridge-flex") == _beside("megatron-core") == 0


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("ep=3", "ep=3 does not divide the 8 experts. Sizes that work: 1, 2, 4, 8."),
        ("tp=8,ep=4", "With etp=8, ep can be 1, 2."),
    ],
)
def test_what_does_not_fit_is_an_error(plan: str, message: str) -> None:
    with pytest.raises(pc.InputError, match=message):
        predict(plan)


@pytest.mark.parametrize("ep", [",ep=1|2|8", ",ep=1|2|4|8", ",ep=*", ""])
def test_spaces_have_ep(ep: str) -> None:
    space = f"tp=1,pp=1,mb=1,zero=1,recompute=none{ep}"
    ranking = pc.rank(MODEL, MACHINE, space=space, batch=64)
    sizes = {plan.strategy.partition("ep=")[2][:1] or "1" for plan in ranking}
    assert sizes == ({"1", "2", "8"} if ep == ",ep=1|2|8" else {"1", "2", "4", "8"})


def test_groups_of_experts_send_a_token_to_fewer_hosts():
    """DeepSeek-V3's four groups of eight: 3.60 hosts of eight get a token, of all experts 5.25."""
    fields = {
        "layers": 2, "hidden": 2048, "heads": 16, "ffn": 1024, "vocab": 4096, "seq": 4096,
        "mlp": "swiglu", "norm": "rmsnorm", "position": "rope", "experts": 256, "topk": 8,
        "moe_ffn": 512,
    }  # fmt: skip

    def exposed(profile, **groups):
        model = pc.Model.from_config(**fields, **groups)
        hosts = pc.Machine.preset("dgx-h100", hosts=8)
        plan = pc.predict(model, hosts, "dp=64,ep=64,mb=1", batch=64, profile=profile)
        return plan.breakdown()["exposed_ep"]

    grouped = {"expert_groups": 8, "groups_per_token": 4}
    once = exposed("megatron-core-flex")
    ratio = exposed("megatron-core-flex", **grouped) / once
    assert 3.5995 / 5.2513 - 0.01 < ratio < 0.85  # NICs bound it; latency stays
    all_groups = {"expert_groups": 8, "groups_per_token": 8}
    assert exposed("megatron-core-flex", **all_groups) == once
    # Software that sends each copy by itself does not care.
    assert exposed("megatron-core", **grouped) == exposed("megatron-core")
