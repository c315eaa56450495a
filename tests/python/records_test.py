"""Measured kernels from Python and the command line."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import plancast as pc
import pytest
from plancast import arguments
from plancast.records import Kernel, Records

GPU = "H100-SXM-80GB"
HEADER = "gpu,m,n,k,batch,dtype,layout,time_us,tflops,time_us_min,time_us_max,n_meas,op,software,timing,thinned,source"  # noqa: E501


def gemm_csv(path: Path, rows: int, *, first: int = 0) -> Path:
    """Times that are made up, one shape a row."""
    lines = [HEADER] if first == 0 else []
    for i in range(first, first + rows):
        lines.append(
            f"{GPU},{128 * (i + 1)},4096,4096,1,bf16,TN,{20 + i * 0.37},,,,1,linear,torch 2.5,"
            "graph,0,made-up"
        )
    with path.open("w" if first == 0 else "a") as file:
        file.write("\n".join(lines) + "\n")
    return path


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "kernels.db")


@pytest.fixture
def plan():
    return pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100"), "tp=8,mb=1"


def contents(store: Records) -> list[tuple[str, list[float]]]:
    return sorted((str(r.kernel), [s.seconds for s in r.samples]) for r in store.select())


def test_a_file_enters_once(records, tmp_path):
    path = gemm_csv(tmp_path / "gemm.csv", 30)
    first = records.ingest(path)
    assert (first.rows, first.added, first.known) == (30, 30, 0)
    again = records.ingest(path)
    assert (again.rows, again.added, again.known) == (30, 0, 30)
    kernel = Kernel.gemm(128, 4096, 4096)
    assert records.query(kernel, gpu=GPU, library="torch", version="2.5") == 20.0 * 1e-6
    assert records.query(kernel, gpu=GPU, library="torch", version="2.6") is None
    (sample,) = records.history(kernel, gpu=GPU, library="torch", version="2.5")
    assert (sample.source, sample.timing, sample.repetitions) == ("made-up", "graph", 1)


def test_a_file_that_has_grown_adds_its_new_rows(records, tmp_path):
    path = gemm_csv(tmp_path / "gemm.csv", 10)
    records.ingest(path)
    gemm_csv(path, 5, first=10)
    grown = records.ingest(path)
    assert (grown.added, grown.known) == (5, 10)
    gemm_csv(path, 5, first=15)
    assert records.ingest(path).added == 5
    assert all(len(samples) == 1 for _, samples in contents(records))


def test_an_ingest_that_is_killed_is_resumed(tmp_path):
    path = gemm_csv(tmp_path / "gemm.csv", 4000)
    whole = Records(tmp_path / "whole.db")
    whole.ingest(path)
    store = tmp_path / "killed.db"
    code = (
        "import sys, plancast.records.ingest as i; i.BATCH = 50;"
        "from plancast.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "records", "ingest", str(path), "-o", str(store)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    rng = random.Random(3)
    killed = 0
    for _ in range(6):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while not store.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() != 0
    assert killed
    resumed = Records(store)
    resumed.ingest(path)
    assert contents(resumed) == contents(whole)


def test_bad_files_are_told_and_leave_no_trace(records, tmp_path):
    path = tmp_path / "gemm.csv"
    gemm_csv(path, 3)
    path.write_text(path.read_text() + f"{GPU},x,4096,4096,1,bf16,TN,20,,,,1,linear,t,graph,0,s\n")
    with pytest.raises(pc.InputError, match="line 5: column `m` is `x`"):
        records.ingest(path)
    assert len(records) == 0
    good = path.read_text().splitlines()
    for bad in ("-20", "nan", "inf", "0", ""):
        path.write_text("\n".join([*good[:4], good[3].replace(",20.74,", f",{bad},")]) + "\n")
        with pytest.raises(pc.InputError, match="line 5: "):
            records.ingest(path)
        assert len(records) == 0
    path.write_text("gpu,gpu,m,n,k,dtype,time_us\nT4,T4,1,1,1,bf16,1\n")
    with pytest.raises(pc.InputError, match="two columns `gpu`"):
        records.ingest(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(pc.InputError, match="no columns of measured kernels"):
        records.ingest(path)
    path.write_text(HEADER + f"\n{GPU},1,2\n")
    with pytest.raises(pc.InputError, match="does not have 17 columns"):
        records.ingest(path)
    with pytest.raises(pc.InputError, match="there is no file"):
        records.ingest(tmp_path / "nothing.csv")
    with pytest.raises(pc.InputError, match="holds no files"):
        (tmp_path / "empty").mkdir()
        records.ingest(tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "gpu,m,n,k,layout,dtype,time_us\nT4,1,1,1,TN,bf16,1\n",
            "does not say what ran the kernel",
        ),
        ("gpu,phase,kh,kw,stride,time_us\nT4,fwd,1,1,1,1\n", "line 2: there is no column `dtype`"),
        (
            "gpu,op,num_tokens,group_m,time_us\nT4,grouped_gemm,1,1,1\n",
            "line 2: there is no column `phase`",
        ),
        (HEADER + f"\n{GPU},1,1,1,1,bf16,TN,9,,,,{2**63},linear,t,graph,0,s\n", "at most 2^53"),
        (HEADER + f"\n{GPU},{'9' * 400},1,1,1,bf16,TN,9,,,,1,linear,t,graph,0,s\n", "`m` is `999"),
        (HEADER + f"\n{GPU},{'x' * 200_000}\n", "is not CSV after line 1: field larger"),
    ],
    ids=["software", "dtype", "phase", "n_meas", "size", "field"],
)
def test_columns_that_are_missing_and_numbers_too_large_are_told(records, tmp_path, text, said):
    path = tmp_path / "kernels.csv"
    path.write_text(text)
    with pytest.raises(pc.InputError) as error:
        records.ingest(path)
    assert said in str(error.value)
    assert len(records) == 0


def test_samples_that_are_none_are_refused(records):
    kernel = Kernel.gemm(64, 64, 64)
    with pytest.raises(pc.InputError, match="positive seconds"):
        records.add(kernel, gpu=GPU, seconds=-1.0)
    with pytest.raises(pc.InputError, match="`seconds` is `'1'`"):
        records.add(kernel, gpu=GPU, seconds="1")
    with pytest.raises(pc.InputError, match="`gpu` is `None`"):
        records.add(kernel, gpu=None, seconds=1.0)
    with pytest.raises(pc.InputError, match="give a whole number"):
        records.add(kernel, gpu=GPU, seconds=1.0, repetitions=1.5)
    with pytest.raises(pc.InputError, match="give a Kernel"):
        records.add("gemm", gpu=GPU, seconds=1.0)


def test_bad_stores_are_told(tmp_path):
    with pytest.raises(pc.InputError, match="no record store"):
        Records(tmp_path / "none.db", create=False)
    with pytest.raises(pc.InputError, match="is a folder"):
        Records(tmp_path)
    text = tmp_path / "text.db"
    text.write_text("gpu,m,n,k\n" * 100)
    with pytest.raises(pc.InputError, match="not a database"):
        Records(text)


def test_other_tables_name_the_kernels_that_plans_run(records, tmp_path):
    (tmp_path / "attention.csv").write_text(
        "gpu,impl,phase,batch,q_len,kv_len,heads,kv_heads,head_dim,head_dim_v,dtype,kv_dtype,"
        "causal,window,time_us,tflops,timing,thinned,source\n"
        "H100-80GB,cudnn 9.19,train_bwd,1,4096,4096,4,1,128,128,bf16,,1,0,100,,graph,0,made-up\n"
        "H100-80GB,cudnn 9.19,train_bwd,1,4096,4096,4,1,128,128,bf16,,1,128,90,,graph,0,made-up\n"
    )
    (tmp_path / "conv.csv").write_text(
        "gpu,phase,batch,in_h,in_w,in_c,out_c,kh,kw,stride,pad,out_h,out_w,dtype,time_us,tflops,"
        "algo,software,timing,thinned,source\n"
        "T4,bwd_weight,8,28,28,64,128,3,3,2,1,14,14,fp32,300,,,cudnn8.9.2,event,0,made-up\n"
    )
    (tmp_path / "elementwise.csv").write_text(
        "gpu,op,phase,rows,cols,elements,dtype,time_us,n_meas,software,timing,thinned,source\n"
        "T4,rmsnorm,bwd,1024,4096,4194304,bf16,50,1,torch 2.5,graph,0,made-up\n"
    )
    (tmp_path / "moe.csv").write_text(
        "gpu,op,phase,dtype,num_tokens,hidden,inter,topk,num_experts,moe_tp,moe_ep,distribution,"
        "groups,group_m,n,k,time_us,tflops,software,timing,thinned,source\n"
        "T4,grouped_gemm,bwd_grad_act,bf16,,,,,,,,balanced,8,512,1024,2048,80,,te,graph,0,made-up\n"
        "T4,fused_moe_ffn,fwd,bf16,16,7168,2048,8,384,2,1,balanced,,,,,3320,,te,graph,0,made-up\n"
    )
    result = records.ingest(tmp_path)
    assert (result.rows, result.added) == (6, 4)
    assert dict(result.unusable) == {
        "attention over a window": 1,
        "`fused_moe_ffn` is several kernels": 1,
    }
    attention = Kernel.attention(
        batch=1, heads=4, kv_heads=1, q_len=4096, head_dim=128, backward=True
    )
    assert records.query(attention, gpu=GPU, library="cudnn", version="9.19") == 100 * 1e-6
    conv = Kernel.convolution(
        batch=8, in_size=(28, 28), in_channels=64, out_channels=128, stride=2, which="wgrad",
        channels_last=False, dtype="fp32",
    )  # fmt: skip
    assert records.query(conv, gpu="T4", library="cudnn", version="8.9.2") == 300 * 1e-6
    grouped = Kernel.gemm(512, 1024, 2048, batch=8, which="dgrad")
    assert records.query(grouped, gpu="T4", library="te") == 80 * 1e-6
    norm = Kernel.memory("rms_norm.bwd", read_bytes=4 * 4194304, write_bytes=2 * 4194304)
    assert records.query(norm, gpu="T4", library="torch", version="2.5") == 50 * 1e-6


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        *((name, name) for name in arguments.DTYPES),
        *((name.replace("-", "_").upper(), name) for name in arguments.DTYPES),
        ("fp8_e4m3", "fp8"),
        ("fp8_static", "fp8"),
        ("fp8_rowwise", "fp8-row"),
        ("fp8_block", "fp8-block"),
    ],
)
def test_every_type_that_products_may_have_enters(records, tmp_path, word, dtype):
    path = tmp_path / "gemm.csv"
    path.write_text(gemm_csv(path, 1).read_text().replace(",bf16,", f",{word},"))
    assert records.ingest(path).added == 1
    kernel = Kernel.gemm(128, 4096, 4096, dtype=dtype)
    assert records.query(kernel, gpu=GPU, library="torch", version="2.5") == 20.0 * 1e-6
    machine = pc.Machine.preset("dgx-h100")
    assert dtype == "nvfp4" or records.estimate(kernel, machine).knowledge == "measured"


def test_a_type_that_is_none_is_counted(records, tmp_path):
    path = tmp_path / "gemm.csv"
    path.write_text(gemm_csv(path, 2).read_text().replace(",bf16,", ",fp7,"))
    assert dict(records.ingest(path).unusable) == {"type `fp7`": 2}


def test_kernels_that_are_none_are_refused():
    with pytest.raises(pc.InputError, match="`m` is 0"):
        Kernel.gemm(0, 1, 1)
    with pytest.raises(pc.InputError, match="passes are"):
        Kernel.gemm(1, 1, 1, which="sideways")
    with pytest.raises(pc.InputError, match="no pass `sideways`"):
        Kernel.convolution(batch=1, in_size=(8, 8), in_channels=1, out_channels=1, which="sideways")
    with pytest.raises(pc.InputError, match="stride is 0"):
        Kernel.convolution(batch=1, in_size=(8, 8), in_channels=1, out_channels=1, stride=0)
    with pytest.raises(pc.InputError, match="bf61"):
        Kernel.gemm(1, 1, 1, dtype="bf61")


def slow(records: Records, plan, factor: float) -> None:
    """Every kernel of the plan takes `factor` times what the shipped models say."""
    from plancast.profiling.grid import kernels_of_plan

    empty = Records(records.path.with_name("empty.db"))
    for kernel in kernels_of_plan(*plan, batch=8):
        seconds = factor * empty.estimate(kernel, plan[1]).seconds
        records.add(kernel, gpu=GPU, seconds=seconds, library="torch", version="2.5")


def test_a_plan_goes_by_its_records(records, plan):
    shipped = pc.predict(*plan, batch=8)
    assert pc.predict(*plan, batch=8, records=records).iteration_time == shipped.iteration_time
    slow(records, plan, 1.5)
    measured = pc.predict(*plan, batch=8, records=records)
    kernels = shipped.breakdown()["compute"]
    assert measured.breakdown()["compute"] == pytest.approx(1.5 * kernels, rel=0.03)
    assert measured.knowledge()["measured"] > 0.9
    # The interval narrows.
    width = [f.interval[1] / f.interval[0] for f in (shipped, measured)]
    assert width[1] < width[0]
    # Records of another version are none.
    other = pc.predict(*plan, batch=8, records=records.only(library="torch", version="2.6"))
    assert other.iteration_time == shipped.iteration_time
    # Another shape lies between records.
    near = pc.predict(*plan[:2], "tp=8,mb=2", batch=16, records=records)
    assert near.knowledge()["interpolated"] > 0.3


def test_a_session_sees_what_is_added_to_its_store(records, plan):
    session = pc.Session(records=records)
    before = pc.predict(*plan, batch=8, session=session).iteration_time
    slow(records, plan, 2.0)
    assert pc.predict(*plan, batch=8, session=session).iteration_time > 1.3 * before


def test_a_session_and_records_are_one_too_many(records, plan):
    with pytest.raises(pc.InputError, match=r"Session\(records=records\)"):
        pc.predict(*plan, batch=8, session=pc.Session(), records=records)
    with pytest.raises(pc.InputError, match="give a Records"):
        pc.predict(*plan, batch=8, records="kernels.db")


def test_ranking_goes_by_records(records, plan):
    slow(records, plan, 3.0)
    space = {"batch": 8, "space": "tp=8,pp=1,mb=1,zero=0,recompute=none"}
    shipped = pc.rank(*plan[:2], **space)[0].iteration_time
    assert pc.rank(*plan[:2], **space, records=records)[0].iteration_time > 1.5 * shipped


def test_the_command_line(cli, tmp_path, records, plan):
    path = gemm_csv(tmp_path / "gemm.csv", 12)
    store = str(tmp_path / "cli.db")
    answer = cli.json("records", "ingest", str(path), "-o", store)
    assert (answer["added"], answer["kernels"]) == (12, 12)
    assert cli.json("records", "show", store)["records"] == [
        {"gpu": GPU, "op": "gemm", "source": "made-up", "kernels": 12, "samples": 12}
    ]
    code, out, _ = cli("records", "show", store)
    assert code == 0
    assert "made-up" in out
    words = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", "tp=8,mb=1", "--batch", "8"]
    slow(records, plan, 2.0)
    before = cli.json("predict", *words)
    after = cli.json("predict", *words, "--records", str(records.path), "--library", "torch:2.5")
    assert after["iteration_time_s"] > 1.3 * before["iteration_time_s"]
    none = cli.json("predict", *words, "--records", str(records.path), "--library", "torch:3")
    assert none["iteration_time_s"] == before["iteration_time_s"]
    assert "no record store" in cli.error("predict", *words, "--records", str(tmp_path / "x.db"))
    ranked = cli.json(
        "rank", *words[:4], "--batch", "8", "--space", "tp=8,pp=1,mb=1,zero=0,recompute=none",
        "--records", str(records.path),
    )  # fmt: skip
    best = ranked["plans"][0]
    words[5] = best["strategy"]
    same = cli.json("predict", *words, "--records", str(records.path))
    assert best["iteration_time_s"] == same["iteration_time_s"] > 1.3 * before["iteration_time_s"]
    compared = cli.json("compare", *words, "-s", "tp=4,mb=1", "--records", str(records.path))
    assert compared["plans"][0]["iteration_time_s"] == same["iteration_time_s"]
    assert "no record store" in cli.error("validate", "rows.csv", "--records", "nowhere.db")
    assert "give --records" in cli.error("predict", *words, "--library", "torch")
    assert "no record store" in cli.error("records", "show", str(tmp_path / "x.db"))
