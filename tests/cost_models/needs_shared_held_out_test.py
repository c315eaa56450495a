"""The shipped cost models against measured kernels that they were not fitted to.

Needs ../shared: PLANCAST_SHARED_DATA names its data folder.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from plancast.calibration import attention, convolution, gemm, plan
from plancast.calibration.rows import ALIASES, read_gpus, read_rows
from textproto_reader import parse, scalars

SHARED = os.environ.get("PLANCAST_SHARED_DATA")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs ../shared: set PLANCAST_SHARED_DATA to its data folder"
)
KERNELS = Path(SHARED or ".") / "kernels"
TABLES = Path("cost_models/data")
PRICE_KERNELS = Path(os.environ.get("PRICE_KERNELS", "tests/cost_models/price_kernels"))


def price(lines: list[str]) -> np.ndarray:
    """Seconds of each kernel, by the shipped C++ models."""
    done = subprocess.run(
        [str(PRICE_KERNELS.resolve())],
        input="\n".join(lines),
        text=True,
        capture_output=True,
        check=True,
    )
    return np.array([float(line) for line in done.stdout.split()])


@pytest.fixture(scope="module")
def gpus():
    return read_gpus(KERNELS.parent / "hardware.csv")


@pytest.fixture(scope="module")
def gemm_rows():
    return read_rows(KERNELS / "gemm.csv", ("m", "n", "k", "batch", "time_us"))


def gemm_lines(rows, dtype: str) -> list[str]:
    return [
        f"gemm {ALIASES.get(gpu, gpu)} {dtype} {b:.0f} {m:.0f} {n:.0f} {k:.0f} 0 0"
        for gpu, b, m, n, k in zip(
            rows["gpu"], rows["batch"], rows["m"], rows["n"], rows["k"], strict=True
        )
    ]


def median_error(predicted: np.ndarray, rows) -> float:
    return float(np.median(np.abs(predicted / (rows["time_us"] * 1e-6) - 1)))


def table(gpu: str) -> dict:
    return parse((TABLES / (gpu.lower().replace("-", "_") + ".textproto")).read_text())


# Bounds of the median error on left-out (n, k), all shapes and those over 50 us.
@pytest.mark.parametrize(
    ("gpu", "dtype", "all_shapes", "large"),
    [
        ("A100-SXM-80GB", "bf16", 0.07, 0.05),
        ("H100-SXM-80GB", "bf16", 0.07, 0.05),
        ("B200-SXM", "bf16", 0.08, 0.05),
        ("GB200", "bf16", 0.09, 0.06),
        ("H100-SXM-80GB", "fp8", 0.10, 0.08),
    ],
)
def test_cross_validated_error_is_as_stated(gpu, dtype, all_shapes, large, gemm_rows, gpus):
    (message,) = (g for g in table(gpu)["gemm"] if g["dtype"] == [dtype])
    stated = scalars(message["fit"][0])
    assert stated["held_out_error"] < all_shapes
    assert stated["held_out_error_large"] < large
    if gpu == "A100-SXM-80GB":  # one fitted anew, from the raw rows
        (selection,) = (
            s
            for s in plan.select_gemm(gemm_rows[gemm_rows["gpu"] == gpu], gpus)
            if s.dtype == dtype
        )
        fitted, stats = gemm.fit_gemm(selection.rows, selection.gpu, selection.peak, dtype)
        assert stats["held_out_error"] == pytest.approx(stated["held_out_error"], rel=0.05)
        for name in ("mma_fraction", "memory_fraction", "wave_quantization"):
            assert fitted[name] == pytest.approx(message[name][0], rel=0.02), name


# A source that no coefficient was fitted to: CUPTI times of an inference stack.
@pytest.mark.parametrize(("alias", "bound"), [("A100-80GB", 0.10), ("H100-80GB", 0.12)])
def test_another_source_of_the_same_gpu(alias, bound, gemm_rows):
    rows = gemm_rows[(gemm_rows["gpu"] == alias) & (gemm_rows["time_us"] > 50)]
    assert median_error(price(gemm_lines(rows, "fp16")), rows) < bound


# GPUs priced by others' coefficients, as if never measured.
def test_a_gpu_taken_as_unseen_is_within_a_fifth(gemm_rows, gpus):
    rows = gemm_rows[
        (gemm_rows["gpu"] == "H100-SXM-80GB")
        & (gemm_rows["dtype"] == "bf16")
        & (gemm_rows["time_us"] > 50)
    ]
    shapes = gemm.GemmShapes.create(rows, gpus["H100-SXM-80GB"], 989e12, "bf16")
    others = [
        scalars(g)
        for path in sorted(TABLES.glob("*.textproto"))
        for g in parse(path.read_text()).get("gemm", ())
        if g["dtype"] == ["bf16"] and "h100" not in path.name
    ]
    names = [p.name for p in gemm.PARAMETERS]
    medians = {name: float(np.median([o.get(name, 0.0) for o in others])) for name in names}
    assert median_error(shapes.seconds(medians), rows) < 0.2


@pytest.mark.parametrize(
    ("gpu", "bound"), [("A100-SXM-80GB", 0.08), ("H100-SXM-80GB", 0.12), ("GB200", 0.08)]
)
def test_attention_forward_is_as_stated(gpu, bound):
    (message,) = table(gpu)["attention"]
    assert scalars(message["fit"][0])["held_out_error_large"] < bound


def test_python_fits_the_model_that_cpp_prices(gemm_rows, gpus):
    for gpu, dtype, row_dtype in (
        ("A100-SXM-80GB", "bf16", "bf16"),
        ("H100-SXM-80GB", "fp8", "fp8"),
    ):
        rows = gemm_rows[
            (gemm_rows["gpu"] == gpu)
            & (gemm_rows["dtype"] == row_dtype)
            & (gemm_rows["source"] == "aic")
        ]
        (message,) = (g for g in table(gpu)["gemm"] if g["dtype"] == [dtype])
        peak = gpus[gpu].peaks[plan.PEAK[dtype]]
        shapes = gemm.GemmShapes.create(rows, gpus[gpu], peak, dtype)
        np.testing.assert_allclose(
            shapes.seconds(scalars(message)), price(gemm_lines(rows, dtype)), rtol=1e-6
        )


def test_python_fits_the_attention_that_cpp_prices(gpus):
    rows = read_rows(KERNELS / "attention.csv", attention.COLUMNS)
    rows = rows[
        (rows["source"] == "cudnn-fe") & (rows["gpu"] == "GB200") & (rows["dtype"] == "bf16")
    ]
    lines = [
        "attention GB200 bf16 "
        + " ".join(
            f"{rows[name][i]:.0f}"
            for name in (
                "batch",
                "q_len",
                "kv_len",
                "heads",
                "kv_heads",
                "head_dim",
                "head_dim_v",
                "causal",
            )
        )
        + (" 1" if rows["phase"][i] == "train_bwd" else " 0")
        for i in range(len(rows))
    ]
    (message,) = table("GB200")["attention"]
    shapes = attention.AttentionShapes.create(rows, gpus["GB200"], 2500e12, "bf16")
    np.testing.assert_allclose(shapes.seconds(scalars(message)), price(lines), rtol=1e-6)


@pytest.mark.parametrize(("gpu", "dtype"), [("T4", "bf16"), ("P100-PCIE-16GB", "fp32")])
def test_python_fits_the_convolutions_that_cpp_prices(gpu, dtype, gpus):
    rows = read_rows(KERNELS / "conv.csv", convolution.COLUMNS)
    (chosen,) = (
        s
        for s in plan.select_convolution(rows, gpus, convolution.SHORTEST_S)
        if (s.gpu.name, s.dtype) == (gpu, dtype)
    )
    (products,) = (scalars(g) for g in table(gpu)["gemm"] if g["dtype"] == [dtype])
    seconds = convolution.product_seconds(chosen.rows, chosen.gpu, chosen.peak, dtype, products)
    (message,) = (c for c in table(gpu)["convolution"] if c["dtype"] == [dtype])
    shapes = convolution.shape_of(chosen.rows)
    passes = list(convolution.PASSES)
    lines, expected = [], []
    for i in range(len(seconds)):
        row = {name: column[i] for name, column in chosen.rows.columns.items()}
        number = passes.index(row["phase"])
        positions = row["batch"] * row["out_h"] * row["out_w"]
        window = row["kh"] * row["kw"]
        product = [
            (positions, row["out_c"], row["in_c"] * window),
            (positions, row["in_c"], row["out_c"] * window),
            (row["out_c"], row["in_c"] * window, positions),
        ][number]
        sizes = " ".join(f"{size:.0f}" for size in product)
        border = convolution.border_bytes(chosen.rows, dtype)[i]
        word = "fp16" if dtype == "bf16" else dtype
        shape = f"{window:.0f} {row['stride']:.0f} {border:.0f}"
        lines.append(f"convolution {gpu} {word} {sizes} {number} {shape}")
        factor = scalars(message[shapes[i]][0])[convolution.PASSES[row["phase"]]]
        expected.append(seconds[i] * float(factor))
    np.testing.assert_allclose(expected, price(lines), rtol=1e-6)
