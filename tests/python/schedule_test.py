"""Pipeline schedules by name, as tables, and in files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import plancast as pc
import pytest

TABLE = "F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 B1.0"
V = "v: F0.0 F0.1 B0.1 B0.0;F0.0 F0.1 B0.1 B0.0"
COLUMNS = "stage,position,phase,micro_batch,chunk"


def rows(table: str, columns: str = COLUMNS) -> str:
    """The table with a row for each step, in the order of `columns`."""
    lines = [columns]
    for stage, row in enumerate(table.split(";")):
        for position, step in enumerate(row.split()):
            micro_batch, chunk = step[1:].split(".")
            cells = {"stage": stage, "position": position, "phase": step[0],
                     "micro_batch": micro_batch, "chunk": chunk}  # fmt: skip
            lines.append(",".join(str(cells[name]) for name in columns.split(",")))
    return "\n".join(lines) + "\n"


def predict(small: pc.Model, schedule: str, batch: int = 2, pp: int = 2) -> pc.Forecast:
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=pp)
    plan = f"pp={pp},mb=1,schedule={schedule}"
    # Whose transfers nobody waits for: with others, 1F1B would wait and tables would not.
    return pc.predict(small, machine, plan, batch=batch, profile="torchtitan")


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(rows(TABLE))
    return path


@pytest.mark.parametrize(
    "text",
    [rows(TABLE), rows(TABLE, "chunk,phase,stage,micro_batch,position"),
     TABLE.replace(";", "\n"), "# mine\n" + TABLE.replace(";", "\n\n").replace(".0", "")],
)  # fmt: skip
def test_a_file_is_carried_as_what_it_holds(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    tree = pc.Strategy.parse(f"pp=2,mb=1,schedule={path}")
    path.unlink()
    assert tree.short_form == f"pp=2,mb=1,schedule={TABLE}"
    assert pc.Strategy.from_yaml(tree.to_yaml()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_a_trees_file_names_it_from_where_it_is(tmp_path, table_file):
    del table_file
    tree = tmp_path / "tree.yaml"
    tree.write_text("plan: pp=2,mb=1,schedule=./table.csv\n")
    assert pc.Strategy.from_file(tree).short_form == f"pp=2,mb=1,schedule={TABLE}"


def test_the_table_of_a_rule_is_the_rule(small, table_file):
    named, listed = predict(small, "1f1b"), predict(small, str(table_file))
    assert listed.iteration_time == named.iteration_time
    assert listed.peak_memory == named.peak_memory
    assert listed.chosen["schedule"] == "table"


def test_gradients_of_weights_may_come_later(small):
    """Where kernels take longer than it takes to launch them, zero-bubble schedules are faster."""
    large = pc.Model.preset("gpt3-6.7b")
    whole, apart = (predict(large, name, batch=16, pp=4) for name in ("1f1b", "zbh1"))
    assert apart.iteration_time < 0.95 * whole.iteration_time
    assert apart.peak_memory > whole.peak_memory
    put_off = predict(small, "F0.0 F1.0 B0.0 B1.0 W0.0 W1.0;F0.0 B0.0 F1.0 B1.0 W0.0 W1.0")
    assert put_off.peak_memory >= predict(small, "1f1b").peak_memory


def test_what_software_keeps_of_an_op_stays_for_its_weights():
    """Megatron-Core says what clamped activations keep, torchtitan what its products do."""
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    oss = pc.Model.preset("gpt-oss-20b", seq=1024)
    whole, apart = (
        pc.predict(oss, machine, f"pp=8,mb=1,schedule={name}", batch=32, profile="megatron-core")
        for name in ("1f1b", "zb1p")
    )
    assert apart.peak_memory > whole.peak_memory
    eager = pc.predict(
        pc.Model.preset("llama3-8b", seq=1024),
        machine,
        "pp=8,mb=1,schedule=zbv",
        batch=32,
        profile="torchtitan-eager",
    )
    assert eager.iteration_time > 0


def test_mixtures_in_8_bits_run_in_both_directions():
    """DeepSeek-V3's plan: pairs of passes, weights' gradients of 8-bit products put off."""
    model = pc.Model.preset("deepseek-v3-l8")
    machine = pc.Machine.preset("dgx-h100", hosts=2)
    plan = "pp=4,ep=4,mb=1,recompute=selective:mla_up_proj+layernorm,overlap=ep,schedule="

    def forecast(schedule, dtype):
        return pc.predict(model, machine, plan + schedule, batch=64, dtype=dtype)

    fp8, bf16 = (forecast("dualpipe", dtype) for dtype in ("fp8-block", "bf16"))
    assert fp8.iteration_time < bf16.iteration_time
    kept = [sum(stage.activations for stage in forecast.memory) for forecast in (fp8, bf16)]
    assert kept[0] < kept[1]
    assert not any("DualPipe" in warning for warning in fp8.warnings)


@pytest.mark.parametrize("table", [rows(V[3:]), V[3:].replace(";", "\n")])
def test_a_file_may_say_where_layers_are(tmp_path, table):
    path = tmp_path / "table.csv"
    path.write_text("# a V\nv:\n" + table)
    assert pc.Strategy.parse(f"pp=2,vpp=2,mb=1,schedule={path}").short_form.endswith(V)


def test_a_v_has_both_ends_of_the_model_on_one_stage():
    """Without a bubble it is faster; its last stage has neither embedding nor head."""
    large = pc.Model.preset("gpt3-6.7b")
    plain, turned = (predict(large, name, batch=16, pp=4) for name in ("1f1b", "zbv"))
    assert turned.iteration_time < 0.9 * plain.iteration_time
    first, last = turned.memory[0], turned.memory[-1]
    assert first.parameters > last.parameters
    assert plain.memory[0].parameters < first.parameters


def test_two_copies_hold_parameters_twice():
    large = pc.Model.preset("llama3-8b")
    plain, both = (predict(large, name, batch=16, pp=4) for name in ("1f1b", "dualpipe"))
    parameters = [sum(c.parameters * c.ranks for c in f.memory) for f in (plain, both)]
    assert parameters[1] == pytest.approx(2 * parameters[0], rel=0.01)


def test_spaces_name_schedules(small, table_file):
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=2)
    space = f"pp=2,tp=1,mb=1,vpp=1,recompute=none,zero=0,schedule=1f1b|zb1p|{table_file}"
    ranking = pc.rank(small, machine, batch=2, space=space)
    assert len(ranking) == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "has no rows"),
        (COLUMNS, "columns and no rows"),
        ("stage,phase\n0,F\n", "line 1: the columns are stage, phase"),
        (rows(TABLE) + "0,0,F,0\n", "line 10: 4 cells, and there are 5 columns"),
        (rows(TABLE) + "0,0,F,0,0\n", "line 10: stage 0 has a step at position 0 already"),
        (rows(TABLE) + "0,-1,F,0,0\n", "line 10: `position` is `-1`"),
        (rows(TABLE) + "0,4,1,0,0\n", "line 10: `phase` is `1`"),
        (rows(TABLE) + "3,0,F,0,0\n", "no step of stage 2, and some of stage 3"),
        (rows(TABLE) + "0,6,F,0,0\n", "stage 0 has no step at position 4"),
        (rows(TABLE) + "0,4,X,0,0\n", "stage 0, position 4: `X0.0` is no step"),
        ("F0.0 B0.0\nF0.0;B0.0\n", "line 2: a row has steps with spaces between them"),
        ("F0.0 F1.0 B0.0 B1.0\nF0.0 B0.0 B1.0 F1.0\n",
         "stage 1, position 2 (`B1.0`): it goes back before it went forward"),
        ("F0.0 B0.0 F1.0 B1.0\nF0.0 F1.0 B0.0 B1.0\n", "the stages wait for each other: stage 0"),
    ],
)  # fmt: skip
def test_faults_name_the_place(cli, small_file, tmp_path, text, fault):
    path = tmp_path / "table.csv"
    path.write_text(text)
    code, _, err = cli("predict", "-m", small_file, "-c", "dgx-a100-80g:1", "-s",
                       f"tp=4,pp=2,mb=1,schedule={path}", "--batch", "2")  # fmt: skip
    assert code == 2
    assert fault in err


def test_a_file_larger_than_any_schedule_is_not_read(tmp_path):
    (tmp_path / "table.txt").write_bytes(b" " * ((12 << 20) + 1))
    with pytest.raises(pc.InputError, match="holds more than 12 MiB"):
        pc.predict(
            pc.Model.preset("gpt2"),
            pc.Machine.preset("dgx-a100-80g"),
            f"pp=2,mb=1,schedule={tmp_path}/table.txt",
            batch=8,
        )


def test_json_has_the_table(cli, small_file, table_file):
    code, out, err = cli("predict", "-m", small_file, "-c", "dgx-a100-80g:1", "-s",
                         f"tp=4,pp=2,mb=1,schedule={table_file}", "--batch", "2",
                         "--json")  # fmt: skip
    assert code == 0, err
    assert TABLE in json.dumps(json.loads(out))


@pytest.mark.parametrize("framework", ["megatron-core", "torchtitan"])
@pytest.mark.parametrize("schedule", ["zb1p", "eager-1f1b", TABLE])
def test_frameworks_refuse_what_they_do_not_run(framework, schedule):
    with pytest.raises(pc.InputError, match="cannot run `schedule="):
        zero = "zero=3" if framework == "torchtitan" else "zero=1"
        tree = pc.Strategy.parse(f"dp=2,pp=2,{zero},mb=1,schedule={schedule}")
        tree.launch_config(framework, gpus=4)


def test_norms_and_gradients_of_shared_tables_meet_apart():
    """T5's stages share tables of positions in several swaps, beside the norm's way."""
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    model = pc.Model.preset("t5-small")
    plan = "dp=2,tp=1,pp=4,mb=1"
    at_end = pc.predict(model, machine, plan, batch=16)
    validated = pc.predict(model, machine, plan + ",optimizer=post-validated", batch=16)
    assert validated.iteration_time <= at_end.iteration_time
