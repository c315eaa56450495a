"""SimAI's workloads: read, written, and run on machines."""

from __future__ import annotations

import json
import random

import plancast as pc
import pytest
from plancast.communication import simai_run

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: {ep} pp: {pp} "
MORE = "vpp: {vpp} ga: {ga} all_gpus: {gpus} checkpoints: 0 checkpoint_initiates: 0"
MACHINE = pc.Machine.preset("dgx-h100", hosts=2)


def text(*lines, tp=8, ep=1, pp=1, vpp=1, ga=1, gpus=16, pp_comm=0):
    head = (HEAD + MORE).format(tp=tp, ep=ep, pp=pp, vpp=vpp, ga=ga, gpus=gpus)
    head += f" pp_comm {pp_comm}" if pp_comm else ""
    return "\n".join([head, str(len(lines)), *lines]) + "\n"


def read(*lines, **sizes):
    return pc.SimAiWorkload.from_text(text(*lines, **sizes))


def random_lines(seed):
    chance = random.Random(seed)
    words = ["NONE", *(f"{op}{group}" for op in ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER",
             "ALLTOALL") for group in ("", "_EP", "_DP_EP"))]  # fmt: skip

    def work():
        return f"{chance.randrange(10**7)} {chance.choice(words)} {chance.randrange(1, 10**9)}"

    return [f"layer{n} -1 {work()} {work()} {work()} 100" for n in range(chance.randrange(1, 9))]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_again(seed):
    workload = read(*random_lines(seed), tp=2, ep=2, pp=2, ga=4, gpus=32, pp_comm=4096)
    again = pc.SimAiWorkload.from_text(workload.to_text())
    assert again == workload
    assert again.to_text() == workload.to_text()


def test_lines_of_their_examples():
    workload = read(
        "grad_gather\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t2807758848\t100",
        "moe_grad_norm1 -1 1 NONE 0 1 NONE 0 1 ALLGATHER_DP_EP 19327352832 100",
        "attention_column -1 1750840 ALLGATHER 50331648 875420 REDUCESCATTER 0 875420 NONE 0 100",
        "mlp_moelayer -1 1 ALLTOALL_EP 100663296 1 ALLTOALL_EP 100663296 1 NONE 0 100",
        tp=2, ep=4, pp=2, vpp=8, ga=24, gpus=32, pp_comm=50331648,
    )  # fmt: skip
    assert (workload.dp, workload.ranks, workload.pp_bytes) == (8, 16, 50331648)
    gather, norm, column, experts = workload.layers
    assert gather.weight_gradient == (1, "all_gather", "dp", 2807758848)
    assert norm.weight_gradient.group == "dp_ep"
    assert column.forward == (1750840, "all_gather", "tp", 50331648)
    assert column.input_gradient == (875420, "", "", 0)
    assert experts.forward.group == "ep"
    assert workload.totals()["all_to_all ep"] == 2 * 100663296


def test_an_older_header_says_less():
    head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 4 all_gpus: 8"
    workload = pc.SimAiWorkload.from_text(f"{head}\n1\na -1 5 NONE 0 5 NONE 0 5 NONE 0 1\n")
    assert (workload.tp, workload.dp, workload.ep, workload.pp) == (4, 2, 1, 1)


def test_groups_of_a_kind_share_out_the_ranks():
    workload = read("a -1 5 NONE 0 5 NONE 0 5 NONE 0 1", tp=2, ep=2, gpus=16)
    for kind, size in (("tp", 2), ("dp", 8), ("ep", 2), ("dp_ep", 4)):
        groups = {workload.group_of(rank, kind) for rank in range(16)}
        assert {len(group) for group in groups} == {size}
        assert sorted(rank for group in groups for rank in group) == list(range(16))
        assert all(rank in workload.group_of(rank, kind) for rank in range(16))
    assert workload.group_of(5, "tp") == (4, 5)
    assert workload.group_of(5, "ep") == (5, 7)
    assert workload.group_of(5, "dp_ep") == (1, 5, 9, 13)
    named = json.loads(simai_run.groups_json(workload))
    assert sorted(map(tuple, named.values())) == sorted(
        {
            workload.group_of(rank, kind)
            for rank in range(16)
            for kind in ("tp", "dp", "ep", "dp_ep")
        }
    )


