"""Types of what is stored and sent, from Python and the command line."""

import json

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.errors import InputError

MODEL = pc.Model.preset("llama3-8b")
MACHINE = pc.Machine.preset("dgx-h100", hosts=1)
PLAN = "zero=1,mb=1,recompute=full"


def predict(**types: object) -> pc.Forecast:
    return pc.predict(MODEL, MACHINE, PLAN, batch=8, **types)


def test_types_are_reported_and_change_the_state() -> None:
    base, asked = predict(), predict(grad_dtype="bf16", state_dtype="fp8+fp16", master="int16")
    assert base.chosen["state_dtype"] == "fp32" and base.chosen["master"] == "1"
    assert asked.chosen["state_dtype"] == "fp8+fp16" and asked.chosen["master"] == "int16"
    assert asked.chosen["grad_dtype"] == "bf16" and asked.chosen["gather_dtype"] == "bf16"
    wide, narrow = base.memory[0], asked.memory[0]
    assert narrow.gradients * 2 == wide.gradients
    assert narrow.optimizer * 12 == wide.optimizer * 5
    assert asked.breakdown()["optimizer"] < base.breakdown()["optimizer"]


def test_no_master_copy() -> None:
    assert predict(master=False).memory[0].optimizer * 12 == predict().memory[0].optimizer * 8


def test_a_type_that_is_not_said_changes_nothing() -> None:
    assert (
        predict(grad_dtype=None, master=None).to_dict()["memory"] == predict().to_dict()["memory"]
    )


def test_eight_bit_gathers_are_half_as_long() -> None:
    asked = pc.predict(MODEL, MACHINE, PLAN + ",overlap=none", batch=8, gather_dtype="int8")
    base = pc.predict(MODEL, MACHINE, PLAN + ",overlap=none", batch=8)
    assert asked.breakdown()["exposed_dp"] < base.breakdown()["exposed_dp"]


def test_optimizers_keep_read_and_write_what_they_do() -> None:
    base = predict()
    kept = {"sgd": 4, "sgd-momentum": 8, "adagrad": 8, "rmsprop": 8, "lion": 8, "lamb": 12}
    for name, each in kept.items():
        asked = predict(optimizer_type=name)
        assert asked.chosen["optimizer_type"] == name and asked.chosen["optimizer"] == "at-end"
        assert asked.memory[0].optimizer * 12 == base.memory[0].optimizer * each
        assert asked.memory[0].gradients == base.memory[0].gradients
        longer = asked.breakdown()["optimizer"] - base.breakdown()["optimizer"]
        assert longer > 0 if name == "lamb" else longer < 0
    assert predict(optimizer_type="adamw").iteration_time == base.iteration_time
    assert base.chosen["optimizer_type"] == "adam" and "state_dtype" not in (
        predict(optimizer_type="sgd").chosen
    )


def test_muon_multiplies_the_matrices_of_layers() -> None:
    base, muon = predict(), predict(optimizer_type="muon")
    # All but embedding and head keep one number fewer.
    matrices = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096)
    assert base.memory[0].optimizer - muon.memory[0].optimizer == matrices // 8 * 4

    def step(plan: str) -> float:
        forecast = pc.predict(MODEL, MACHINE, plan, batch=8, optimizer_type="muon")
        return forecast.breakdown()["optimizer"]

    whole, dealt = step("zero=0,mb=1,recompute=full"), step(PLAN)
    flops = sum(
        count * 5 * (4 * r * r * c + 2 * r**3)
        for count, r, c in ((2, 4096, 4096), (2, 1024, 4096), (3, 4096, 14336))
    )
    assert 32 * flops / 989e12 < whole < 3 * 32 * flops / 989e12
    assert whole / 8 < dealt < whole / 6
    # Parts of matrices cost less than an eighth of the whole.
    assert step("tp=8,mb=1,recompute=full") < whole / 8


