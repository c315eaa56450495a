"""Architectures of transformers: every parameter is found, every op is known."""

from __future__ import annotations

from importlib.util import find_spec

import plancast as pc
import pytest

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="torch and transformers are not installed",
)

SMALL = {"num_hidden_layers": 2, "use_cache": False}
TEXT, IMAGE = ("input_ids", "labels"), ("pixel_values",)

CASES = {
    "GPTNeoXForCausalLM": (TEXT, SMALL, "qkv_linear_bias"),
    "Phi3ForCausalLM": (TEXT, {**SMALL, "pad_token_id": 0}, "gated_linear"),
    "Gemma2ForCausalLM": (TEXT, SMALL, "scores_softcap"),
    "MistralForCausalLM": (TEXT, SMALL, "attention("),
    "Qwen2ForCausalLM": (TEXT, SMALL, "qkv_linear_bias"),
    "Qwen3MoeForCausalLM": (TEXT, SMALL, "moe_dispatch"),
    "OPTForCausalLM": (TEXT, SMALL, "relu_nd"),
    "MambaForCausalLM": (TEXT, {"num_hidden_layers": 1, "use_cache": False}, "conv1d_depthwise"),
    "ViTForImageClassification": (IMAGE, {"num_hidden_layers": 2}, "attention_full"),
    "SwinForImageClassification": (IMAGE, {"depths": [2, 2], "num_heads": [3, 6]}, "scores"),
    "ConvNextForImageClassification": (IMAGE, {"depths": [2, 2, 2, 2]}, "conv2d_depthwise"),
}


def module_of(name, options):
    import torch
    import transformers

    model_class = getattr(transformers, name)
    with torch.device("meta"):
        return model_class(model_class.config_class(**options)).eval()


def example(names):
    import torch

    if names == IMAGE:
        return {"pixel_values": torch.zeros(1, 3, 224, 224, device="meta")}
    ids = torch.zeros(1, 32, dtype=torch.long, device="meta")
    return dict.fromkeys(names, ids)


@pytest.mark.parametrize("name", sorted(CASES))
def test_architecture(name):
    inputs, options, rule = CASES[name]
    module = module_of(name, options)
    model = pc.Model.from_torch(module, example(inputs))
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert model.import_report.unknown == ()
    assert rule in str(model)
    forecast = pc.predict(model, pc.Machine.preset("dgx-h100:1x2"), pc.Strategy.parse("dp=2,mb=1"))
    assert forecast.iteration_time > 0


def test_an_encoder_reaches_all_layers_of_the_decoder():
    import torch

    options = {"num_layers": 3, "decoder_start_token_id": 0, "use_cache": False}
    module = module_of("T5ForConditionalGeneration", options)
    ids = torch.zeros(1, 32, dtype=torch.long, device="meta")
    model = pc.Model.from_torch(module, {"input_ids": ids, "labels": ids[:, :16]})
    assert model.import_report.unknown == ()
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