def test_kernels_alone_take_their_sum():
    workload = read(*[f"l{n} -1 1500300 NONE 0 2000400 NONE 0 999700 NONE 0 5" for n in range(4)])
    run = workload.run(MACHINE)
    # Whole microseconds, of which none is lost.
    assert run.time_s == pytest.approx(4 * 4500.4e-6, abs=1e-6)
    assert run.kernels_s == pytest.approx(run.time_s)


def test_a_collective_of_the_layer_stands_in_the_way():
    size = 64 << 20
    run = read(f"a -1 1000000 ALLREDUCE {size} 1000000 NONE 0 1000000 NONE 0 5").run(MACHINE)
    (row,) = pc.collective(MACHINE, "all_reduce", gpus=8, sizes=[size])
    assert run.time_s == pytest.approx(3e-3 + row.time_us / 1e6, rel=0.02)


def test_an_all_gather_counts_what_comes_out():
    size = 64 << 20
    run = read(f"a -1 1000000 ALLGATHER {size} 0 NONE 0 0 NONE 0 5").run(MACHINE)
    (row,) = pc.collective(MACHINE, "all_gather", gpus=8, sizes=[size])
    assert run.time_s == pytest.approx(1e-3 + row.time_us / 1e6, rel=0.02)


def test_gradients_are_sent_beside_earlier_layers():
    line = "{} -1 0 NONE 0 20000000 NONE 0 20000000 ALLREDUCE 16777216 5"
    run = read(*(line.format(n) for n in "abcd")).run(MACHINE)
    last = read(line.format("a")).run(MACHINE)
    # Only that of the first layer is left when kernels are through.
    assert run.time_s - run.kernels_s == pytest.approx(last.time_s - last.kernels_s, rel=1e-6)
    assert run.kernels_s == pytest.approx(4 * 40e-3)


