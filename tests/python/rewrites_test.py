"""Programs on grids, rewrites and stencils: what DISTAL, CoCoNet and Distributed Halide report."""

from __future__ import annotations

from pathlib import Path

import plancast as pc
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# CoCoNet's repository, microseconds per iteration on 128 V100 by elements: the fused Adam, and
# all-reduce with FusedAdam, all and the optimizer alone (fp32).
MEASURED = {
    2**26: (7272, 9874, 2392),
    2**28: (26398, 35950, 9509),
    2**30: (104678, 143692, 40587),
}
FUSED = (
    "split(all_reduce)",
    "reorder(all_gather, past: update)",
    "fuse(update with reduce_scatter, all_gather)",
)


def _adam(elements: int, ranks: int = 128) -> pc.Model:
    return pc.Model.program(
        "step",
        dims={"r": ranks, "i": elements},
        given={"local:f32": ["r", "i"], "w:f32": ["i"], "m:f32": ["i"], "v:f32": ["i"]},
        steps=[
            "g:f32[i] += local[r,i]",
            "update: next, next_m, next_v, half = adam(w, m, v, g)",
            "parameters:f32[i] = next[i]",
        ],
    )


def _updating(*rewrites: str, ranks: int = 128) -> pc.Strategy:
    tree = pc.Strategy.parse(f"dp={ranks},mb=1")
    tree["step.local"].split(dp=["r"])
    tree["step.g"].split(dp=["r"]).rewrite(*rewrites)
    return tree


def test_grids():
    grids = pc.product_grids(m=8192, n=8192, k=8192, ranks=40)
    best = [grid for grid in grids if grid.surface < grids[0].surface * 1.0001]
    assert len(best) == 6
    assert {tuple(sorted((g.rows, g.columns, g.layers))) for g in best} == {(2, 4, 5)}
    assert grids[6].surface == pytest.approx(0.35 * 8192**2)


def test_a_program_round_trips():
    import pickle

    model = _adam(1024)
    assert str(pickle.loads(pickle.dumps(model))) == str(model)
    with pytest.raises(pc.InputError, match="no `stepz` in a program"):
        pc.Model._from_fields({"name": "x", "steps": ["a[i] = b[i]"], "stepz": 1}, "x")


@pytest.mark.parametrize(
    ("strategy", "program", "machine"),
    [
        ("summa", "product", "dgx-h100:8"),
        ("cannon", "product", "dgx-h100:8"),
        ("pumma", "product", "dgx-h100:8"),
        ("johnson", "reduced-product", "dgx-h100:8"),
        ("solomonik", "reduced-product", "dgx-h100:4"),
        ("cosma", "reduced-product", "dgx-h100:8"),
        ("adam-fused", "adam", "dgx2-v100-32g:8"),
        ("blur-once", "blur", "dgx-h100:1"),
    ],
)
def test_examples(strategy, program, machine):
    model = pc.Model.from_file(EXAMPLES / "programs" / f"{program}.yaml")
    tree = pc.Strategy.from_file(EXAMPLES / "strategies" / f"{strategy}.yaml")
    assert pc.predict(model, pc.Machine.open(machine), tree).iteration_time > 0