def test_muon_runs_on_the_device_and_on_whole_matrices() -> None:
    with pytest.raises(InputError, match="multiplies matrices"):
        pc.predict(MODEL, MACHINE, PLAN + ",offload=optimizer", batch=8, optimizer_type="muon")
    with pytest.raises(InputError, match="whole matrices"):
        pc.predict(
            MODEL, MACHINE, "mb=1,optimizer=in-backward,overlap=grad", batch=8,
            optimizer_type="muon",
        )  # fmt: skip
    tree = pc.Strategy.from_yaml(
        "plan: zero=1,mb=1\nnodes:\n  layers: {home: {state: shard(dp)+host}}\n"
    )
    with pytest.raises(InputError, match="which takes the device"):
        pc.predict(MODEL, MACHINE, tree, batch=8, optimizer_type="muon")


def test_lamb_exchanges_norms_of_shards_only() -> None:
    def exchanges(plan: str) -> int:
        forecast = pc.predict(MODEL, MACHINE, plan, batch=8, optimizer_type="lamb", timeline=True)
        return sum("lamb norms" in span.name and "all_reduce" in span.name
                   for span in forecast.timeline())  # fmt: skip

    assert exchanges("zero=0,mb=1,recompute=full") == 0
    assert exchanges(PLAN) > 0


def test_the_optimizer_is_no_word_of_when() -> None:
    with pytest.raises(InputError, match=r"in the strategy: `optimizer=in-backward`"):
        predict(optimizer_type="in-backward")
    with pytest.raises(InputError, match=r"sgd keeps nothing of a weight"):
        predict(optimizer_type="sgd", state_dtype="bf16")
    with pytest.raises(InputError, match=r"--optimizer-type sgd"):
        pc.predict(MODEL, MACHINE, PLAN + ",optimizer=sgd", batch=8)


def test_attention_in_eight_bits_has_kernels_of_its_own() -> None:
    def forecast(**types: object) -> pc.Forecast:
        machine = pc.Machine.open("gb200-nvl72:1")
        return pc.predict(MODEL, machine, "zero=1,mb=1", batch=4, dtype="mxfp8", **types)

    base, asked = forecast(), forecast(attention_dtype="fp8")
    assert asked.chosen["attention_dtype"] == "fp8" and "attention_dtype" not in base.chosen
    assert asked.iteration_time < base.iteration_time
    assert forecast(attention_dtype="bf16").iteration_time == base.iteration_time
    whole = pc.predict(MODEL, MACHINE, "mb=1,attn=unfused", batch=8, attention_dtype="fp8")
    assert any("attention_dtype has no effect" in note for note in whole.notes)
    with pytest.raises(InputError, match=r"`attention_dtype` cannot be `nvfp4`"):
        forecast(attention_dtype="nvfp4")


def test_errors_name_the_known() -> None:
    with pytest.raises(InputError, match=r"`state_dtype` cannot be `int9`. Did you mean `int8`"):
        predict(state_dtype="int9")
    with pytest.raises(InputError, match=r"no argument `grad_type`.*Did you mean `grad_dtype`"):
        predict(grad_type="bf16")


def test_every_command_with_a_plan_takes_types(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "8"]
    types = ["--state-dtype", "int8", "--grad-dtype", "bf16", "--json"]
    assert main(["predict", *plan, "-s", PLAN, *types]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"]["state_dtype"] == "int8"
    assert main(["compare", *plan, "-s", PLAN, "-s", "zero=0,mb=1", *types]) == 0
    for forecast in json.loads(capsys.readouterr().out)["plans"]:
        assert forecast["chosen"]["grad_dtype"] == "bf16"
    space = "tp=8,pp=1,mb=1,recompute=none,zero=1"
    assert main(["rank", *plan, "--space", space, *types]) == 0
    assert json.loads(capsys.readouterr().out)["plans"][0]["chosen"]["state_dtype"] == "int8"
    assert main(["compile", *plan, "-s", PLAN, *types]) == 0
    assert "gradients 16060522496" in json.loads(capsys.readouterr().out)["lower"]
