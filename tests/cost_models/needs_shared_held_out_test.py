"""The shipped coefficients against the measured kernels that they come from.

Needs ../shared: PLANCAST_SHARED_DATA names its data folder.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from plancast.accuracy.calibrate_kernels import read_measured
from plancast.accuracy.calibration import evaluate, gemm
from plancast.accuracy.calibration.fit import Kernels
from textproto_reader import parse, scalars

SHARED = os.environ.get("PLANCAST_SHARED_DATA")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs ../shared: set PLANCAST_SHARED_DATA to its data folder"
)
KERNELS = Path(SHARED or ".") / "kernels"
TABLES = Path("cost_models/data")
CORES = os.cpu_count() or 1


def shipped() -> dict[str, str]:
    return {
        path.name: path.read_text()
        for path in sorted(TABLES.glob("*.textproto"))
        if path.name != "interference.textproto"
    }


@pytest.fixture(scope="module")
def measured():
    return read_measured(KERNELS)


# A source that no coefficient was fitted to: CUPTI times of an inference stack.
@pytest.mark.parametrize(("gpu", "bound"), [("A100-SXM-80GB", 0.10), ("H100-SXM-80GB", 0.15)])
def test_another_source_of_the_same_gpu(gpu, bound, measured):
    rows = measured.gemm[
        (measured.gemm["source"] == "vidur")
        & measured.gemm.is_in("gpu", evaluate.plan.names_of(gpu))
        & (measured.gemm["time_us"] > 50)
    ]
    kernels = gemm.kernels_of(rows, measured.gpus[gpu], "bf16")
    seconds = kernels.seconds_by(shipped())
    assert np.mean(np.abs(seconds / (rows["time_us"] * 1e-6) - 1)) < bound


@pytest.fixture(scope="module")
def scores(measured):
    return evaluate.evaluate(measured, workers=CORES)


def by_family(scores):
    return {(s.family, s.how): s for s in evaluate.overall(scores)}


@pytest.fixture(scope="module")
def overall(scores):
    return by_family(scores)


# Boards of players, whose 16-bit units run at half rate, and GPUs of the only other maker: without
# its own rows each is priced by GPUs of data centres, which says little of it.
UNLIKE = ("A6000", "RTX3090", "RTX4090", "MI355X")


@pytest.mark.parametrize(
    ("family", "how", "bound"),
    [
        ("gemm bf16", "shapes", 0.08),
        ("gemm bf16 large", "shapes", 0.06),
        ("gemm bf16", "gpu", 0.13),
        ("gemm bf16 large", "gpu", 0.09),
    ],
)
def test_errors_on_unseen_kernels_of_data_centres(family, how, bound, scores):
    alike = by_family([s for s in scores if s.gpu not in UNLIKE])
    assert alike[family, how].mean_error < bound


# Bounds of the mean error over all GPUs, a little above what docs/kernel_accuracy.md says.
@pytest.mark.parametrize(
    ("family", "how", "bound"),
    [
        ("gemm bf16", "shapes", 0.09),
        ("gemm bf16 large", "shapes", 0.07),
        ("gemm fp8", "shapes", 0.14),
        ("attention forward", "shapes", 0.13),
        ("elementwise large", "shapes", 0.08),
        ("gemm bf16", "gpu", 0.14),
        ("gemm bf16 large", "gpu", 0.11),
    ],
)
def test_errors_on_unseen_kernels(family, how, bound, overall):
    assert overall[family, how].mean_error < bound


def test_a_fit_knows_more_than_a_data_sheet(overall):
    for family in ("gemm bf16", "gemm fp8", "attention forward", "elementwise large"):
        assert 3 * overall[family, "shapes"].mean_error < overall[family, "datasheet"].mean_error


def test_the_chain_prices_with_the_formula_that_was_fitted(measured):
    (message,) = (
        g for g in parse(shipped()["a100_sxm_80gb.textproto"])["gemm"] if g["dtype"] == ["bf16"]
    )
    names = gemm.wanted("bf16")
    gpu = measured.gpus["A100-SXM-80GB"]
    sizes = {name: np.array([4096.0, 8192.0, 130.0]) for name in ("m", "n", "k")}
    kernels = Kernels("gemm", gpu, "bf16", sizes)
    coefficients = {name: value for name, value in scalars(message).items() if name in names}
    np.testing.assert_allclose(
        kernels.seconds(coefficients), kernels.seconds_by(shipped()), rtol=1e-12
    )
