"""CRUX on the three-layer Clos of the Lingjun data set, with jobs drawn by seeds."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import plancast as pc
import pytest
from plancast.clusters import lingjun

TOPOLOGY = Path(os.environ.get("PLANCAST_SHARED_DATA", "nowhere")) / "lingjun_topo.csv"
MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=847)
SEEDS = 100
pytestmark = pytest.mark.skipif(not TOPOLOGY.exists(), reason=f"needs {TOPOLOGY}")


# Two uplinks a leaf and eight a pod for one interface a host, or four times as much for four.
ONE = {"nics_per_host": 1, "nic_gbit_per_s": 400, "asw_uplinks": 2, "psw_uplinks": 8}
FOUR = {"nics_per_host": 4, "nic_gbit_per_s": 200, "asw_uplinks": 8, "psw_uplinks": 32}


@cache
def fabric(four: bool = False):
    told = pc.LingjunAssumptions(uplink_gbit_per_s=400, **(FOUR if four else ONE))
    return lingjun.read_topology(TOPOLOGY).fabric(told)


def jobs(seed: int, hosts_of: list[int], gpus_of: list[int]) -> list[pc.ClusterJob]:
    """Thirty, each on hosts anywhere, with so many GPUs of each."""
    draw = random.Random(seed)
    free = list(range(847))
    found = []
    for number in range(30):
        hosts = draw.choice(hosts_of)
        mine = sorted(free.pop(draw.randrange(len(free))) for _ in range(hosts))
        compute = draw.choice([0.2, 0.4, 0.8, 1.6, 3.2])
        sent = compute * draw.uniform(0.2, 0.8)
        gpus = draw.choice(gpus_of)
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


SMALL = ([2, 4], [1, 2, 4, 8])
LARGE = ([2, 4, 8, 16], [8])


def busy(seed: int, four: bool = False, **options) -> float:
    these = jobs(seed, *(LARGE if four else SMALL))
    outcome = pc.cluster(these, MACHINE, fabric=fabric(four), waits=False, seed=seed, **options)
    return outcome.busy_share_of_jobs


def test_the_topology():
    topology = lingjun.read_topology(TOPOLOGY)
    assert (len(topology.hosts), len(topology.leaves), len(topology.pods)) == (847, 119, 3)


@pytest.mark.parametrize(
    ("four", "paths"), [(False, "hash"), (False, "intensity"), (True, "intensity")]
)
def test_intensity_beats_fair_beats_reverse(four, paths):
    """Of small jobs over few links by ECMP as well; of large ones over many by CRUX's own paths."""
    in_order = 0
    for seed in range(SEEDS):
        crux = busy(seed, four, paths=paths, sharing="strict")
        fair = busy(seed, four, paths=paths)
        reverse = busy(seed, four, paths=paths, sharing="strict", order="reverse")
        in_order += crux >= fair >= reverse
    print(f"{in_order} of {SEEDS} seeds in order")
    assert in_order >= 0.95 * SEEDS


def test_fewer_levels_lose():
    seeds = range(SEEDS)
    by_levels = [
        sum(busy(seed, sharing="strict", levels=levels) for seed in seeds) / len(seeds)
        for levels in (1, 2, 4, 0)
    ]
    assert by_levels == sorted(by_levels)
    print(f"GPUs busy with 1, 2, 4 and all levels: {by_levels}")
    fair = sum(busy(seed) for seed in seeds) / len(seeds)
    assert by_levels[0] == pytest.approx(fair, rel=1e-9)