def test_a_pipeline_adds_its_bubble_and_messages():
    line = "a -1 1000000 NONE 0 1000000 NONE 0 1000000 NONE 0 5"
    run = read(*[line] * 8, pp=2, ga=8, vpp=1, tp=8, gpus=16, pp_comm=1 << 20).run(MACHINE)
    assert run.stage_s == pytest.approx(24e-3)
    assert run.bubble_s == pytest.approx(run.stage_s / 8)
    assert run.messages_s > 0
    assert run.time_s == run.stage_s + run.bubble_s + run.messages_s


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("MODEL\n1\n", "must begin with `HYBRID_TRANSFORMER`"),
        (text("a -1 5 NONE 0").replace("\n1\n", "\n2\n"), "says `2` layers, and 1 follow"),
        (text("a -1 5 NONE 0"), "workload:3 has 5 columns"),
        (text("a -1 5 GATHER 4 5 NONE 0 5 NONE 0 5"), "`GATHER` is no collective"),
        (text("a -1 5 ALLREDUCE_TP 4 5 NONE 0 5 NONE 0 5"), "`ALLREDUCE_TP` is no collective"),
        (text("a -1 x NONE 4 5 NONE 0 5 NONE 0 5"), "`x` is no whole number"),
        (text("a", tp=3), "16 GPUs are no multiple of tp=3"),
        (text("a", ep=3), "with experts over ep=3"),
        (text("a").replace("checkpoints: 0", "checkpoints: 1 4"), "layers that are recomputed"),
        (text("a").replace("ga:", "gaa:"), "no `gaa:` in the first line. Did you mean `ga:`"),
        (text("a").replace("all_gpus: 16", ""), "needs `all_gpus: N`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(broken, words):
    with pytest.raises(pc.InputError) as error:
        pc.SimAiWorkload.from_text(broken)
    assert words in str(error.value)


def test_a_machine_may_be_too_small():
    with pytest.raises(pc.InputError, match="Give more hosts"):
        read("a -1 5 NONE 0 5 NONE 0 5 NONE 0 1", gpus=32).run(MACHINE)


def test_from_the_command_line(tmp_path, cli):
    file = tmp_path / "w.txt"
    file.write_text(text("a -1 1000000 ALLREDUCE 67108864 1000000 NONE 0 1000000 NONE 0 5"))
    code, out, error = cli("import", "workload", str(file), "-c", "dgx-h100:2", "--json")
    assert code == 0, error
    answer = json.loads(out)
    assert answer["layers"] == 1
    assert answer["time_s"] == pytest.approx(pc.SimAiWorkload.open(file).run(MACHINE).time_s)
    code, out, error = cli("import", "workload", str(file), "--out", str(tmp_path / "t"))
    assert code == 0, error
    code, out, error = cli("run", str(tmp_path / "t"), "-c", "dgx-h100:2", "--json")
    assert code == 0, error
    assert json.loads(out)["time_s"] == pytest.approx(answer["time_s"])
    code, _, error = cli("import", "workload", str(file), "--network", "n", "--system", "s")
    assert code == 2
    assert "SimAI" in error


@pytest.mark.parametrize(
    "plan", ["tp=2,sp,dp=8,zero=1,mb=1", "tp=2,sp,pp=2,dp=4,zero=1,mb=1", "tp=8,dp=2,zero=0,mb=1"]
)
def test_a_plan_says_what_its_rank_does(plan):
    model = pc.Model.from_config(
        name="m", layers=4, hidden=1024, heads=16, ffn=4096, vocab=4000, seq=2048
    )
    workload = pc.simai_workload(model, MACHINE, plan, batch=16)
    assert pc.SimAiWorkload.from_text(workload.to_text()) == workload
    assert workload.gpus == 16
    forecast = pc.predict(model, MACHINE, plan, batch=16)
    assert workload.ga == int(forecast.chosen["accum"])
    assert (workload.pp_bytes > 0) == (workload.pp > 1)
    # Every gradient is reduced once: in fp32, of a rank's share of the weights.
    totals = workload.totals()
    reduced = totals.get("reduce_scatter dp", 0) + totals.get("all_reduce dp", 0)
    assert reduced == pytest.approx(4 * forecast.memory[0].parameters / 2, rel=0.02)
    # Forward and backward go through each layer's two gathers or sums of tp.
    assert sum(work.ns for layer in workload.layers for work in layer.works) > 0
    run = workload.run(MACHINE)
    assert run.time_s > run.kernels_s > 0


def test_a_plan_of_tp_alone_runs_as_its_chakra_traces(tmp_path, cli):
    plan = ("-m", "gpt2", "-c", "dgx-h100:1", "-s", "tp=4,sp,dp=2,zero=0,mb=4", "--batch", "8")
    code, out, error = cli("export", "simai", *plan, "-o", str(tmp_path / "w.txt"))
    assert (code, error) == (0, "")
    assert "layers" in out
    code, out, error = cli(
        "import", "workload", str(tmp_path / "w.txt"), "-c", "dgx-h100:1", "--json"
    )
    assert code == 0, error
    ours = json.loads(out)["time_s"]
    code, _, error = cli("export", "chakra", *plan, "-o", str(tmp_path / "t"))
    assert code == 0, error
    code, out, error = cli("run", str(tmp_path / "t"), "-c", "dgx-h100:1", "--json")
    assert code == 0, error
    # SimAI has no kernels beside a collective of tp, which the traces have.
    traces = json.loads(out)["time_s"]
    assert traces < ours < 1.15 * traces


def test_an_unknown_option_is_named():
    with pytest.raises(pc.InputError, match="no option `bacth`"):
        pc.simai_workload(pc.Model.preset("gpt2"), MACHINE, "tp=2,mb=1", bacth=8)


def test_more_than_is_run_is_refused_before_it_is_made():
    workload = read("a -1 5000 NONE 0 5000 NONE 0 5000 NONE 0 1", gpus=1 << 20)
    with pytest.raises(pc.InputError, match="at most 65,536 ranks"):
        list(simai_run.traces(workload))
