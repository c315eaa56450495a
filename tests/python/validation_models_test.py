"""Rows of models that are no decoders: known by name, or encoders with dimensions."""

from __future__ import annotations

import pytest
from plancast.accuracy.validation.architecture import UnsupportedError
from plancast.accuracy.validation.jobs import prepare
from plancast.accuracy.validation.rows import read_rows

COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,position,tied_embeddings,seq_len,machine,"
    "strategy,global_batch,dtype,software"
)


def job(folder, line):
    path = folder / "rows.csv"
    path.write_text(f"{COLUMNS}\n{line}\n")
    (row,), _ = read_rows([path])
    return prepare(row)


def test_a_name_is_a_preset(tmp_path):
    made = job(tmp_path, 'a,s,resnet50,,,,,,,,dgx1-v100-16g:1,"dp=8,mb=64",512,fp16,somebody')
    assert made.model.parameters == 25_557_032
    assert made.chosen["model"] == "preset `resnet50`"
    (candidate,) = made.candidates
    assert (candidate.micro_batch, candidate.recompute) == (None, "none")


@pytest.mark.parametrize("name", ["ResNet-50", "resnet50_v1.5", "resnet_50"])
def test_a_name_may_be_written_another_way(tmp_path, name):
    made = job(tmp_path, f"a,s,{name},,,,,,,,dgx1-v100-16g:1,dp=8,2048,fp16,somebody")
    assert made.chosen["model"] == "preset `resnet50`"


def test_unknown_micro_batches_of_images_are_large_as_well(tmp_path):
    made = job(tmp_path, "a,s,resnet50,,,,,,,,dgx1-v100-16g:1,dp=8,2048,fp16,somebody")
    assert [c.micro_batch for c in made.candidates] == [4, 8, 16, 32, 64, 128, 256]


def test_clicks_come_in_batches_of_any_size(tmp_path):
    made = job(tmp_path, "a,s,ncf,,,,,,,,dgx1-v100-16g:1,dp=8,1048576,fp16,somebody")
    assert made.candidates[-1].micro_batch == 131_072


def test_an_unknown_name_says_so(tmp_path):
    with pytest.raises(UnsupportedError, match="`resnet51` has no dimensions and is no shipped"):
        job(tmp_path, "a,s,resnet51,,,,,,,,dgx1-v100-16g:1,dp=8,2048,fp16,somebody")


@pytest.mark.parametrize("software", ["Megatron-LM", "NVIDIA DeepLearningExamples PyTorch", "x"])
def test_bert_is_an_encoder(tmp_path, software):
    """Devlin et al. 2019: 334 million with token types, positions and the head's transform."""
    line = "a,s,bert-large,24,1024,16,30522,learned,1,128,dgx1-v100-16g:1,dp=8,2048,fp16,"
    made = job(tmp_path, line + software)
    embeddings = (30522 + 512 + 2) * 1024 + 2 * 1024
    layer = 12 * 1024**2 + 13 * 1024
    head = 1024**2 + 3 * 1024 + 30522
    assert made.model.parameters == embeddings + 24 * layer + head
    assert made.model.seq == 128
