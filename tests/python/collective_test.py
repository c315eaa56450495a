"""`plancast collective`, pc.collective and the reader of nccl-tests' output."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.cli.collective import parse_sizes
from plancast.communication import nccl_tests
from plancast.communication.collective_table import bus_factor

# H200 x8, NCCL 2.27.7 (stas00/ml-engineering): bus bandwidth by size; what it took follows.
H200_BUSBW = {
    32 << 10: 1.44,
    1 << 20: 39.9,
    4 << 20: 107,
    16 << 20: 220,
    64 << 20: 347,
    256 << 20: 436,
    4 << 30: 473,
    16 << 30: 482,
}


def log_of(busbw: dict[int, float]) -> str:
    lines = [
        "# nThread 1 nGpus 8 minBytes 32768 maxBytes 17179869184",
        *(f"#  Rank {rank:2} Group  0 Pid 1 on host device {rank} [0x0f] NVIDIA H200"
          for rank in range(8)),
        "#       size         count      type   redop    root     time   algbw   busbw #wrong",
    ]  # fmt: skip
    for size, rate in busbw.items():
        time = size * 1.75 / rate / 1e3
        lines.append(f"{size:12} {size // 4:12} float sum -1 {time:9.2f} 1.0 {rate:7.2f} 0")
    return "\n".join([*lines, "# Avg bus bandwidth    : 200"])


def test_sizes_are_ranges_and_lists() -> None:
    assert parse_sizes("1K..8K") == [1024, 2048, 4096, 8192]
    assert parse_sizes("1M..64M*4") == [1 << 20, 4 << 20, 16 << 20, 64 << 20]
    assert parse_sizes("1.5K,3,1GiB") == [1536, 3, 1 << 30]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no size"),
        ("8K..1K", "smaller size first"),
        ("1..2*1", "factor above 1"),
        ("1..1T*1.0001", "more than 1000"),
        ("0", "between 1 byte"),
        ("lots", "`lots` is no size"),
    ],
)
def test_other_sizes_are_refused(text: str, says: str) -> None:
    with pytest.raises(pc.InputError, match=says):
        parse_sizes(text)


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert bus_factor("all_reduce", 8) == 1.75
    assert bus_factor("all_gather", 8) == bus_factor("reduce_scatter", 8) == 0.875
    assert bus_factor("all_to_all", 4) == 0.75
    assert bus_factor("broadcast", 8) == bus_factor("send_recv", 2) == 1


def test_the_table_says_what_runs() -> None:
    table = pc.collective(pc.Machine.preset("dgx-h200"), sizes=[1 << 20, 2 << 20, 1 << 30])
    assert [(row.algorithm, row.protocol) for row in table.rows] == [
        ("ring", "LL"),
        ("nvls", "Simple"),
        ("nvls", "Simple"),
    ]
    assert [row.channels for row in table.rows] == [24, 16, 16]
    frame = table.to_pandas()
    assert list(frame["size_bytes"]) == [1 << 20, 2 << 20, 1 << 30]
    busbw = frame["busbw_gb_per_s"] / frame["algbw_gb_per_s"]
    assert list(busbw) == pytest.approx([1.75] * 3)


def test_the_h200_curve_is_met_with_its_launch_explicit() -> None:
    log = nccl_tests.parse_log(log_of(H200_BUSBW), "log")
    assert log.ranks == 8
    table = pc.collective(pc.Machine.preset("dgx-h200"), sizes=[r.size_bytes for r in log.rows])
    comparison = nccl_tests.compare(table.rows, log)
    launched = comparison.with_launch(comparison.launch_us)
    assert 15 < comparison.launch_us < 30
    assert launched.mean_error <= 0.10
    assert launched.worst_error <= 0.15
    for row in table.rows:
        assert row.algorithm == ("ring" if row.size_bytes <= 1 << 20 else "nvls")


def test_logs_are_read_tolerantly() -> None:
    text = (
        "srun: job 1\n0: [1,0]<stdout>: /opt/all_gather_perf -b 8\n"
        "[1,0]<stdout>:   8192 64  half  none  -1  16.4  0.5  0.44  0  16.1  0.5  0.45  N/A\n"
        "2024-01-01 host   16384  4096  float  12.5  1.31  1.31  0e+00\n"
        "       32768   8192  float  sum  -1  N/A  N/A  N/A\n"
        "# Out of bounds values : 0 OK\nsome words 12 13\n"
    )
    log = nccl_tests.parse_log(text, "log")
    assert log.op == "all_gather"
    assert [(row.size_bytes, row.time_us) for row in log.rows] == [(8192, 16.4), (16384, 12.5)]
    assert log.skipped == (5,)


@pytest.mark.parametrize("text", ["", "hello", "\0" * 100, "1 2 3", "# 8 2 float sum -1 5 1 1"])
def test_other_text_is_no_log(text: str) -> None:
    with pytest.raises(pc.InputError, match="nccl-tests"):
        nccl_tests.parse_log(text, "`x.log`")


def test_command_prints_table_and_comparison(cli, tmp_path) -> None:
    path = tmp_path / "h200.log"
    path.write_text(log_of(H200_BUSBW))
    code, shown, _ = cli("collective", "-c", "dgx-h200:1", "--against", str(path))
    assert code == 0
    assert "busbw" in shown
    assert "median" in shown
    document = cli.json("collective", "-c", "dgx-h200:1", "--against", str(path))
    assert document["against"]["with_launch"]["worst_error"] <= 0.15
    assert [row["size_bytes"] for row in document["rows"]] == list(H200_BUSBW)


def test_command_names_mistakes(cli, tmp_path) -> None:
    def error(*words: str) -> str:
        return cli.error("collective", "-c", "dgx-h100:1", *words)

    assert "Did you mean `all_reduce`?" in error("--op", "all_reduc")
    assert "Did you mean `ring`?" in error("--algo", "rng")
    assert "9 GPUs of a machine of 8" in error("--gpus", "9")
    assert "no version of NCCL" in error("--nccl-version", "3")
    assert "no type" in error("--dtype", "fp32")
    assert "cannot be written" in error("--plot", str(tmp_path / "x.pdf"))
    assert "there is no file" in error("--against", str(tmp_path / "no.log"))
    assert "a launch of" in error("--launch", "-1")


def test_numbers_beyond_sense_are_no_rows() -> None:
    log = nccl_tests.parse_log(
        "8 2 float sum -1 1e999 0 0\n"
        + "9" * 5000
        + " 1 float sum -1 1.0 2.0 3.0\n16 4 float sum -1 5.0 0 0\n#  Rank "
        + "1" * 5000,
        "log",
    )
    assert [row.size_bytes for row in log.rows] == [16]
    assert log.skipped == (1,)
