"""What a checkpoint weighs and how long it stops training."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.training.checkpoints import state_bytes

MODEL = pc.Model.preset("llama3-8b")
MACHINE = pc.Machine.preset("dgx-h100", hosts=4)


@pytest.fixture(scope="module")
def forecast() -> pc.Forecast:
    return pc.predict(MODEL, MACHINE, "tp=4,zero=1,mb=1", batch=64)


def cost(forecast: pc.Forecast, machine: pc.Machine = MACHINE, **how: object):
    return pc.Checkpoints(**how).cost(state_bytes(MODEL.parameters, forecast), forecast, machine)


def test_bytes_are_those_that_the_devices_hold(forecast):
    # ZeRO-1: optimizer state is there once; parameters once in every replica.
    held = sum(entry.optimizer * entry.ranks for entry in forecast.memory)
    held += sum(entry.parameters * entry.ranks for entry in forecast.memory) / 8
    # The forecast pads the vocabulary.
    assert state_bytes(MODEL.parameters, forecast) == pytest.approx(held, rel=0.01)


def test_types_count():
    small = pc.predict(
        MODEL, MACHINE, "tp=4,zero=1,mb=1", batch=64, state_dtype="bf16", master="off"
    )
    assert state_bytes(MODEL.parameters, small) == MODEL.parameters * (2 + 2 + 2)


def test_the_slower_of_store_and_hosts_decides(forecast):
    state = 14.0 * MODEL.parameters
    hosts_are_slower = cost(forecast, store="1TB/s", host_write="2GB/s")
    assert hosts_are_slower.stall_s == pytest.approx(state / 8e9)
    store_is_slower = cost(forecast, store="1GB/s", host_write="2GB/s")
    assert store_is_slower.stall_s == pytest.approx(state / 1e9)


def test_one_replica_writes_alone(forecast):
    # dp = 8 of tp = 4 on four hosts: a replica is on half a host.
    every = cost(forecast, store="1TB/s", host_write="2GB/s")
    alone = cost(forecast, store="1TB/s", host_write="2GB/s", sharded=False)
    assert alone.stall_s == pytest.approx(4 * every.stall_s)
    assert alone.load_s == every.load_s  # all of them read


def test_asynchronous_writes_stop_training_for_the_copy_alone(forecast):
    blocking, behind = cost(forecast), cost(forecast, mode="async")
    assert behind.stall_s < blocking.stall_s / 10
    assert behind.lag_s == pytest.approx(blocking.stall_s)


def test_memory_of_another_host_is_as_fast_as_the_network(forecast):
    state = 14.0 * MODEL.parameters
    assert cost(forecast, to="host").stall_s == pytest.approx(state / (4 * 8 * 400e9 / 8))
    with pytest.raises(pc.InputError, match="need two hosts"):
        cost(forecast, pc.Machine.preset("dgx-h100", hosts=1), to="host")


def test_checkpoints_that_are_too_frequent_are_refused():
    with pytest.raises(pc.InputError, match="too often"):
        pc.train(
            MODEL, MACHINE, "tp=4,zero=1,mb=1", tokens="1T", batch=64,
            checkpoints="async,every=5s",
        )  # fmt: skip
