"""The least squares behind collectives/data/protocols.textproto."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from plancast.accuracy import calibrate_collectives
from plancast.accuracy.calibration import collectives, linear, rccl
from plancast.cli.main import main
from plancast.errors import InputError


def test_ring_by_hand() -> None:
    """8 devices at 300 GB/s: 14 hops of 2.6 us and 1.75 of the bytes, at 90 %."""
    cost = collectives.Cost("nvlink3", "ring", "Simple", (), 10, 2, 0, 0.9)
    row = collectives.Row("nvlink3", "all_reduce", 8, 270e6, 1)
    assert collectives.node_time(cost, row) == pytest.approx(10 + 14 * 2.6 + 1.75 * 270e6 / 270e3)


def test_all_pairs_by_hand() -> None:
    """Two steps of all_reduce, one of all_gather, over seven links of 64 GB/s."""
    cost = collectives.Cost("xgmi", "direct", "LL", (), 10, 0.05, 0, 0.5)
    both = collectives.Row("xgmi", "all_reduce", 8, 224e3, 1)
    one = collectives.Row("xgmi", "all_gather", 8, 224e3, 1)
    assert collectives.node_time(cost, both) == pytest.approx(10 + 2 * 0.5 + 1.75)
    assert collectives.node_time(cost, one) == pytest.approx(10 + 0.5 + 0.875)


def test_rccl_is_fitted_to_its_log() -> None:
    rows = rccl.rows()
    assert (len(rows), rows[0].bytes, rows[-1].time) == (25, 1024, 94254)
    like = [
        collectives.Cost("nvlink3", "ring", "LL", (), 9, 0.25, 1, 0.8),
        collectives.Cost("nvlink3", "direct", "Simple", (), 25, 0.1, 2, 0.8),
    ]
    *fitted, message = rccl.fitted(rows, like)
    assert len({cost.base for cost in fitted}) == 1
    assert message.efficiency == pytest.approx(0.73)
    for row in rows:
        time = min(collectives.node_time(cost, row) for cost in fitted)
        assert time == pytest.approx(row.time, rel=0.1)


def test_fill_is_the_geometric_mean_of_hops_and_transfer() -> None:
    cost = collectives.Cost("nvlink3", "ring", "Simple", (), 0, 0.4, 2, 1)
    row = collectives.Row("nvlink3", "all_gather", 2, 600e3, 1)
    assert collectives.node_time(cost, row) == pytest.approx(1 + 1 + 2 * math.sqrt(1 * 1))


def test_fit_finds_what_made_the_rows() -> None:
    truth = [
        collectives.Cost("nvlink4", "ring", "LL", (), 6, 0.5, 0.5, 0.3),
        collectives.Cost("nvlink4", "ring", "Simple", (), 15, 1.5, 1.0, 0.85, local=0.2),
    ]
    rng = random.Random(1)
    rows = []
    for members in (2, 4, 8):
        for exponent in range(9, 31):
            row = collectives.Row("nvlink4", "all_reduce", members, 2.0**exponent, 1)
            row.time = min(collectives.node_time(cost, row) for cost in truth)
            row.time *= rng.uniform(0.99, 1.01)
            rows.append(row)
    fitted = calibrate_collectives.ring_costs("nvlink4", (), 0)
    collectives.fit(fitted, rows, collectives.node_time, lambda row: (0, 1))
    for row in rows:
        time = min(collectives.node_time(cost, row) for cost in fitted)
        assert time == pytest.approx(row.time, rel=0.08)
    assert fitted[1].sigma < 0.04
    assert fitted[1].efficiency == pytest.approx(0.85, rel=0.1)


def test_parameters_stay_in_their_bounds() -> None:
    row = collectives.Row("nvlink4", "all_reduce", 8, 1e9, 1)  # far too fast
    fitted = calibrate_collectives.ring_costs("nvlink4", (), 0)
    collectives.fit(fitted, [row], collectives.node_time, lambda row: (0, 1))
    for cost in fitted:
        assert 0 < cost.efficiency <= 1
        assert cost.base > 0


HEADER = ",".join(calibrate_collectives.COLUMNS)
GOOD = "h100_sxm,8,1,all_reduce,1048576,fp16,40,NCCL 2.27,aic"


def measured(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "collective.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_of_several_sources_are_read(tmp_path: Path) -> None:
    path = measured(
        tmp_path,
        HEADER,
        GOOD,
        "h100_sxm,8,1,all_reduce,1048576,int8,50,NCCL 2.27,aic",
        "h100_sxm,8,1,deepep_dispatch,,fp16,,DeepEP,aic",
        "b60,8,1,all_reduce,1048576,fp16,40,oneCCL,aic",
    )
    fast, slow = calibrate_collectives.read_nodes(path)
    assert (fast.link, fast.members, fast.bytes, fast.time, fast.nvls) == (
        "nvlink4", 8, 1048576, 40, True,
    )  # fmt: skip
    assert (slow.time, slow.nvls) == (50, False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("h100_sxm,8,1,all_reduce,1048576", "csv`:3: the row has 5 values and the header 9"),
        (GOOD.replace(",8,", ",,"), "csv`:3: `gpus` is missing or 0"),
        (GOOD.replace(",8,", ",0,"), "csv`:3: `gpus` is missing or 0"),
        (GOOD.replace(",8,", ",2.5,"), "csv`:3: `gpus` is `2.5`; it must be a whole number"),
        (GOOD.replace(",40,", ",nan,"), "csv`:3: `time_us` is `nan`; it must be a number"),
        (GOOD.replace("1048576", "-1"), "csv`:3: `bytes` is `-1`; it must be a number above 0"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        calibrate_collectives.read_nodes(measured(tmp_path, HEADER, GOOD, line))
    assert said in str(error.value)


def test_a_missing_column_and_a_file_without_rows_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no column `bytes`"):
        calibrate_collectives.read_nodes(measured(tmp_path, HEADER.replace("bytes", "size"), GOOD))
    with pytest.raises(InputError, match="has no row that a fit uses"):
        calibrate_collectives.read_nodes(measured(tmp_path, HEADER))


def test_the_command_names_a_short_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels").mkdir()
    measured(tmp_path / "kernels", HEADER, "h100_sxm,8,1,all_reduce")
    arguments = ["calibrate", "--collectives", str(tmp_path), "-o", str(tmp_path / "out")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "the row has 4 values and the header 9 columns" in error
    assert "Traceback" not in error


def test_equations_are_solved() -> None:
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    right = np.array([1.0, 2.0, 3.0])
    assert matrix @ linear.solve(matrix, right) == pytest.approx(right)
    assert linear.dot(np.array([1e16, 1.0, -1e16]), np.ones(3)) == 1
