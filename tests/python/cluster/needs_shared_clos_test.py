"""CRUX on the three-layer Clos of the Lingjun data set, with jobs drawn by seeds."""

from __future__ import annotations

import os
import random
from pathlib import Path

import plancast as pc
import pytest
from plancast.clusters import lingjun

TOPOLOGY = Path(os.environ.get("PLANCAST_SHARED_DATA", "nowhere")) / "lingjun_topo.csv"
MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=847)
SEEDS = 100
pytestmark = pytest.mark.skipif(not TOPOLOGY.exists(), reason=f"needs {TOPOLOGY}")


@pytest.fixture(scope="module")
def fabric():
    told = pc.LingjunAssumptions(
        nics_per_host=1, nic_gbit_per_s=400, asw_uplinks=2, psw_uplinks=8, uplink_gbit_per_s=400
    )
    return lingjun.read_topology(TOPOLOGY).fabric(told)


def jobs(seed: int) -> list[pc.ClusterJob]:
    """Thirty of two or four hosts anywhere, with one to eight GPUs of each."""
    draw = random.Random(seed)
    free = list(range(847))
    found = []
    for number in range(30):
        hosts = draw.choice([2, 4])
        mine = sorted(free.pop(draw.randrange(len(free))) for _ in range(hosts))
        compute = draw.choice([0.2, 0.4, 0.8, 1.6, 3.2])
        sent = compute * draw.uniform(0.2, 0.8)
        gpus = draw.choice([1, 2, 4, 8])
        devices = ",".join(f"{host * 8}-{host * 8 + gpus - 1}" for host in mine)
        found.append(
            pc.ClusterJob(
                name=f"job-{number}",
                placement=f"devices {devices}",
                compute=compute,
                communicate=f"{sent:.3f} s",
            )
        )
    return found


def busy(seed: int, fabric, **options) -> float:
    outcome = pc.cluster(jobs(seed), MACHINE, fabric=fabric, waits=False, seed=seed, **options)
    return outcome.busy_share_of_jobs


def test_the_topology():
    topology = lingjun.read_topology(TOPOLOGY)
    assert (len(topology.hosts), len(topology.leaves), len(topology.pods)) == (847, 119, 3)


def test_intensity_beats_fair_beats_reverse(fabric):
    in_order = 0
    for seed in range(SEEDS):
        crux = busy(seed, fabric, sharing="strict")
        fair = busy(seed, fabric)
        reverse = busy(seed, fabric, sharing="strict", order="reverse")
        in_order += crux >= fair >= reverse
    print(f"{in_order} of {SEEDS} seeds in order")
    assert in_order >= 0.95 * SEEDS


def test_fewer_levels_lose(fabric):
    seeds = range(8)
    by_levels = [
        sum(busy(seed, fabric, sharing="strict", levels=levels) for seed in seeds) / len(seeds)
        for levels in (1, 2, 4, 0)
    ]
    assert by_levels == sorted(by_levels)
    fair = sum(busy(seed, fabric) for seed in seeds) / len(seeds)
    assert by_levels[0] == pytest.approx(fair, rel=1e-9)
