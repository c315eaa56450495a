"""Modules of PyTorch against the presets: the same parameters, FLOPs and times."""

from __future__ import annotations

from importlib.util import find_spec

import plancast as pc
import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

MACHINE = pc.Machine.preset("dgx-h100:1")


def same_forecast(model, preset, *strategies, **plan):
    """As torch.compile runs both; Megatron's profiles know host times of Megatron's modules."""
    assert model.import_report.unknown == ()
    assert model.parameters == preset.parameters
    for strategy in strategies:
        ours, theirs = (
            pc.predict(
                which, MACHINE, pc.Strategy.parse(strategy), **{"profile": "compiled", **plan}
            )
            for which in (model, preset)
        )
        assert ours.iteration_time == pytest.approx(theirs.iteration_time, rel=0.02), strategy
        flops = [
            forecast.to_dict()["model_tflops_per_gpu"] * forecast.iteration_time
            for forecast in (ours, theirs)
        ]
        # A vocabulary that tp does not divide is padded in presets.
        assert flops[0] == pytest.approx(flops[1], rel=1e-3), strategy


def on_meta(make):
    import torch

    with torch.device("meta"):
        return make()


def ids(seq):
    import torch

    return torch.zeros(1, seq, dtype=torch.long, device="meta")


def llama(layers=32):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
        max_position_embeddings=8192,
        use_cache=False,
    )
    return on_meta(lambda: transformers.LlamaForCausalLM(config))


def test_llama3_8b():
    model = pc.Model.from_torch(llama(), {"input_ids": ids(8192), "labels": ids(8192)})
    assert "layers.* x 32" in str(model)
    preset = pc.Model.preset("llama3-8b")
    same_forecast(model, preset, "dp=8,mb=1", "tp=8,mb=1", "tp=8,sp,mb=1,recompute=selective")
    same_forecast(model, preset, "tp=2,pp=4,mb=1,accum=8,recompute=full")


def test_a_module_without_loss_gets_one():
    model = pc.Model.from_torch(llama(2), (ids(128),), seq=4096)
    assert "cross_entropy" in str(model)
    assert model.seq == 4096
    assert model.dims["vocab"] == 128256


def test_gpt2():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(use_cache=False)
    module = on_meta(lambda: transformers.GPT2LMHeadModel(config)).eval()
    model = pc.Model.from_torch(module, {"input_ids": ids(1024), "labels": ids(1024)})
    same_forecast(model, pc.Model.preset("gpt2"), "dp=8,mb=4")


def test_mixtral_8x7b(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.MixtralConfig(use_cache=False, max_position_embeddings=8192)
    module = on_meta(lambda: transformers.MixtralForCausalLM(config))
    model = pc.Model.from_torch(module, {"input_ids": ids(8192), "labels": ids(8192)})
    config.save_pretrained(tmp_path)
    preset = pc.Model.from_hf(tmp_path, seq=8192)
    assert model.parameters == 46_702_792_704
    same_forecast(model, preset, "dp=8,mb=1", "tp=8,mb=1", "tp=8,sp,mb=1")


def test_latent_attention_and_experts_of_deepseek_are_known():
    transformers = pytest.importorskip("transformers")
    config = transformers.DeepseekV3Config(num_hidden_layers=4, use_cache=False)
    module = on_meta(lambda: transformers.DeepseekV3ForCausalLM(config))
    model = pc.Model.from_torch(module, {"input_ids": ids(512), "labels": ids(512)})
    assert model.import_report.unknown == ()
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert "router_sigmoid" in str(model)


def test_bert_large():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    module = on_meta(lambda: transformers.BertForMaskedLM(config)).eval()
    model = pc.Model.from_torch(module, {"input_ids": ids(512), "labels": ids(512)})
    same_forecast(model, pc.Model.preset("bert-large"), "dp=8,mb=8", "tp=8,mb=8")


def test_resnet50():
    import torch
    from nets import ResNet

    module = on_meta(lambda: ResNet((3, 4, 6, 3)))
    images = torch.zeros(2, 3, 224, 224, device="meta")
    model = pc.Model.from_torch(module, (images,))
    preset = pc.Model.preset("resnet50")
    same_forecast(model, preset, "dp=8,mb=64")
    assert "bn_add_relu" in str(model)
