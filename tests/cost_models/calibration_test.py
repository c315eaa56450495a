"""The fitting behind `plancast calibrate`, on made-up measurements."""

import csv

import numpy as np
import pytest
from plancast import calibrate
from plancast.calibration import convolution, fit, gemm, plan
from plancast.calibration.rows import Gpu, Rows, folds, read_gpus, read_rows
from plancast.calibration.textproto import format_message

A100 = Gpu("A100-SXM-80GB", 108, 1410, 2039e9, {"fp16": 312e12, "fp32": 19.5e12})
TRUE = {
    "mma_fraction": 0.8,
    "tile_overhead_s": 2e-6,
    "wave_quantization": 0.9,
    "memory_fraction": 0.75,
    "small_tile_cost": 0.3,
    "floor_s": 3e-6,
    "sustained_loss": 0.05,
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


def measured(count: int) -> Rows:
    columns = shapes(count)
    made = gemm.GemmShapes.create(Rows(columns), A100, 312e12, "bf16").seconds(TRUE)
    return Rows({**columns, "time_us": made * 1e6})


def test_fit_recovers_what_made_the_times():
    found, stats = gemm.fit_gemm(measured(300), A100, 312e12, "bf16")
    assert stats["held_out_error"] < 0.01
    assert found["mma_fraction"] == pytest.approx(TRUE["mma_fraction"], rel=0.02)
    assert found["wave_quantization"] == pytest.approx(TRUE["wave_quantization"], abs=0.1)


def test_fit_shrugs_off_outliers():
    rows = measured(300)
    rows["time_us"][::20] *= 3
    found, _ = gemm.fit_gemm(rows, A100, 312e12, "bf16")
    assert found["mma_fraction"] == pytest.approx(TRUE["mma_fraction"], rel=0.03)


def test_fit_is_deterministic():
    first = gemm.fit_gemm(measured(120), A100, 312e12, "bf16")
    assert first == gemm.fit_gemm(measured(120), A100, 312e12, "bf16")


def test_nelder_mead_finds_the_bottom_of_a_bent_valley():
    def rosenbrock(p):
        return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2 + 1e-9

    point, value = fit.nelder_mead(rosenbrock, np.array([-1.2, 1.0]), 0.5, 2000)
    assert value < 1e-6
    assert point == pytest.approx([1, 1], abs=1e-2)


def test_equal_keys_share_a_fold():
    rows = Rows(
        {"n": np.array([1.0, 2.0, 1.0, 3.0] * 50), "k": np.array([5.0, 5.0, 5.0, 6.0] * 50)}
    )
    fold = folds(rows, ("n", "k"), 5)
    assert (fold[0::4] == fold[2::4]).all()
    assert len(set(fold[rows["n"] == 2.0])) == 1


def test_messages_are_nested_text():
    text = format_message(
        {"gpu": 'A"B', "sms": 108, "gemm": [{"x": 0.5, "skipped": None}], "lost": float("nan")}
    )
    assert text == 'gpu: "A\\"B"\nsms: 108\ngemm {\n  x: 0.5\n}\n'


def test_eager_rows_near_the_launch_floor_are_left_out():
    columns = shapes(400)
    seconds = gemm.GemmShapes.create(Rows(columns), A100, 19.5e12, "fp32").seconds(TRUE)
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
    assert calibrate.main(["--kernels", str(folder), "-o", str(tmp_path / "out")]) == 2
    assert f"no hardware.csv in `{folder}`" in capsys.readouterr().err


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "gemm.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["gpu", "m"], ["A", "1"]])
    with pytest.raises(ValueError, match="has no column `time_us`; it has gpu, m"):
        read_rows(path, ("m", "time_us"))


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
    product = convolution.product_seconds(rows, A100, 19.5e12, "fp32", TRUE)
    shapes_of = convolution.shape_of(rows)
    true = np.where(shapes_of == "window3", 0.6, np.where(rows["phase"] == "fwd", 1.1, 1.5))
    timed = Rows({**rows.columns, "time_us": product * true * 1e6})
    factors, stats = convolution.fit_convolution(timed, A100, 19.5e12, "fp32", TRUE)
    assert factors["window3"] == pytest.approx(dict.fromkeys(("forward", "dgrad", "wgrad"), 0.6))
    assert factors["pointwise"]["forward"] == pytest.approx(1.1)
    assert factors["other"]["wgrad"] == pytest.approx(1.5)
    assert stats["held_out_error"] == pytest.approx(0)
    whole, taken = convolution.complete(factors, [{"strided_pointwise": {"dgrad": 2.5}}])
    assert whole["strided_pointwise"]["dgrad"] == 2.5
    assert taken == [f"strided_pointwise {name}" for name in ("forward", "dgrad", "wgrad")]
