"""Configurations of Hugging Face that the zoo reads."""

from __future__ import annotations

import json

import plancast as pc
import pytest

# google/flan-t5-base, its fields that matter.
FLAN = {
    "model_type": "t5", "d_ff": 2048, "d_kv": 64, "d_model": 768, "num_heads": 12,
    "num_layers": 12, "num_decoder_layers": 12, "feed_forward_proj": "gated-gelu",
    "relative_attention_num_buckets": 32, "tie_word_embeddings": False, "n_positions": 512,
    "vocab_size": 32128,
}  # fmt: skip
# google/vit-base-patch16-224.
VIT = {
    "model_type": "vit", "hidden_size": 768, "image_size": 224, "intermediate_size": 3072,
    "num_attention_heads": 12, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": True,
    "id2label": {str(number): "" for number in range(1000)},
}  # fmt: skip


def written(folder, name, values):
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps(values))
    return str(folder / name)


def test_released_configurations_give_released_sizes(tmp_path):
    flan = pc.Model.open(written(tmp_path, "flan-t5-base", FLAN))
    assert (flan.name, flan.parameters) == ("flan-t5-base", 247_577_856)
    assert flan == pc.Model.preset("flan-t5-base")
    vit = pc.Model.from_hf(written(tmp_path, "vit-base-patch16-224", VIT))
    assert vit.parameters == 86_567_656


def test_the_sequence_can_be_chosen(tmp_path):
    folder = written(tmp_path, "t5", FLAN)
    assert pc.Model.from_hf(folder, seq=128).seq == 128
    with pytest.raises(pc.InputError, match="follows from its image size"):
        pc.Model.from_hf(written(tmp_path, "vit", VIT), seq=128)


def test_a_missing_field_is_named(tmp_path):
    values = {key: value for key, value in FLAN.items() if key != "d_kv"}
    with pytest.raises(pc.InputError, match="has no `d_kv`"):
        pc.Model.from_hf(written(tmp_path, "broken", values))
