"""Tables of measured rows are read strictly; a value nobody can mean names its row."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.accuracy.table import Table
from plancast.accuracy.validation.rows import read_rows

NEEDED = "row_id,source,model,machine,strategy,global_batch,seq_len"
ROW = "r,s,m,dgx-a100-80g:1,tp=8,8,256"


def refusal(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(pc.InputError) as error:
        read_rows([path])
    return str(error.value)


def test_reads_what_spreadsheets_write(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x,y"\r\n\r\n2, z \r\n')
    rows = list(Table(path).rows())
    assert [(row.whole("a"), row.text("b")) for row in rows] == [(1, "x,y"), (2, "z")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,a\n1,2\n", "two columns `a`"),
        (f"{NEEDED}\nr,s\n", ":2: the row has 2 values and the header 7 columns"),
        (f"{NEEDED}\n{ROW},more\n", ":2: the row has 8 values"),
        (f'{NEEDED}\n"r,s\n', "is not CSV"),
        (f"{NEEDED}\n{'x' * 200_000}\n", "is not CSV"),
        (bytes(range(256)), "not text"),
        (f"{NEEDED}\n,{ROW[2:]}\n", "`row_id` is missing"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, said):
    assert said in refusal(tmp_path, text)


@pytest.mark.parametrize("batch", ["nan", "inf", "-8", "0", "1.5", "many"])
def test_batches_nobody_can_mean(tmp_path, batch):
    text = f"{NEEDED}\n{ROW.replace(',8,', f',{batch},')}\n"
    assert "t.csv`:2: `global_batch` is" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("iter_time_s", "nan"),
        ("iter_time_s", "inf"),
        ("iter_time_s", "0"),
        ("iter_time_s", "-1"),
        ("tflops_per_gpu", "0"),
        ("mfu", "0"),
        ("mfu", "47"),
        ("peak_mem_gb", "-1"),
        ("oom", "maybe"),
        ("tied_embeddings", "x"),
        ("layers", "1.5"),
    ],
)
def test_values_nobody_can_mean(tmp_path, column, value):
    error = refusal(tmp_path, f"{NEEDED},{column}\n{ROW},{value}\n")
    assert f"t.csv`:2: `{column}` is" in error


def test_a_key_of_the_strategy_given_twice(tmp_path):
    text = f"{NEEDED}\n{ROW.replace('tp=8', chr(34) + 'tp=8,tp=4' + chr(34))}\n"
    assert "`tp` twice" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("preset\nx\n", "no column `gpu`"),
        ("gpu\nx\n", "no column `preset`"),
        ("preset,gpu\nx\n", "1 values"),
    ],
)
def test_machines_that_are_refused(cli, tmp_path, text, said):
    rows, machines = tmp_path / "rows.csv", tmp_path / "machines.csv"
    rows.write_text(f"{NEEDED}\n{ROW}\n")
    machines.write_text(text)
    assert said in cli.error("validate", str(rows), "--machines", str(machines))


@pytest.mark.parametrize("sms", ["nan", "inf", "many", "-1"])
def test_figures_of_a_machine_nobody_can_mean(cli, tmp_path, sms):
    rows, machines = tmp_path / "rows.csv", tmp_path / "machines.csv"
    rows.write_text(f"{NEEDED}\n{ROW}\n")
    machines.write_text(f"preset,gpu,sms\ndgx-a100-80g,A100,{sms}\n")
    (row,) = cli.json("validate", str(rows), "--machines", str(machines))["rows"]
    assert "`sms`" in row["unsupported"]
