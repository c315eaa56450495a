"""Times of iterations from the logs of frameworks."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.run_logs import read_log

MEGATRON = (
    " [2025-04-13 23:41:12] iteration {i:8d}/ 1000 | consumed samples: {n:12d} | "
    "elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.5E-04 | "
    "global batch size:   64 | lm loss: 7.399415E+00 | number of nan iterations:   0 |\n"
)
TITAN = (
    "[rank0]:2025-06-01 10:00:0{i},123 - root - INFO - \x1b[31mstep: {i:2}  \x1b[32mloss: 10.25  "
    "\x1b[33mmemory: 22.30GiB(28.16%)  \x1b[34mtps: {tps:,}  \x1b[36mtflops: 210.4  "
    "\x1b[35mmfu: 21.2%\x1b[39m\n"
)


def test_megatron_logs_milliseconds(tmp_path):
    path = tmp_path / "run.log"
    times = [90000.0, 30000.0, 18500.0, 18100.0, 18200.0, 18150.0, 40000.0, 18140.0]
    path.write_text(
        "building GPT model ...\n"
        + "".join(MEGATRON.format(i=i, n=64 * i, ms=ms) for i, ms in enumerate(times))
    )
    log = read_log(path)
    assert (log.framework, log.steps, log.tokens_per_s_per_gpu) == ("megatron", 5, None)
    assert log.iteration_s(64 * 2048, 64) == pytest.approx(18.15)


def test_torchtitan_logs_tokens_of_a_device(tmp_path):
    path = tmp_path / "run.log"
    rates = [300, 3000, 5700, 5800, 5810, 5820, 5790]
    path.write_text("".join(TITAN.format(i=i, tps=tps) for i, tps in enumerate(rates)))
    log = read_log(path)
    assert (log.framework, log.steps, log.tokens_per_s_per_gpu) == ("torchtitan", 4, 5805)
    assert log.iteration_s(16 * 8192, 8) == pytest.approx(16 * 8192 / (5805 * 8))


def test_logs_that_say_nothing_or_too_little_are_refused(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("loss 3.1\n")
    with pytest.raises(pc.InputError, match="no step is logged"):
        read_log(path)
    path.write_text("".join(MEGATRON.format(i=i, n=i, ms=100.0) for i in range(5)))
    with pytest.raises(pc.InputError, match="5 steps are logged; it takes 6"):
        read_log(path)
    path.write_text("".join(MEGATRON.format(i=i, n=i, ms=0.0) for i in range(9)))
    with pytest.raises(pc.InputError, match="take no time"):
        read_log(path)
