"""GPUs whose attention and memory are known from published figures alone."""

import numpy as np
import pytest
from plancast.accuracy.calibration import attention, attention_rows, published
from plancast.accuracy.calibration.rows import Gpu

PEAK = {"fp16": 1307e12, "bf16": 1307e12, "fp32": 163.4e12}
MI300X = Gpu("MI300X", 304, 2100, 5300e9, PEAK, "AMD", tdp_watts=750)
MI325X = Gpu("MI325X", 304, 2100, 6000e9, {**PEAK, "bf16": 1300e12}, "AMD", tdp_watts=1000)
BOTH = {"MI300X": MI300X, "MI325X": MI325X}
SOFTMAX = {2.9e12: 21.0, 7.5e12: 41.0}


def fit(data, stats, sigma, note):
    return {"data": data, "rows": stats["rows"], "factor_sigma": sigma, "note": note}


def test_rates_become_times():
    rows = published.aiter_rows("MI300X")
    first = rows[(rows["batch"] == 1) & (rows["heads"] == 32) & (rows["q_len"] == 1024)]
    times = dict(
        zip(zip(first["phase"], first["causal"], strict=True), first["time_us"], strict=True)
    )
    flops = 4 * 128 * 32 * 1024**2
    assert times["train_fwd", 0.0] == pytest.approx(flops / 338.07e6)
    assert times["train_bwd", 0.0] == pytest.approx(2.5 * flops / 344.03e6)
    assert times["train_fwd", 1.0] == pytest.approx(flops / 2 / 130.62e6)
    assert len(published.aiter_rows("H100-SXM-80GB")) == 0


def test_attention_of_both_chips_and_a_board_with_more_power():
    messages = published.attention_messages(BOTH, SOFTMAX, fit)
    assert set(messages) == set(BOTH)
    made = messages["MI300X"]
    assert made["own_only"] and made["softmax_dim"] == 21.0
    rows = published.aiter_rows("MI300X")
    names = [*attention.WANTED, *attention.BACKWARD_WANTED]
    seconds = attention.kernels_of(rows, MI300X, "bf16").seconds({n: made[n] for n in names})
    errors = np.abs(seconds / (rows["time_us"] * 1e-6) - 1)
    assert np.median(errors[rows["q_len"] >= 4096]) < 0.05
    board = messages["MI325X"]
    gain = board["mma_fraction"] * 1300 / (made["mma_fraction"] * 1307)
    assert gain == pytest.approx(843 / 708)
    assert "MI300X's" in board["fit"]["note"] and board["fit"]["factor_sigma"] > 0.1


def test_nothing_is_said_without_the_gpus_or_what_stands_for_the_softmax():
    assert not published.attention_messages({}, SOFTMAX, fit)
    assert not published.attention_messages(BOTH, {}, fit)
    assert not published.memory_messages({}, 2e-6, fit)


def test_memory_is_the_median_of_the_loops():
    messages = published.memory_messages(BOTH, 2e-6, fit)
    assert messages["MI300X"]["memory_fraction"] == pytest.approx(4140 / 5300)
    assert messages["MI325X"]["memory_fraction"] == messages["MI300X"]["memory_fraction"]
    assert "assumption" in messages["MI325X"]["fit"]["note"]
    assert not messages["MI300X"]["fit"]["note"]
    assert all(message["own_only"] for message in messages.values())


def test_what_is_published_of_cudnn_stands_beside_rows_of_its_kind():
    rows = attention_rows.cudnn_rows()
    assert set(rows["gpu"]) == {"B200-SXM", "GB300"}
    first = rows[(rows["gpu"] == "B200-SXM") & (rows["q_len"] == 8192)]
    flops = 4 * 128 * 128 * 8192**2 / 2
    assert first["time_us"][0] == pytest.approx(flops / 1211e6)
    assert first["time_us"][1] == pytest.approx(2.5 * flops / 945e6)
    assert set(rows[rows["gpu"] == "GB300"]["impl"]) == {"cudnn"}
