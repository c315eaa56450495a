"""Small models of every architecture against `transformers`, parameter for parameter."""

import json

import pytest
from plancast import Model
from plancast.models import hf
from small_models import FAMILIES, SEED, Draw, build

pytest.importorskip("torch")
pytest.importorskip("transformers")


def _count(model):
    numbers = sum(parameter.numel() for parameter in model.parameters())
    # Not trained by gradients, but part of the released models.
    return numbers + sum(
        buffer.numel() for name, buffer in model.named_buffers() if "correction_bias" in name
    )


@pytest.mark.parametrize("trial", range(6))
@pytest.mark.parametrize("model_type", FAMILIES)
def test_counts_equal_those_of_transformers(model_type, trial, tmp_path):
    fields = FAMILIES[model_type](Draw(SEED + trial))
    expected = _count(build(model_type, fields))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": model_type, **fields}))
    assert Model.from_hf(path).parameters == expected


@pytest.mark.parametrize("model_type", FAMILIES)
def test_what_transformers_writes_is_read(model_type, tmp_path):
    fields = FAMILIES[model_type](Draw(SEED))
    model = build(model_type, fields)
    model.config.save_pretrained(tmp_path)
    assert Model.from_hf(tmp_path).parameters == _count(model)


def test_every_architecture_is_compared():
    assert {name.removesuffix("_text") for name in FAMILIES} == set(hf.architectures())


def test_the_text_of_a_model_of_images_and_text(tmp_path):
    text = FAMILIES["gemma3_text"](Draw(SEED))
    expected = _count(build("gemma3_text", text))
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 8}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert Model.from_hf(tmp_path).parameters == expected


def test_bert_with_its_sentence_head(tmp_path):
    fields = FAMILIES["bert"](Draw(SEED))
    model = build("bert", fields, "BertForPreTraining")
    config = {"model_type": "bert", "architectures": ["BertForPreTraining"], **fields}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert Model.from_hf(tmp_path).parameters == _count(model)
