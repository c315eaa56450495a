"""The Python API: models, machines, strategies, forecasts."""

from __future__ import annotations

import json
import threading

import plancast as pc
import pytest

MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)


def test_machine_survives_yaml():
    machine = pc.Machine.preset("dgx-h100:4")
    again = pc.Machine.from_yaml(machine.to_yaml())
    assert again == machine
    assert hash(again) == hash(machine)
    assert repr(again) == repr(machine)


def test_machine_sizes():
    machine = pc.Machine.preset("dgx-a100-80g", hosts=2, gpus_per_host=4)
    assert (machine.hosts, machine.gpus_per_host, machine.devices) == (2, 4, 8)
    assert machine == pc.Machine.preset("dgx-a100-80g:2x4")
    with pytest.raises(pc.InputError, match="sizes already"):
        pc.Machine.preset("dgx-a100-80g:2", hosts=2)


def test_every_preset_is_a_machine():
    for name in pc.Machine.presets():
        assert pc.Machine.preset(name).devices >= 1


def test_a_better_gpu_behind_the_same_bus_is_faster():
    """Devices of PCIe machines hang on switches, whose bus hides no generation of them."""

    def best(machine: str, *plans: str) -> float:
        forecasts = (
            pc.predict(pc.Model.preset("gpt2"), pc.Machine.preset(machine), plan, batch=64)
            for plan in plans
        )
        return min(forecast.iteration_time for forecast in forecasts)

    old = best("t4-pcie:1x4", "dp=4,mb=1", "dp=4,mb=4")
    assert best("h100-pcie-80g:1x8", "dp=8,mb=1", "dp=8,mb=8") < old / 4


def test_strategy_survives_its_text_and_yaml():
    tree = pc.Strategy.parse("tp=2,pp=2,mb=1,recompute=selective")
    tree["layers.*.attn"].recompute("full").split(tp="heads")
    tree["head"].split(tp=None)
    assert pc.Strategy.from_yaml(tree.to_yaml()) == tree
    assert pc.Strategy.parse(tree.short_form).short_form == tree.short_form


def test_a_split_may_name_axis_or_dim_first():
    first, second = pc.Strategy.parse("tp=2"), pc.Strategy.parse("tp=2")
    first["layers.*.attn"].split(tp="heads")
    second["layers.*.attn"].split(heads="tp")
    assert first == second


def test_a_copy_is_independent():
    tree = pc.Strategy.parse("tp=2")
    copy = tree.copy()
    copy["layers"].recompute("full")
    assert copy != tree


def test_explain_names_the_deciding_node():
    tree = pc.Strategy.parse("tp=2,mb=1")
    tree["layers.*.attn"].recompute("full")
    text = tree["layers.*.attn.qkv"].explain()
    assert "full" in text
    assert "layers.*.attn" in text


def test_wrong_words_fail_at_their_line():
    tree = pc.Strategy.parse("tp=2")
    with pytest.raises(pc.InputError, match="no recompute mode `most`"):
        tree["layers"].recompute("most")
    with pytest.raises(pc.InputError, match="empty component"):
        tree["layers..attn"].recompute("full")
    with pytest.raises(pc.InputError, match="positive"):
        tree["layers"].bucket(0)


def test_nouns_are_immutable(small):
    with pytest.raises(AttributeError):
        small.name = "other"
    with pytest.raises(AttributeError):
        MACHINE.hosts = 3


def test_model_with_another_sequence_length(small):
    assert small.with_seq(512).seq == 512
    assert small.with_seq(512) != small
    assert small.with_seq(256) == small


def test_the_batch_is_checked(small):
    for batch in (0, -1, 10**12, True, 1.5):
        with pytest.raises(pc.InputError):
            pc.predict(small, MACHINE, "tp=8,mb=1", batch=batch)


def test_predictions_are_deterministic(small):
    def digits(session):
        forecast = pc.predict(small, MACHINE, "tp=2,pp=2,mb=1", batch=16, session=session)
        fields = forecast.to_dict()
        del fields["simulate_s"]
        return json.dumps(fields)

    session = pc.Session()
    assert len({digits(session), digits(session), digits(None)}) == 1


def test_parts_of_layers_are_captured(small):
    eager = pc.predict(small, MACHINE, "tp=2,mb=1", profile="megatron-core")
    parts = pc.predict(small, MACHINE, "tp=2,mb=1", profile="megatron-core", cuda_graphs="attn+mlp")
    whole = pc.predict(small, MACHINE, "tp=2,mb=1", profile="megatron-core", cuda_graphs=True)
    assert eager.iteration_time > parts.iteration_time > whole.iteration_time
    with pytest.raises(pc.InputError, match=r"no part `atn` of CUDA graphs.*Did you mean `attn`"):
        pc.predict(small, MACHINE, "tp=2,mb=1", profile="megatron-core", cuda_graphs="atn")


