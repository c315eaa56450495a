"""`plancast validate` on rows made for the test, and on the published ones."""

from __future__ import annotations

import json
from pathlib import Path

import plancast as pc
import pytest
from conftest import measured_row
from plancast.accuracy.validation.linear import linear_series
from plancast.accuracy.validation.rows import read_rows
from plancast.accuracy.validation.run import validate
from plancast.accuracy.validation.scoreboard import Scoreboard

COLUMNS = [
    "row_id", "source", "group", "model", "layers", "hidden", "heads", "kv_heads", "ffn_hidden",
    "vocab", "mlp", "norm", "position", "tied_embeddings", "experts", "seq_len", "machine",
    "strategy", "global_batch", "dtype", "software", "iter_time_s", "tflops_per_gpu", "mfu",
    "flops_formula", "peak_mem_gb", "oom", "assumptions",
]  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples" / "validation"


def write(folder, *rows, name="rows.csv"):
    lines = [",".join(COLUMNS)]
    for number, fields in enumerate(rows):
        values = measured_row(f"row-{number}", **fields)
        lines.append(",".join(f'"{values.get(column, "")}"' for column in COLUMNS))
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def one(folder, **fields):
    (result,) = validate([write(folder, fields)], workers=1).results
    return result


def test_json_has_the_documented_fields(cli, tmp_path):
    path = write(tmp_path, {}, {"strategy": "dp=2,tp=4,mb=1,recompute=none,attn=flash"})
    value = cli.json("validate", str(path))
    assert {"rows", "sources", "groups", "oom", "overall"} <= set(value)
    assert set(value["rows"][0]) == {
        "row_id", "measured", "predicted", "error", "interval", "fits", "predicted_peak_mem_gb",
        "chosen", "unsupported",
    }  # fmt: skip
    assert set(value["sources"]["here"]) == {
        "rows", "mape", "bias", "median", "p90", "max", "constant_mfu_mape",
    }  # fmt: skip
    assert set(value["groups"]["g"]) == {
        "rows",
        "spearman",
        "kendall",
        "regret",
        "constant_mfu_regret",
        "constant_hfu_regret",
    }
    assert value["oom"] == {"true_fit": 2, "false_fit": 0, "true_oom": 0, "false_oom": 0}
    assert set(value["overall"]) == {"row_weighted", "source_weighted"}
    for row in value["rows"]:
        assert row["error"] == pytest.approx(row["predicted"] / row["measured"] - 1)
        assert row["interval"][0] <= row["predicted"] <= row["interval"][1]
        assert row["unsupported"] is None


def test_tables_print(cli, tmp_path):
    code, out, err = cli("validate", str(write(tmp_path, {}, {"experts": 8})))
    assert code == 0, err
    assert "best constant MFU" in out
    assert "8 experts and no `topk`" in out


def test_markdown_for_the_documentation(cli, tmp_path):
    page = tmp_path / "accuracy.md"
    rows = write(tmp_path, {}, {"strategy": "dp=2,tp=4,mb=1"}, {"experts": 8})
    code, _, err = cli("validate", str(rows), "--report", str(page))
    assert code == 0, err
    text = page.read_text()
    assert "| here | 2 |" in text
    assert "| 1 | `small` has 8 experts and no `topk` |" in text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"layers": "", "hidden": "", "seq_len": ""}, "no dimensions"),
        ({"experts": 8}, "8 experts and no `topk`"),
        ({"strategy": "tp=4,pp=2,vpp=2,mb=1,vocab_parallel=vocab1"}, "vocab1"),
        ({"strategy": "dp=8,mb=1,offload=param"}, "offload"),
        ({"assumptions": "attention=mla"}, "latent attention of `small`"),
        ({"assumptions": "selective_means=odd_layers",
          "strategy": "dp=8,mb=1,recompute=selective"}, "odd_layers"),
        ({"machine": "unheard-of:4"}, "unheard-of"),
        ({"strategy": "dp=3,mb=1"}, "3"),
        ({"iter_time_s": "", "tflops_per_gpu": 100, "flops_formula": "unknown"}, "`unknown`"),
    ],
)  # fmt: skip
def test_unsupported_rows_say_why(tmp_path, fields, reason):
    result = one(tmp_path, **fields)
    assert result.predicted is None
    assert reason in (result.unsupported or "")


@pytest.mark.parametrize(
    ("assumptions", "recompute"),
    [
        ("selective_means=per_op_sac", "selective:op"),
        ("selective_means=torchtitan_default_per_op_sac", "selective:op"),
        ("selective_means=every_other_layer", "every:2"),
        ("recompute_modules=mlp+layernorm", "selective:layernorm+mlp"),
        ("recompute_modules=core_attn", "selective"),
        ("", "selective"),
    ],
)
def test_rows_say_what_selective_means(tmp_path, assumptions, recompute):
    row = {"strategy": "dp=8,mb=1,recompute=selective", "assumptions": assumptions}
    result = one(tmp_path, **row)
    assert result.unsupported is None
    assert result.chosen is not None
    assert result.chosen["recompute"] == recompute


