"""What plans keep in the memory of hosts of which nobody says how much they have."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.confidence import confidence

MODEL = pc.Model.from_config(
    name="small", layers=4, hidden=1024, heads=16, ffn=4096, vocab=32000, seq=1024
)
PLAN = "dp=8,mb=1,offload=optimizer"
RTX4090 = pc.Machine.preset("rtx4090-pcie", hosts=1)


def asked_about(forecast: pc.Forecast) -> list[str]:
    return [words for words in forecast.warnings if "is unknown (`host_memory_gb`" in words]


@pytest.mark.parametrize("hosts", [1, 2])
def test_what_a_host_keeps_is_said_where_its_memory_is_unknown(hosts: int) -> None:
    machine = pc.Machine.preset("rtx4090-pcie", hosts=hosts)
    forecast = pc.predict(MODEL, machine, PLAN.replace("8", str(8 * hosts)), batch=64)
    (own,) = forecast.memory
    (said,) = asked_about(forecast)
    assert said.startswith("the memory of a `rtx4090-pcie` host is unknown (`host_memory_gb` in ")
    assert said.endswith(f"the plan keeps {8 * own.host / 2**30:.1f} GiB there")
    assert confidence(forecast).extrapolated[-1] == said


def test_a_ranking_says_what_predict_says() -> None:
    (best,) = pc.rank(MODEL, RTX4090, batch=64, top=1, space=f"{PLAN},tp=1,pp=1,zero=0")
    assert asked_about(best) == asked_about(pc.predict(MODEL, RTX4090, PLAN, batch=64))


def test_nothing_is_said_where_it_is_known_or_nothing_is_kept() -> None:
    known = pc.Machine.from_yaml("preset: rtx4090-pcie\nhosts: 1\nhost_memory_gb: 512\n")
    assert not asked_about(pc.predict(MODEL, known, PLAN, batch=64))
    assert not asked_about(pc.predict(MODEL, RTX4090, "dp=8,mb=1", batch=64))


def test_each_kind_of_host_is_looked_at() -> None:
    mixed = RTX4090 + pc.Machine.preset("dgx-a100-80g", hosts=1)
    (said,) = asked_about(pc.predict(MODEL, mixed, PLAN.replace("8", "16"), batch=64))
    assert "`rtx4090-pcie`" in said
    small = pc.Machine.from_yaml("preset: dgx-a100-80g\nhosts: 1\nhost_memory_gb: 1\n")
    with pytest.raises(pc.InputError, match="of host 1 keep"):
        pc.predict(MODEL, RTX4090 + small, PLAN.replace("8", "16"), batch=64)
