"""A program over two stages of ranks: CoCoNet's pipeline example."""

from __future__ import annotations

from pathlib import Path

import plancast as pc
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
IN_PARTS = ("split(all_reduce)", "reorder(all_gather, past: sum, z)")
RANKS = 16  # of a stage


def _border(b: int = 8) -> pc.Model:
    """A product whose sum goes to the next stage, where bias, dropout and residual are (its h)."""
    return pc.Model.program(
        "border",
        dims={"b": b, "seq": 1024, "k": 3072, "h": 3072},
        given={
            "x": ["b", "seq", "k"],
            "a": ["k", "h"],
            "c": ["h"],
            "r": ["b", "seq", "h"],
        },
        steps=[
            "y[b,seq,h] += x[b,seq,k] * a[k,h]",
            "sum[b,seq,h] = y[b,seq,h]",
            "z[b,seq,h] = (sum[b,seq,h] + c[h]) * keep + r[b,seq,h]",
            "out[b,seq,h] = z[b,seq,h]",
        ],
    )


def _stages(*rewrites: str, pieces: int = 1) -> pc.Strategy:
    tree = pc.Strategy.parse(f"dp=2,tp={RANKS},mb=1")
    for op in ("x", "a", "y"):
        tree[f"border.{op}"].split(tp=["k"]).on(dp=0)
    tree["border.sum"].on(dp=0)
    for op in ("c", "r", "z", "out"):
        tree[f"border.{op}"].on(dp=1)
    if rewrites:
        tree["border.y"].rewrite(*rewrites)
    if pieces > 1:
        tree["border"].micro_batches(pieces)
    return tree


def _times(strategy: pc.Strategy, b: int = 8) -> dict[str, float]:
    """Seconds of each op and collective on the devices that take longest, and `all`."""
    forecast = pc.predict(
        _border(b),
        pc.Machine.preset("dgx2-v100-32g", hosts=2),
        strategy,
        dtype="fp16",
        profile="megatron-core",
        cuda_graphs=True,
        timeline=True,
    )
    times: dict[str, float] = {}
    begin, end = None, 0.0
    for piece in forecast.timeline():
        if piece.purpose == "optimizer" or piece.name == "all_reduce grad_norm":
            continue  # of a model's parameters, of which there are none
        times[piece.name] = times.get(piece.name, 0.0) + piece.end_s - piece.start_s
        if piece.name == "y":
            begin = piece.start_s if begin is None else min(begin, piece.start_s)
        end = max(end, piece.end_s)
    return {**times, "all": end - (begin or 0.0)}


@pytest.mark.parametrize("b", [8, 16])
def test_schedules_in_their_order(b):
    whole = _times(_stages(), b)
    parts = _times(_stages(*IN_PARTS), b)
    fused = _times(_stages(*IN_PARTS, "fuse(z with all_gather)"), b)
    # A rank sends a part in place of all of it: half of the messages' time is on each side.
    assert parts["permute sum"] < 1.1 * whole["permute sum"] / RANKS
    assert parts["z"] < 1.1 * whole["z"] / RANKS + 5e-6
    assert parts["all"] < whole["all"] / 2
    # The kernel's blocks do what a kernel of its own would: a launch less, and fewer blocks.
    assert fused["all"] == pytest.approx(parts["all"], rel=0.01)
    # One after the other, all that is on the way.
    ways = ("y", "reduce_scatter y", "permute sum", "z", "all_gather z")
    in_turn = sum(parts[name] / (2 if name == "permute sum" else 1) for name in ways)
    assert parts["all"] == pytest.approx(in_turn, rel=0.02)


def test_pieces_overlap_from_the_product_to_the_all_gather():
    parts = _times(_stages(*IN_PARTS))
    ways = {name: parts[name] for name in ("y", "reduce_scatter y", "z", "all_gather z")}
    ways["permute sum"] = parts["permute sum"] / 2  # on both sides
    gains = []
    for pieces in (2, 4, 8, 16, 32, 64):
        gains.append(parts["all"] / _times(_stages(*IN_PARTS, pieces=pieces))["all"])
    best = gains.index(max(gains))
    assert 0 < best < len(gains) - 1  # then each piece pays its latencies
    assert 1.3 < gains[best] < sum(ways.values()) / max(ways.values())


def test_the_example():
    model = pc.Model.from_file(EXAMPLES / "programs" / "stages.yaml")
    tree = pc.Strategy.from_file(EXAMPLES / "strategies" / "stages-in-pieces.yaml")
    machine = pc.Machine.preset("dgx2-v100-32g", hosts=2)
    same = pc.predict(_border(), machine, _stages(*IN_PARTS, pieces=4), dtype="fp16")
    assert pc.predict(model, machine, tree, dtype="fp16").iteration_time == same.iteration_time
