"""Rows whose rate is a mean over an epoch, the last batch of which is smaller."""

from __future__ import annotations

import pytest
from plancast.accuracy.validation.run import validate

COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,seq_len,machine,strategy,global_batch,dtype,"
    "software,iter_time_s,assumptions"
)
ROW = (
    '{0},here,small,4,256,4,1000,256,dgx-a100-80g:1x4,"dp=4,zero=3,mb={1},recompute=none,'
    'attn=unfused",{2},bf16,"{3}",0.05,{4}'
)


def results_of(tmp_path, *rows):
    path = tmp_path / "rows.csv"
    lines = [_row(f"r{i}", *row) for i, row in enumerate(rows)]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return validate([path], workers=1).results


def _row(name, micro_batch, said, software="FSDP", batch=None):
    return ROW.format(name, micro_batch, batch or 4 * micro_batch, software, said)


def test_the_last_batch_is_what_is_left(tmp_path):
    # 61 samples over 4 ranks are 16 each: 12 and 4.
    twelve, four, epoch = results_of(tmp_path, (12, ""), (4, ""), (12, "epoch_samples=61"))
    expected = (twelve.predicted + four.predicted) * 48 / 61
    assert epoch.predicted == pytest.approx(expected)
    assert epoch.predicted > twelve.predicted
    wider = epoch.predicted / twelve.predicted
    assert epoch.interval == pytest.approx([end * wider for end in twelve.interval])


def test_batches_that_divide_the_samples_are_iterations(tmp_path):
    eight, epoch = results_of(tmp_path, (8, ""), (8, "epoch_samples=64"))
    assert epoch.predicted == pytest.approx(eight.predicted)


def test_fewer_samples_than_a_batch(tmp_path):
    four, epoch = results_of(tmp_path, (4, ""), (12, "epoch_samples=16"))
    assert epoch.predicted == pytest.approx(four.predicted * 48 / 16)


def test_runs_of_the_trainer_in_bigscience_had_a_thousand(tmp_path):
    said, unsaid = results_of(
        tmp_path,
        (6, "epoch_samples=1000", "DeepSpeed ZeRO 2021"),
        (6, "", "HF Trainer + DeepSpeed ZeRO 2021"),
    )
    assert unsaid.predicted == said.predicted


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((4, "epoch_samples=few"), "`epoch_samples=few` is no number of samples, 1 or more"),
        ((4, "epoch_samples=0"), "`epoch_samples=0` is no number of samples, 1 or more"),
        (
            (4, "epoch_samples=100", "FSDP", 32),
            "`epoch_samples=` is for iterations of one micro-batch: here a rank has 8 samples in "
            "micro-batches of 4",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, row, message):
    (result,) = results_of(tmp_path, row)
    assert result.unsupported == message
