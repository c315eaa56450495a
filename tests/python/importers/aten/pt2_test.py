"""`.pt2` files: read without torch, and refused where they are none."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from importlib.util import find_spec
from pathlib import Path

import plancast as pc
import pytest

CORPUS = Path(__file__).parents[3] / "fuzz" / "corpus"


def document() -> str:
    return (CORPUS / "block.pt2.json").read_text()


def archive(path, graph, **others):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        if graph is not None:
            file.writestr("block/models/model.json", graph, zipfile.ZIP_STORED)
        for name, content in others.items():
            file.writestr(f"block/{name}", content)
    return str(path)


def refusal(path) -> str:
    with pytest.raises(pc.InputError) as error:
        pc.Model.open(str(path))
    return str(error.value)


def test_a_program_is_read(tmp_path):
    model = pc.Model.open(archive(tmp_path / "block.pt2", document()))
    assert model.name == "block"
    assert model.import_report.unknown == ()
    # The table, which the logits share, two vectors of the norm, and the layers.
    assert model.parameters == 32 * 16 + 32 + 17 * 48 + 2 * 17 * 16 + 16 * 16 * 3 + 16
    assert "qkv_linear_bias" in str(model)
    assert "attention(" in str(model)


def test_sequences_of_another_length(tmp_path):
    path = archive(tmp_path / "block.pt2", document())
    # A convolution runs along the positions.
    with pytest.raises(pc.InputError, match="exported with sequences of 6 tokens"):
        pc.Model.open(path, seq=12)
    assert pc.Model.open(path, seq=6).seq == 6


def test_what_is_no_program_is_refused(tmp_path):
    path = tmp_path / "x.pt2"
    path.write_bytes(b"not a zip archive")
    assert "is no zip archive that can be read" in refusal(path)
    assert "holds no `models/*.json`" in refusal(archive(path, None, readme="hello"))
    assert "is not a program of torch.export" in refusal(archive(path, "{}"))
    assert "is not a program of torch.export" in refusal(archive(path, "[1, 2"))
    assert "there is no file" in refusal(tmp_path / "missing.pt2")
    assert "nested too deep" in refusal(archive(path, "[" * 100_000))


def test_bombs_are_not_unpacked(tmp_path):
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("block/models/model.json", b" " * (64 * 2**20))
    assert path.stat().st_size < 2**20
    assert "unpacks to 67,108,864 bytes" in refusal(path)


def test_headers_that_lie_are_not_believed(tmp_path):
    path = tmp_path / "lie.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("block/models/model.json", b" " * (64 * 2**20))
        (info,) = file.infolist()
        info.compress_size = 2**31 - 1  # as if it had hardly been packed
    assert "unpacks to 67,108,864 bytes" in refusal(path)


@pytest.mark.parametrize(
    ("field", "value"),  # of an entry in the list: its flags at 8, the way it is packed at 10
    [
        pytest.param(10, zipfile.ZIP_LZMA, id="lzma"),
        pytest.param(10, zipfile.ZIP_BZIP2, id="bzip2"),
        pytest.param(10, 64574, id="unknown"),
        pytest.param(8, 1, id="encrypted"),
    ],
)
def test_entries_packed_or_locked_otherwise_are_refused(tmp_path, field, value):
    path = tmp_path / "packed.pt2"
    archive(path, document())
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    data[entry + field : entry + field + 2] = value.to_bytes(2, "little")
    path.write_bytes(data)
    assert "is encrypted, or packed in another way" in refusal(path)


def test_a_list_of_entries_that_says_it_is_huge_is_not_read(tmp_path):
    path = tmp_path / "list.pt2"
    archive(path, document())
    data = bytearray(path.read_bytes())
    with path.open("r+b") as file:  # room for the list, all of it a hole
        file.truncate(2**30)
        file.seek(0, 2)
        end = data.rindex(b"PK\5\6")
        data[end + 12 : end + 20] = (2**30 - 100).to_bytes(4, "little") + bytes(4)
        file.write(data[end:])
    assert "its list of entries has 1,073,741,724 bytes; the limit is 16,777,216" in refusal(path)


def test_more_values_than_a_program_has_are_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("plancast.importers.limits.MOST_VALUES", 10_000)
    said = refusal(archive(tmp_path / "x.pt2", "[" + "[]," * 5000 + "[]]"))
    assert "holds some 10,002 values; the most that is read is 10,000" in said


class Exploding:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(tmp_path):
    bomb = io.BytesIO()
    pickle.dump(Exploding(), bomb)
    names = ("data/weights/model.pt", "data/constants/model.pt", "data/sample_inputs/model.pt")
    others = {name: bomb.getvalue() for name in names}
    assert pc.Model.open(archive(tmp_path / "block.pt2", document(), **others)).parameters > 0


@pytest.mark.parametrize("size", [-1, 2**63, 2**40])
def test_sizes_nobody_can_mean(tmp_path, size):
    graph = json.loads(document())
    values = graph["graph_module"]["graph"]["tensor_values"]
    values["p_table_weight"]["sizes"] = [{"as_int": size}, {"as_int": size}]
    assert "p_table_weight" in refusal(archive(tmp_path / "x.pt2", json.dumps(graph)))


def test_the_command_line_reads_it(tmp_path):
    from plancast.cli.main import main

    path = archive(tmp_path / "block.pt2", document())
    assert main(["predict", "-m", path, "-c", "dgx-h100:1", "-s", "dp=8,mb=1", "--json"]) == 0
    (tmp_path / "bad.pt2").write_bytes(b"PK")
    bad = str(tmp_path / "bad.pt2")
    assert main(["predict", "-m", bad, "-c", "dgx-h100:1", "-s", "dp=8,mb=1"]) == 2


def test_unknown_operators_are_warned_of(tmp_path, capsys):
    from plancast.cli.main import main

    strange = document().replace("torch.ops.aten.conv1d.default", "torch.ops.own.stir.default")
    path = archive(tmp_path / "block.pt2", strange)
    (entry,) = pc.Model.open(path).import_report.unknown
    assert (entry.name, entry.path, entry.count) == ("own::stir", "mix", 1)
    assert main(["predict", "-m", path, "-c", "dgx-h100:1", "-s", "dp=8,mb=1", "--json"]) == 0
    assert "plancast: warning: `own::stir` (x 1, first in `mix`)" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_saved_program_is_the_module(tmp_path):
    import torch
    from nets import ResNet

    module, images = ResNet((1, 2, 1, 1)), torch.zeros(2, 3, 64, 64)
    path = str(tmp_path / "net.pt2")
    program = torch.export.export(module, (images,), strict=False)
    torch.export.save(program, path)
    model = pc.Model.open(path)
    again = pc.Model.from_torch(program, name="net")
    assert str(model) == str(again)
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