def test_cuda_graphs_are_a_choice_of_the_plan(small):
    eager = pc.predict(small, MACHINE, "tp=2,mb=1")
    graphs = pc.predict(small, MACHINE, "tp=2,mb=1", cuda_graphs=True)
    assert (eager.chosen["cuda_graphs"], graphs.chosen["cuda_graphs"]) == ("0", "1")
    assert graphs.breakdown()["launch"] < eager.breakdown()["launch"]
    ranking = pc.rank(small, MACHINE, batch=8, space="tp=2,pp=1,mb=1", cuda_graphs=True)
    assert ranking[0].chosen["cuda_graphs"] == "1"


def test_a_session_shares_work(small):
    session = pc.Session()
    pc.predict(small, MACHINE, "tp=2,pp=2,mb=1", batch=16, session=session)
    misses = session.misses
    assert misses > 0
    pc.predict(small, MACHINE, "tp=2,pp=2,mb=1", batch=16, session=session)
    assert session.misses == misses


def test_repricing_on_another_machine_compiles_nothing(small):
    session = pc.Session()
    first = pc.predict(small, MACHINE, "tp=2,pp=2,mb=1", batch=16, session=session)
    misses = session.misses
    other = pc.Machine.preset("dgx-h100", hosts=1)
    second = pc.predict(small, other, "tp=2,pp=2,mb=1", batch=16, session=session)
    assert session.misses == misses
    assert second.iteration_time < first.iteration_time


def test_the_interpreter_runs_on_while_predicting():
    model = pc.Model.preset("gpt3-175b")
    machine = pc.Machine.preset("dgx-a100-80g", hosts=8)
    ticks = 0
    stop = threading.Event()

    def tick():
        nonlocal ticks
        while not stop.wait(0.0005):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    ranking = pc.rank(model, machine, batch=64, space="tp=8,pp=8,vpp=1|3,mb=1|2,zero=0")
    stop.set()
    thread.join()
    assert len(ranking) > 0
    assert ticks > 0


def test_an_error_in_the_progress_callback_comes_back(small):
    def progress(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        pc.rank(
            pc.Model.preset("gpt3-175b"),
            pc.Machine.preset("dgx-a100-80g", hosts=16),
            batch=256,
            progress=progress,
        )


def test_ranking_is_a_table(small):
    ranking = pc.rank(small, MACHINE, batch=16, space="tp=1|2,mb=1|2", top=4)
    frame = ranking.to_frame()
    assert list(frame["rank"]) == [1, 2, 3, 4]
    assert list(frame["strategy"]) == [plan.strategy for plan in ranking]
    assert ranking[0].iteration_time == frame["iteration_time_s"].min()


def test_everything_shows_itself_in_a_notebook(small):
    forecast = pc.predict(small, MACHINE, "tp=8,mb=1", batch=8)
    other = pc.predict(small, MACHINE, "tp=4,pp=2,mb=1", batch=8)
    for item in (forecast, pc.compare(forecast, other)):
        html = item._repr_html_()
        assert html.startswith("<pre")
        assert "http" not in html
    assert "GiB" in repr(forecast)


def test_a_comparison_says_why(small):
    # Captured, or the host decides.
    slow = pc.predict(small, MACHINE, "tp=8,mb=1,recompute=full", batch=32, cuda_graphs=True)
    fast = pc.predict(small, MACHINE, "tp=8,mb=1,recompute=none", batch=32, cuda_graphs=True)
    (difference,) = pc.compare(slow, fast).differences
    assert difference.seconds < 0
    assert difference.faster_probability > 0.5
    assert "recomputation" in difference.reason
    assert sum(difference.parts.values()) == pytest.approx(difference.seconds)


def test_a_timeline_must_be_asked_for(small):
    forecast = pc.predict(small, MACHINE, "tp=8,mb=1", batch=8)
    with pytest.raises(pc.InputError, match="timeline=True"):
        forecast.timeline()


def test_compile_passes_in_their_order(small):
    from plancast.planning import compile_passes

    passes = compile_passes(small, MACHINE, "tp=2,pp=2,mb=1", batch=8)
    assert next(iter(passes)) == "bind"
    assert list(passes)[-1] == "lower"


def test_every_public_name_is_there():
    for name in pc.__all__:
        assert getattr(pc, name) is not None
    assert callable(pc.rules)
    assert callable(pc.rank)
    assert set(pc.__all__) <= set(dir(pc))
    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        _ = pc.Modle


def test_a_refusal_of_much_is_cut():
    with pytest.raises(pc.InputError, match=r"`kk.*\.\.\. \(10\d{4} bytes\)$") as caught:
        pc.Strategy.parse("k" * 100_000 + "=1")
    assert len(str(caught.value)) < 4100


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_file_of_a_graph_is_read_as_what_it_is(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"\xff\xfe no graph")
    answers = []
    for read in (pc.Model.from_file, pc.Model.open):
        with pytest.raises(pc.InputError) as error:
            read(str(path))
        answers.append(str(error.value))
    assert answers[0] == answers[1]
    assert "UTF-8" not in answers[0]
