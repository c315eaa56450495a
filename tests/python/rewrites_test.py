"""Programs on grids, rewrites and stencils: what DISTAL, CoCoNet and Distributed Halide report."""

from __future__ import annotations

import pickle
from pathlib import Path

import plancast as pc
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# CoCoNet's repository, microseconds per iteration on 128 V100 by elements: the fused Adam, and
# all-reduce with FusedAdam, all and the optimizer alone (fp32).
MEASURED = {
    2**26: (7272, 9874, 2392),
    2**27: (14050, 18080, 4736),
    2**28: (26398, 35950, 9509),
    2**29: (52381, 71900, 18800),
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


def test_a_program_round_trips():
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


def _machine(nic_gbit_per_s: float, memory_gb_per_s: float) -> pc.Machine:
    """Eight DGX-2 with this network and memory."""
    gpu = {"like": "V100-SXM3-32GB", "name": "V100", "memory_gb_per_s": memory_gb_per_s}
    return pc.Machine.from_dict(
        {"preset": "dgx2-v100-32g", "hosts": 8, "nic_gbit_per_s": nic_gbit_per_s, "gpu": gpu}
    )


def _times(model: pc.Model, strategy: pc.Strategy, machine: pc.Machine, **options) -> dict:
    """Seconds of each op by name, and of `all` from the end of the gradients on."""
    said = {"profile": "megatron-core", "cuda_graphs": True, "timeline": True, **options}
    forecast = pc.predict(model, machine, strategy, **said)
    times: dict[str, float] = {}
    begin = end = 0.0
    for piece in forecast.timeline():
        if piece.purpose == "optimizer":
            continue  # of a model's parameters, of which there are none
        times[piece.name] = times.get(piece.name, 0.0) + piece.end_s - piece.start_s
        if piece.name == "g":
            begin = piece.end_s
        end = max(end, piece.end_s)
    return {**times, "all": end - begin}


def _calibrated() -> pc.Machine:
    """Eight DGX-2 as the fused row of 2^30 elements and the optimizer's column there have them.

    NCCL searches rings of a few speeds, so that the network is calibrated in steps.
    """
    fused, _, optimizer = MEASURED[2**30]
    memory = 900.0
    update = _times(_adam(2**30), _updating(), _machine(100, memory), dtype="fp32")["update"]
    memory *= update / optimizer * 1e6

    def off(nic: float) -> float:
        times = _times(_adam(2**30), _updating(*FUSED), _machine(nic, memory), dtype="fp32")
        return abs(times["all"] / fused * 1e6 - 1)

    return _machine(min(range(50, 101, 10), key=off), memory)


@pytest.fixture(scope="module")
def v100() -> pc.Machine:
    return _calibrated()


@pytest.mark.parametrize("elements", sorted(MEASURED))
def test_what_fusing_adam_saves_is_the_optimizer(v100, elements):
    fused, apart, optimizer = MEASURED[elements]
    together = _times(_adam(elements), _updating(*FUSED), v100, dtype="fp32")["all"]
    in_turn = _times(_adam(elements), _updating(), v100, dtype="fp32")["all"]
    assert (in_turn - together) * 1e6 == pytest.approx(optimizer, rel=0.1)
    rel = 0.3 if elements == 2**27 else 0.1  # there it saves 15 % less than its optimizer takes
    assert (in_turn - together) * 1e6 == pytest.approx(apart - fused, rel=rel)
    assert in_turn / together == pytest.approx(1.36, abs=0.05)


# The same below 2^25: the fused Adam, and all-reduce with FusedAdam.
SMALL = {
    2**18: (261, 373),
    2**19: (346, 532),
    2**20: (480, 744),
    2**21: (703, 1020),
    2**22: (892, 1580),
    2**23: (1488, 2171),
    2**24: (2435, 3765),
}


def test_without_ll128_the_all_reduce_has_what_fusing_gains(v100):
    """Its all-reduce is an older NCCL's (docs/rewrites.md): the fastest of the other protocols."""
    errors = []
    for elements, (fused, apart) in SMALL.items():
        reduces = [
            pc.collective(v100, sizes=[4 * elements], protocol=protocol).rows[0].time_us * 1e-6
            for protocol in ("LL", "Simple")
        ]
        update = _times(_adam(elements), _updating(), v100, dtype="fp32")["update"]
        together = _times(_adam(elements), _updating(*FUSED), v100, dtype="fp32")["all"]
        gain = (min(reduces) + update) / together
        errors.append(abs(gain / (apart / fused) - 1))
    assert max(errors) < 0.3
    assert sum(errors) / len(errors) < 0.13


def test_fusing_wins_from_2_18_on(v100):
    for power in range(18, 30, 2):
        model = _adam(2**power)
        together = _times(model, _updating(*FUSED), v100, dtype="fp32")["all"]
        assert together < _times(model, _updating(), v100, dtype="fp32")["all"]


def _product(pieces: int | str) -> tuple[pc.Model, pc.Strategy]:
    """A product of 4h, its all-reduce, then bias, dropout and residual (CoCoNet's h)."""
    model = pc.Model.program(
        "layer",
        dims={"b": 64, "s": 1024, "k": 12288, "h": 3072},
        given={"x": ["b", "s", "k"], "a": ["h", "k"], "c": ["h"], "r": ["b", "s", "h"]},
        steps=["y[b,s,h] += x[b,s,k] * a[h,k]", "z[b,s,h] = (y[b,s,h] + c[h]) * keep + r[b,s,h]"],
    )
    tree = pc.Strategy.parse("tp=16,mb=1")
    for op in ("x", "a", "y"):
        tree[f"layer.{op}"].split(tp=["k"])
    if pieces != 0:
        tree["layer.y"].rewrite(f"overlap(y, all_reduce, pieces: {pieces})")
    return model, tree


def test_overlap_gains_with_pieces_and_then_loses():
    machine = pc.Machine.preset("dgx2-v100-32g", hosts=1)

    def time(pieces: int) -> float:
        return _times(*_product(pieces), machine, dtype="fp16")["all"]

    whole = _times(*_product(0), machine, dtype="fp16")
    times = [time(2**power) for power in range(9)]
    gains = [whole["all"] / seconds for seconds in times]
    best = gains.index(max(gains))
    assert 0 < best < 8
    assert gains[: best + 1] == sorted(gains[: best + 1])
    assert gains[best:] == sorted(gains[best:], reverse=True)
    kinds = whole["y"], whole["all_reduce y"]
    assert 1 < gains[best] < sum(kinds) / max(kinds)
    assert gains[8] < gains[best]
    # The planner finds it.
    model, tree = _product("tuned")
    forecast = pc.predict(model, machine, tree, dtype="fp16", cuda_graphs=True)
    assert forecast.chosen["pieces of layer.y.y"] == str(2**best)


def test_tuned_pieces_are_for_predict_alone():
    model, tree = _product("tuned")
    with pytest.raises(pc.InputError, match="nothing is simulated here"):
        pc.execution_graph(model, pc.Machine.preset("dgx2-v100-32g", hosts=1), tree)
    (verdict,) = pc.fits(model, pc.Machine.preset("dgx2-v100-32g", hosts=1), tree)
    assert "nothing is simulated here" in verdict.refused


def _square(side: int, *turning: str) -> pc.Strategy:
    tree = pc.Strategy.parse(f"dp={side},tp={side},mb=1")
    tree["product.B"].split(dp=["i"], tp=["k"])
    tree["product.C"].split(dp=["k"], tp=["j"])
    rotate = {"k": list(turning)} if turning else None
    tree["product.A"].split(dp=["i"], tp=["j"]).communicate(B="k", C="k", rotate=rotate)
    return tree


def test_cannon_is_as_fast_as_summa_on_a_full_switch():
    n = 131072  # products hide what comes
    model = pc.Model.program(
        "product",
        dims={"i": n, "j": n, "k": n},
        given={"B": ["i", "k"], "C": ["k", "j"]},
        steps=["A[i,j] += B[i,k] * C[k,j]"],
    )
    machine = pc.Machine.open("gb200-nvl72:16")  # 64 GPUs behind one switch
    summa, cannon = (
        _times(model, _square(8, *turning), machine)["all"] for turning in ((), ("dp", "tp"))
    )
    assert cannon == pytest.approx(summa, rel=0.02)


def _chain(height: int, width: int, groups: int, size: int) -> pc.Model:
    steps, before = [], "x"
    for s in range(groups * size):
        read = f"{before}[i + k - 1,j + l - 1]"
        steps.append(f"g{s // size}.s{s}: s{s}[i,j] += {read} * t[k,l]")
        before = f"s{s}"
    return pc.Model.program(
        "chain",
        dims={"i": height, "j": width, "k": 3, "l": 3},
        given={"x": ["i", "j"], "t": ["k", "l"]},
        steps=steps,
    )


def _hosts(count: int, latency_us: float = 2.0) -> pc.Machine:
    one = "preset: dgx-h100\ngpus_per_host: 1\nnics_per_host: 1\n"
    return pc.Machine.from_yaml(f"{one}hosts: {count}\nnic_latency_us: {latency_us}")


def _joined(rows: int, columns: int, groups: int, size: int) -> pc.Strategy:
    tree = pc.Strategy.parse(f"dp={rows},tp={columns},mb=1")
    tree[""].split(dp=["i"], tp=["j"])
    for group in range(groups):
        tree[f"chain.g{group}"].compute_at(f"s{(group + 1) * size - 1}")
    return tree


@pytest.mark.parametrize(("rows", "columns", "width"), [(8, 1, 2**20), (4, 2, 2**21)])
def test_computing_a_border_again_wins_where_a_message_takes_longer(rows, columns, width):
    apart, once = _chain(1024, width, 2, 10), _chain(1024, width, 1, 20)
    plans = _joined(rows, columns, 2, 10), _joined(rows, columns, 1, 20)

    def times(latency_us: float) -> tuple[dict, dict]:
        machine = _hosts(rows * columns, latency_us)
        return _times(apart, plans[0], machine), _times(once, plans[1], machine)

    def gain(latency_us: float) -> float:
        exchanged, computed = times(latency_us)
        return exchanged["all"] - computed["all"]

    def saved(latency_us: float) -> float:  # of messages, less what is computed again
        exchanged, computed = times(latency_us)
        messages = exchanged["permute x"] + exchanged["permute s9"] - computed["permute x"]
        again = computed["g0.s19"] - exchanged["g0.s9"] - exchanged["g1.s19"]
        return messages - again

    def crossing(of) -> float:
        low, high = 0.1, 64.0
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (low, middle) if of(middle) > 0 else (middle, high)
        return low

    gains = [gain(latency) for latency in (0.1, 1, 4, 16, 64)]
    assert gains == sorted(gains)  # so that they cross once
    assert gains[0] < 0 < gains[-1]
    assert crossing(gain) == pytest.approx(crossing(saved), rel=0.01)


def _scaling(height: int, width: int) -> list[float]:
    """Speed-ups of a chain of ten stages on 1, 2, 4, ..., 64 hosts."""
    model = _chain(height, width, 10, 1)
    times = []
    for hosts in (2**power for power in range(7)):
        tree = pc.Strategy.parse(f"dp={hosts},mb=1")
        tree[""].split(dp=["i"])
        times.append(_times(model, tree, _hosts(hosts))["all"])
    return [times[0] / time for time in times]


def test_strong_scaling_of_a_stencil():
    square, wide = _scaling(16384, 16384), _scaling(4096, 65536)
    for speedups in (square, wide):
        assert speedups == sorted(speedups)
        efficiency = [gain / 2**power for power, gain in enumerate(speedups)]
        assert efficiency == sorted(efficiency, reverse=True)
    # A wide image has longer borders for as many points.
    assert all(a > b for a, b in zip(square[1:], wide[1:], strict=True))


def test_trees_round_trip():
    tree = _updating(*FUSED)
    tree["step.w"].compute_at("update")
    again = pc.Strategy.from_dict(tree.to_dict())
    assert again.to_dict() == tree.to_dict()
    assert tree.to_dict()["nodes"]["step.g"]["rewrite"] == list(FUSED)
    assert "fuse(update with reduce_scatter, all_gather)" in tree.explain("step.g")


@pytest.mark.parametrize(
    ("rewrite", "why"),
    [
        ("split(all_gather)", "it is said of `all_reduce`"),
        ("reorder(all_gather, past: update)", "Say `split.all_reduce.` before it"),
        ("fuse(nothing with all_reduce)", "no op `nothing`"),
    ],
)
def test_mistakes_are_refused_in_words(rewrite, why):
    with pytest.raises(pc.InputError, match=why):
        pc.predict(_adam(1024), pc.Machine.open("dgx2-v100-32g:8"), _updating(rewrite))


def test_flops_of_a_program_are_those_of_one_run():
    model = pc.Model.from_file(EXAMPLES / "programs" / "product.yaml")
    tree = pc.Strategy.from_file(EXAMPLES / "strategies" / "cannon.yaml")
    forecast = pc.predict(model, pc.Machine.open("dgx-h100:8"), tree)
    flops = forecast.model_flops_per_s_per_gpu * forecast.iteration_time * 64
    assert flops == pytest.approx(2 * 16384**3, rel=1e-6)


def _layered() -> pc.Strategy:
    """Four layers of 4 x 4 devices (2.5-D), each with its quarter of k of both operands."""
    tree = pc.Strategy.parse("dp=16,tp=4,mb=1")
    tree["product.B"].split(dp=["k/4", "i/4"], tp=[])
    tree["product.C"].split(dp=["k/4", "/4"], tp=["j"])
    tree["product.A"].split(dp=["k/4", "i/4"], tp=["j"])
    tree["product.sum"].split(dp=["/4", "i/4"], tp=["j"]).on(dp="0/4")
    return tree


def _forecast(n: int, strategy: pc.Strategy) -> pc.Forecast:
    model = pc.Model.program(
        "product",
        dims={"i": n, "j": n, "k": n},
        given={"B": ["i", "k"], "C": ["k", "j"]},
        steps=["A[i,j] += B[i,k] * C[k,j]", "sum[i,j] = A[i,j]"],
    )
    return pc.predict(model, _hosts(64), strategy, cuda_graphs=True)


def test_layers_are_faster_where_they_fit():
    flat = _square(8, "dp", "tp")
    flat["product.sum"].split(dp=["i"], tp=["j"])
    one, four = _forecast(16384, flat), _forecast(16384, _layered())
    assert four.fits
    assert four.iteration_time < one.iteration_time
    assert _forecast(2**19, flat).fits
    assert not _forecast(2**19, _layered()).fits