def test_rows_say_that_activations_are_kept_in_parts(tmp_path):
    """DeepSpeed's partition_activations, on the device and on the host."""
    plan = "dp=2,tp=4,zero=1,mb=1,recompute=full"
    whole, parts = (
        one(tmp_path, strategy=plan, assumptions=f"partition_activations={said}") for said in (0, 1)
    )
    assert parts.predicted > whole.predicted  # gathered before backward
    assert parts.strategy == whole.strategy
    there = one(
        tmp_path,
        strategy=f"{plan},offload=optimizer+activations",
        assumptions="partition_activations=1;checkpoint_num_layers=2",
    )
    assert there.unsupported is None and there.chosen is not None
    assert there.chosen["offload"] == "optimizer"
    assert "one for 2" in there.chosen["checkpoints"]
    # Nobody to share them with.
    alone = one(tmp_path, strategy="dp=8,mb=1", assumptions="partition_activations=1")
    assert alone.unsupported is None


def test_unknown_keys_are_chosen_and_said(tmp_path):
    result = one(tmp_path, strategy="dp=2,tp=4", assumptions="mb=unknown;recompute=unknown")
    assert result.unsupported is None
    assert result.chosen is not None
    assert result.chosen["recompute"] == "none (unknown: first that fits)"
    best = min(
        pc.predict(
            pc.Model.from_config(
                name="small", layers=4, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256,
                tied_embeddings=True,
            ),
            pc.Machine.preset("dgx-a100-80g:1"),
            f"dp=2,tp=4,mb={size},recompute=none",
            batch=8,
        ).iteration_time
        for size in (1, 2, 4)
    )  # fmt: skip
    assert result.predicted == pytest.approx(best)


def test_an_oom_row_gets_a_time_and_a_verdict(tmp_path):
    huge = {"layers": 96, "hidden": 12288, "heads": 96, "kv_heads": 96, "ffn_hidden": 49152}
    board = validate(
        [write(tmp_path, {"oom": 1, "iter_time_s": ""}, {**huge, "oom": 1, "iter_time_s": ""})]
    )
    small_row, huge_row = board.results
    assert small_row.predicted and huge_row.predicted
    assert board.oom == {"true_fit": 0, "false_fit": 1, "true_oom": 1, "false_oom": 0}


def test_memory_in_the_meaning_of_the_row(tmp_path):
    device = one(tmp_path)
    allocated = one(tmp_path, assumptions="mem=allocated_max_over_ranks_GiB")
    decimal = one(tmp_path, assumptions="mem_unit=GB_as_printed_max_over_devices")
    assert allocated.predicted_peak_mem_gb < device.predicted_peak_mem_gb
    assert decimal.predicted_peak_mem_gb > allocated.predicted_peak_mem_gb


def test_other_files_are_named_not_dropped(tmp_path):
    write(tmp_path, {})
    (tmp_path / "collectives.csv").write_text("row_id,machine,collective\n1,m,all_reduce\n")
    (tmp_path / "machines.csv").write_text("preset,gpu\na,b\n")
    (tmp_path / "layer_times.csv").write_text("row_id,layer_forward_ms\na,1\n")
    (tmp_path / "other.csv").write_text("x\n1\n")
    board = validate([tmp_path])
    assert len(board.results) == 1
    assert {Path(s.path).name for s in board.skipped} == {
        "collectives.csv", "machines.csv", "layer_times.csv", "other.csv",
    }  # fmt: skip


def test_machines_may_come_from_a_file(tmp_path):
    machines = tmp_path / "m.csv"
    machines.write_text(
        "preset,gpu,gpus_per_host,sms,hbm_gb,hbm_gb_per_s,fp32_tflops,tf32_tflops,fp16_tflops,"
        "bf16_tflops,l2_mb,intra_link,intra_gb_per_s_per_dir,topology,nics_per_host,"
        "nic_gbit_per_s,fabric,notes\n"
        "mine,A100-SXM-80GB,8,108,80,2039,19.5,156,312,312,40,nvlink3,300,nvswitch,8,200,"
        "infiniband,own\n"
    )
    rows = write(tmp_path, {"machine": "mine:1"}, {"machine": "dgx-a100-80g:1"})
    mine, shipped = validate([rows], machines=machines).results
    assert mine.predicted == pytest.approx(shipped.predicted, rel=0.02)


def test_a_wrong_number_names_its_place(tmp_path):
    path = write(tmp_path, {}, {"global_batch": "many"})
    with pytest.raises(pc.InputError, match=r"rows.csv`:3: `global_batch` is `many`"):
        validate([path])


def test_series_that_are_too_straight_are_named(tmp_path):
    straight = [
        {"strategy": f"dp=1,tp=8,mb=1,accum={m}", "global_batch": m, "iter_time_s": 0.5 + 0.25 * m}
        for m in (4, 8, 16, 32, 64)
    ]
    rows, _ = read_rows([write(tmp_path, *straight)])
    (warning,) = linear_series(rows)
    assert "5 rows of `here`" in warning
    noisy = [
        {**fields, "iter_time_s": fields["iter_time_s"] * (1 + 0.001 * (-1) ** i)}
        for i, fields in enumerate(straight)
    ]
    rows, _ = read_rows([write(tmp_path, *noisy)])
    assert linear_series(rows) == []


def test_scores_do_not_depend_on_the_number_of_workers(tmp_path):
    path = write(tmp_path, {}, {"strategy": "dp=4,tp=2,mb=1"}, {"strategy": "dp=8,mb=1"})
    first, second = validate([path], workers=1), validate([path], workers=3)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def test_an_empty_scoreboard_prints():
    assert Scoreboard(results=()).to_dict()["overall"] == {
        "row_weighted": {},
        "source_weighted": {},
    }


def test_the_shipped_rows_are_all_predicted():
    board = validate([EXAMPLES])
    assert len(board.results) == 42
    assert not board.unsupported
    assert not board.skipped
