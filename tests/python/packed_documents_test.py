"""Documents of the data: what attention costs, and what is refused."""

from __future__ import annotations

import json
import pickle
import statistics
from pathlib import Path

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.models import document_lengths

SEQ = 16_384
MODEL = pc.Model.preset("llama3-8b", seq=SEQ)
MACHINE = pc.Machine.preset("dgx-h100", hosts=1)


def _time(model: pc.Model, plan: str = "dp=4,cp=2,zero=3,mb=1,recompute=full", batch: int = 16):
    return pc.predict(model, MACHINE, pc.Strategy.parse(plan), batch=batch).iteration_time


def test_one_document_is_a_whole_sequence() -> None:
    for lengths in ([SEQ], [3 * SEQ], "16K"):
        assert _time(MODEL.with_documents(lengths)) == _time(MODEL)


def test_shorter_documents_take_less() -> None:
    times = [_time(MODEL.with_documents(length)) for length in (512, 2048, 8192, SEQ)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_the_slowest_of_data_parallel_ranks_decides() -> None:
    """Ranks 0 and 2 get a document of a whole sequence each time, the others short ones."""
    lengths = [SEQ] + [128] * (SEQ // 128)
    mixed = _time(MODEL.with_documents(lengths), "dp=2,cp=4,zero=3,mb=1,recompute=full", 8)
    assert mixed == _time(MODEL, "dp=2,cp=4,zero=3,mb=1,recompute=full", 8)
    both = _time(MODEL.with_documents(lengths), "dp=1,cp=8,zero=1,mb=1,recompute=full", 8)
    assert both < _time(MODEL, "dp=1,cp=8,zero=1,mb=1,recompute=full", 8)


def test_gathers_are_less_even_than_rings() -> None:
    """A sequence in pieces, whatever documents it has, against documents in pieces."""
    model = MODEL.with_documents([SEQ * 3 // 8] + [64] * (SEQ * 5 // 8 // 64))
    plan = "dp=1,cp=8,zero=1,mb=1,recompute=full,cp_type="
    uneven = _time(model, plan + "allgather", 8) / _time(MODEL, plan + "allgather", 8)
    even = _time(model, plan + "ulysses", 8) / _time(MODEL, plan + "ulysses", 8)
    assert even < uneven < 1


def test_distributions_have_their_mean() -> None:
    for text, mean in (("exponential:2K", 2048), ("lognormal:1000:1", 1000)):
        found = document_lengths.lengths(text)
        assert statistics.mean(found) == pytest.approx(mean, rel=0.02)
        assert found == document_lengths.lengths(text)
    assert max(document_lengths.lengths("lognormal:2K:1.5:8K")) == 8192


def test_files_and_configs(tmp_path: Path) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("512\n2K\n")
    model = MODEL.with_documents(str(file))
    assert model.config is not None
    assert model.config["documents"] == [512, 2048]
    again = pc.Model.from_config(**model.config)
    assert _time(again) == _time(model) == _time(pickle.loads(pickle.dumps(model)))
    assert _time(pc.Model.from_config(**{**MODEL.config, "documents": "512,2K"})) == _time(model)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "no length"),
        ("often", "no length"),
        ("nan", "no length"),
        ("1.5", "whole number"),
        ("0", "give a whole number"),
        ("lognormal:2K", "takes other sizes"),
        ("lognormal:2K:9", "sigma"),
        ("exponential:2K:1K", "the mean must"),
        ([], "give 1 to"),
        ([4, -1], "give a whole number"),
    ],
)
def test_what_is_wrong_is_said(given: str | list[int], says: str) -> None:
    with pytest.raises(pc.InputError, match=says):
        MODEL.with_documents(given)


def test_models_without_causal_attention_are_refused() -> None:
    with pytest.raises(ValueError, match="Leave `documents` out"):
        pc.Model.preset("bert-large").with_documents(128)
    with pytest.raises(pc.InputError, match="built by hand"):
        pc.Model.preset("resnet50").with_documents(128)


def test_the_command_line_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["predict", "-m", "llama3-8b", "--seq", str(SEQ), "-c", "dgx-h100:1", "--json"]
    base += ["-s", "dp=8,zero=3,mb=1,recompute=full", "--batch", "8"]

    def iteration(*more: str) -> float:
        assert main([*base, *more]) == 0
        return float(json.loads(capsys.readouterr().out)["iteration_time_s"])

    assert iteration("--documents", "16K") == iteration()
    assert iteration("--documents", "1K") < iteration()
    assert main([*base, "--documents", "many"]) == 2
    assert "`many` is no length" in capsys.readouterr().err
