"""What `plancast calibrate` does with measured rows, on made-up measurements."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plancast.accuracy.calibration import (
    convolution,
    evaluate,
    gemm,
    generic,
    plan,
    report,
    steady,
)
from plancast.accuracy.calibration.fit import Kernels
from plancast.accuracy.calibration.rows import Gpu, Rows, folds, read_gpus, read_rows
from plancast.accuracy.calibration.tables import Measured, take_over_training_factors
from plancast.accuracy.calibration.textproto import format_message
from plancast.cli.main import main
from plancast.errors import InputError

A100 = Gpu("A100-SXM-80GB", 108, 1410, 2039e9, {"fp16": 312e12, "bf16": 312e12, "fp32": 19.5e12})
TRUE = {
    "mma_fraction": 0.8,
    "tile_overhead_k": 100.0,
    "wave_quantization": 0.9,
    "memory_fraction": 0.75,
    "small_tile_cost": 0.3,
    "floor_s": 3e-6,
    "sustained_loss": 0.05,
    "saturating_sms": 0.2,
    "split_floors": 0.5,
}


def shapes(count: int) -> dict[str, np.ndarray]:
    """Shapes spread over the sizes of training; no randomness."""
    index = np.arange(count)
    return {
        "m": 128.0 * (1 + index * 37 % 127),
        "n": 128.0 * (1 + index * 53 % 61),
        "k": 128.0 * (1 + index * 29 % 83),
        "batch": np.ones(count),
    }


def measured(count: int, gpu: Gpu = A100, dtype: str = "bf16") -> Rows:
    columns = shapes(count)
    made = Kernels("gemm", gpu, dtype, columns).seconds(TRUE)
    return Rows({**columns, "time_us": made * 1e6})


def test_fit_recovers_what_made_the_times():
    found = gemm.fit_gemm(measured(300), A100, "bf16")
    assert gemm.cross_validate(measured(300), A100, "bf16", found)["held_out_error"] < 0.01
    assert found["mma_fraction"] == pytest.approx(TRUE["mma_fraction"], rel=0.02)
    assert found["wave_quantization"] == pytest.approx(TRUE["wave_quantization"], abs=0.1)


def test_fit_is_deterministic():
    assert gemm.fit_gemm(measured(120), A100, "bf16") == gemm.fit_gemm(measured(120), A100, "bf16")


# What a processor can chooses the variants of exp and log, the width of vectors and the kernels of
# BLAS: these environments take some of it away.
PROCESSORS = {
    "as it is": {},
    "without fused products": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA"},
    "of 2004": {
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-AVX,-SSE4_2,-SSE4_1",
        "NPY_DISABLE_CPU_FEATURES": "AVX2,FMA3,AVX512F",
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
    },
}


def noisy_fit() -> None:
    """Prints the bits of a fit to rows that no formula made."""
    columns = {**shapes(200), "m": 1.0 + 64 * shapes(200)["m"] / 128}
    seconds = Kernels("gemm", A100, "bf16", columns).seconds(TRUE)
    noise = 1 + (np.arange(200) * 7919 % 1000 - 500) / 2500
    found = gemm.fit_gemm(Rows({**columns, "time_us": seconds * 1e6 * noise}), A100, "bf16")
    print({name: value.hex() for name, value in found.items()})


def test_a_fit_gives_the_same_bits_on_every_processor():
    printed = set()
    for environment in PROCESSORS.values():
        command = [sys.executable, "-c", "import calibration_test; calibration_test.noisy_fit()"]
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        made = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path, **environment}, check=True,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        printed.add(made.stdout)
    assert len(printed) == 1
    assert "mma_fraction" in printed.pop()


def test_the_factor_of_a_training_stack_is_found():
    columns = {**shapes(100), "m": 8192 + shapes(100)["m"]}
    slow = Kernels("gemm", A100, "bf16", columns).seconds({**TRUE, "forward_factor": 1.3})
    rows = Rows({**columns, "time_us": slow * 1e6, "layout": np.array(["TN"] * 100),
                 "dtype": np.array(["bf16"] * 100)})  # fmt: skip
    found = gemm.fit_training_factor(rows, A100, "bf16", "forward_factor", TRUE)
    assert found == pytest.approx(1.3, rel=1e-3)


def _board(name: str, density: float, vendor: str = "NVIDIA") -> Gpu:
    """One of 1,000 TFLOP/s with so many per watt."""
    peaks = {"fp16": 1e15, "fp32": 60e12, "fp8": 2e15}
    return Gpu(name, 132, 1980, 3352e9, peaks, vendor, tdp_watts=1000 / density)


def test_factors_grow_with_flops_per_watt_from_a_gpu_that_loses_nothing():
    base = plan.STEADY_DENSITY
    gpus = [
        _board("timed", base + 1),
        _board("half", base + 0.5),
        _board("steady", base),
        _board("other maker", base + 0.5, vendor="AMD"),
        Gpu("unknown", 132, 1980, 3352e9, {"fp16": 1e15, "fp32": 60e12}, "NVIDIA"),
    ]
    timed = {"dtype": "bf16", "forward_factor": 1.44, "fit": {"factor_sigma": 0.1}}
    messages = {g.name: {"dtype": "bf16", "fit": {"factor_sigma": 0.05}} for g in gpus[1:]}
    take_over_training_factors([("timed", timed), *messages.items()], {g.name: g for g in gpus})
    assert messages["half"]["forward_factor"] == pytest.approx(1.2)
    assert messages["half"]["fit"]["factor_sigma"] == pytest.approx(np.log(1.2) / 2)
    for name in ("steady", "other maker", "unknown"):
        assert "forward_factor" not in messages[name]


def test_factors_are_those_of_one_type():
    gpu = _board("timed", 2)
    timed = {"dtype": "bf16", "forward_factor": 1.44, "fit": {"factor_sigma": 0.1}}
    eight = {"dtype": "fp8", "fit": {"factor_sigma": 0.05}}
    take_over_training_factors([("timed", timed), ("timed", eight)], {"timed": gpu})
    assert "forward_factor" not in eight


def test_steady_loops_tell_what_power_decides_of_a_board(monkeypatch):
    board = Gpu("board", 108, 1410, 2039e9, {"fp16": 312e12, "fp4": 1e15, "fp32": 19.5e12})
    known = {**TRUE, "quantize_bytes": 2.0}
    made = {**known, "mma_fraction": 0.6, "sustained_loss": 0.2, "quantize_bytes": 0.0}
    sizes = np.array([4096.0, 6144.0, 8192.0, 16384.0])
    columns = dict.fromkeys(("m", "n", "k"), sizes) | {"batch": np.ones(len(sizes))}
    seconds = gemm.kernels_of(Rows(columns), board, "nvfp4").seconds(made)
    rates = 2 * sizes**3 / seconds / 1e12
    tflops = {(int(s), int(s), int(s)): rate for s, rate in zip(sizes, rates, strict=True)}
    loops = steady.Loops("board", "chip", "nvfp4", "a page", tflops)
    monkeypatch.setattr(steady, "PUBLISHED", (loops,))
    chip = {"dtype": "nvfp4", "tile": [], "split_k": [], **known}
    tables = {"chip": {"gemm": [chip]}}
    fit = lambda data, stats, sigma, note: {"data": data, **stats, "note": note}  # noqa: E731
    ((name, message),) = steady.messages(tables, {"board": board}, fit)
    assert name == "board" and message["own_only"] and message["fit"]["rows"] == len(sizes)
    assert message["mma_fraction"] == pytest.approx(0.6, rel=1e-3)
    assert message["sustained_loss"] == pytest.approx(0.2, rel=0.02)
    assert {n: message[n] for n in known if n not in steady.BY_POWER} == {
        n: known[n] for n in known if n not in steady.BY_POWER
    }
    assert not steady.messages({}, {"board": board}, fit)


def test_chips_with_more_flops_per_watt_sustain_less():
    tables = {
        str(watts): {
            "gpu": str(watts), "speed_grade": 1000.0, "sms": 100, "boost_mhz": 1000.0,
            "tdp_watts": watts,
            "gemm": [{"dtype": "bf16", "mma_fraction": 0.9 * np.exp(-0.2 * 100 / watts),
                      "sustained_loss": 0.0}],
        }
        for watts in (50.0, 100.0, 200.0, 400.0)
    }  # fmt: skip
    slope, shares = generic._power(tables)
    assert slope == pytest.approx(0.2)
    assert shares == pytest.approx([0.9] * 4)


def test_equal_keys_share_a_fold():
    rows = Rows(
        {"n": np.array([1.0, 2.0, 1.0, 3.0] * 50), "k": np.array([5.0, 5.0, 5.0, 6.0] * 50)}
    )
    fold = folds(rows, ("n", "k"), 5)
    assert (fold[0::4] == fold[2::4]).all()
    assert len(set(fold[rows["n"] == 2.0])) == 1


def test_equal_shapes_are_held_out_together():
    keys = np.array([str(i % 500) for i in range(1000)])
    chosen = evaluate.held_out(keys, seed=1)
    assert (chosen[:500] == chosen[500:]).all()
    assert 0.15 < chosen.mean() < 0.25
    assert (chosen == evaluate.held_out(keys, seed=1)).all()
    assert (chosen != evaluate.held_out(keys, seed=2)).any()


def table_of(rows: Rows, **words: str) -> Rows:
    count = len(rows)
    return Rows({**rows.columns, **{n: np.array([w] * count) for n, w in words.items()}})


def test_an_evaluation_never_sees_what_it_judges(monkeypatch):
    gpus = {A100.name: A100, "B": Gpu("B", 108, 1410, 2039e9, A100.peaks)}
    words = {"dtype": "bf16", "source": "aic", "timing": "graph", "layout": "TN"}
    products = [table_of(measured(400, gpu), gpu=gpu.name, **words) for gpu in gpus.values()]
    both = Rows({n: np.concatenate([p[n] for p in products]) for n in products[0].columns})
    none = Rows({n: np.array([], dtype=t) for n, t in (
        ("gpu", str), ("impl", str), ("phase", str), ("dtype", str), ("op", str),
        ("software", str), ("window", float), ("time_us", float), ("elements", float),
        *((c, float) for c in evaluate.ATTENTION_SHAPE[:-1]), ("rows", float), ("cols", float),
    )})  # fmt: skip
    tables = Measured(gpus, both, none, none, None)
    seen: list[tuple[set[str], set[float]]] = []
    fit = gemm.fit_gemm

    def watched(rows, gpu, dtype):
        seen.append((gpu.name, {tuple(rows[c][i] for c in ("m", "n", "k")) for i in
                                range(len(rows))}))  # fmt: skip
        return fit(rows, gpu, dtype)

    monkeypatch.setattr(gemm, "fit_gemm", watched)
    judged = evaluate.judged(tables)[0]
    left_out = evaluate.held_out(judged.keys, 1)
    kernels = judged.kernels.select(left_out).columns
    shapes_out = set(zip(kernels["m"], kernels["n"], kernels["k"], strict=True))
    scores = evaluate.evaluate(tables)
    first = [shapes for gpu, shapes in seen[:2]]
    assert all(not shapes_out & shapes for shapes in first)
    by_how = {(s.gpu, s.how): s for s in scores if s.family == "gemm bf16"}
    assert by_how[A100.name, "shapes"].rows == left_out.sum()
    assert by_how[A100.name, "shapes"].mean_error < 0.02
    # Priced by B's coefficients, which has the same silicon.
    assert by_how[A100.name, "gpu"].mean_error < 0.02
    assert by_how[A100.name, "datasheet"].bias < -0.1
    assert "| gemm bf16 | shapes |" in report.markdown(scores, 1)
    assert "gemm bf16" in report.text(scores)


def test_messages_are_nested_text():
    text = format_message(
        {
            "gpu": 'A"B',
            "sms": 108,
            "gemm": [{"x": 0.5, "skipped": None}],
            "lost": float("nan"),
            "own_only": True,
        }
    )
    assert text == 'gpu: "A\\"B"\nsms: 108\ngemm {\n  x: 0.5\n}\nown_only: true\n'


def test_eager_rows_near_the_launch_floor_are_left_out():
    columns = shapes(400)
    seconds = Kernels("gemm", A100, "fp32", columns).seconds(TRUE)
    count = len(seconds)
    rows = Rows(
        {
            **columns,
            "time_us": np.maximum(seconds * 1e6, 400.0),
            "gpu": np.array(["A100-SXM-80GB"] * count),
            "dtype": np.array(["fp32"] * count),
            "source": np.array(["neusight"] * count),
            "timing": np.array(["event_eager"] * count),
        }
    )
    (selection,) = plan.select_gemm(rows, {"A100-SXM-80GB": A100})
    assert selection.rows["time_us"].min() > 1200


def test_a_folder_without_the_gpus_figures_is_named(tmp_path, capsys):
    folder = tmp_path / "kernels"
    folder.mkdir()
    assert main(["calibrate", "--kernels", str(folder), "-o", str(tmp_path / "out")]) == 2
    assert f"no hardware.csv in `{folder}`" in capsys.readouterr().err


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "gemm.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["gpu", "m"], ["A", "1"]])
    with pytest.raises(InputError, match="has no column `time_us`; it has gpu, m"):
        read_rows(path, ("m", "time_us"))


def test_a_row_cut_short_is_named(tmp_path):
    path = tmp_path / "gemm.csv"
    path.write_text("gpu,m,time_us\nA,1,2\n\nA,1\n")
    with pytest.raises(InputError, match=r"gemm.csv`:4: the row has 2 values and the header 3"):
        read_rows(path, ("m", "time_us"))
    path.write_text("gpu,m,time_us\nA,1,2\n\n")
    assert len(read_rows(path, ("m", "time_us"))) == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("A,0,1", "`m` is 0; give a number above 0"),
        ("A,1.5,1", "`m` is `1.5`; it must be a whole number"),
        ("A,9999999999,1", "`m` is `9999999999`; it must be at most 1,048,576"),
        ("A,,1", "`m` is empty; give a number"),
        ("A,1,0", "`time_us` is `0`; it must be a number above 0"),
        ("A,1,nan", "`time_us` is `nan`; it must be a number"),
        ("A,1," + "9" * 5000, r"`time_us` is `9{77}\.\.\.`; it must be a number"),
    ],
)
def test_measured_figures_are_in_range(tmp_path, row, words):
    path = tmp_path / "gemm.csv"
    path.write_text(f"gpu,m,time_us\nA,1,2\n{row}\n")
    with pytest.raises(InputError, match=f"gemm.csv`:3: {words}"):
        read_rows(path, ("m", "time_us"))


def test_gaps_are_not_numbers_where_they_are_allowed(tmp_path):
    path = tmp_path / "moe.csv"
    path.write_text("gpu,n,time_us\nA,,2\n")
    assert np.isnan(read_rows(path, ("n", "time_us"), gaps=True)["n"]).all()


def test_a_long_text_does_not_make_others_long(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("op,time_us\n" + "a,1\n" * 3_000 + "b" * 20_000 + ",1\n")
    texts = read_rows(path, ("time_us",))["op"]
    assert texts.nbytes < 100_000
    assert texts[-1] == "b" * 20_000


def test_figures_of_gpus_are_in_range(tmp_path):
    path = tmp_path / "hardware.csv"
    path.write_text(
        "gpu,sm_count,boost_mhz,fp32_tflops,tf32_tflops,fp16_tflops,bf16_tflops,fp8_tflops,"
        "fp4_tflops,mem_gbps\nP4,20,1113,-5.7,,,,,,192\n"
    )
    with pytest.raises(InputError, match=r"`fp32_tflops` is -5\.7; give a number from 0"):
        read_gpus(path)


def test_unknown_figures_read_as_zero(tmp_path):
    path = tmp_path / "hardware.csv"
    path.write_text(
        "gpu,sm_count,boost_mhz,fp32_tflops,tf32_tflops,fp16_tflops,bf16_tflops,fp8_tflops,"
        "fp4_tflops,mem_gbps\nP4,20,1113,5.7,,,,,,192\n"
    )
    gpu = read_gpus(path)["P4"]
    assert gpu.peaks["bf16"] == 0
    assert gpu.speed_grade == pytest.approx(5.7e12 / (20 * 1113e6))


def convolutions() -> Rows:
    """3x3, 1x1 and 5x5 windows of images, all passes."""
    made = {name: [] for name in (*convolution.COLUMNS, "phase")}
    for phase in convolution.PASSES:
        for window in (1, 3, 5):
            for channels in (64, 128, 256, 512):
                values = (16, 56, 56, channels, channels, window, window, 1, 56, 56, 1, phase)
                for name, value in zip(made, values, strict=True):
                    made[name].append(value)
    return Rows({name: np.array(values) for name, values in made.items()})


def test_factors_of_convolutions_are_found():
    rows = convolutions()
    product = convolution.kernels_of(rows, A100, "fp32").seconds(TRUE)
    shapes_of = convolution.shape_of(rows)
    true = np.where(shapes_of == "window3", 0.6, np.where(rows["phase"] == "fwd", 1.1, 1.5))
    timed = Rows({**rows.columns, "time_us": product * true * 1e6})
    factors, stats = convolution.fit_convolution(timed, A100, "fp32", TRUE)
    assert factors["window3"] == pytest.approx(dict.fromkeys(("forward", "dgrad", "wgrad"), 0.6))
    assert factors["pointwise"]["forward"] == pytest.approx(1.1)
    assert factors["other"]["wgrad"] == pytest.approx(1.5)
    assert stats["held_out_error"] == pytest.approx(0)
    whole, taken = convolution.complete(factors, [{"strided_pointwise": {"dgrad": 2.5}}])
    assert whole["strided_pointwise"]["dgrad"] == 2.5
    assert taken == [f"strided_pointwise {name}" for name in ("forward", "dgrad", "wgrad")]
