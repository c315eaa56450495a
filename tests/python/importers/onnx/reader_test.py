"""ONNX files: the same passes, and refusals that name the place."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import plancast as pc
import pytest

ONNX = find_spec("onnx")  # without an origin it is a folder of that name
pytestmark = pytest.mark.skipif(ONNX is None or ONNX.origin is None, reason="onnx is not installed")

CORPUS = Path(__file__).parents[3] / "fuzz" / "corpus"


def block():
    import onnx
    from google.protobuf import text_format

    return text_format.Parse((CORPUS / "block.onnx.txt").read_text(), onnx.ModelProto())


def saved(model, path) -> str:
    path.write_bytes(model.SerializeToString())
    return str(path)


def refusal(path, **options) -> str:
    with pytest.raises(pc.InputError) as error:
        pc.Model.from_onnx(path, **options)
    return str(error.value)


def test_a_model_is_read(tmp_path):
    path = saved(block(), tmp_path / "block.onnx")
    model = pc.Model.open(path)
    assert pc.Model.from_file(path) == model
    assert model.import_report.unknown == ()
    # The exporter stored the table, which the logits share, a second time, transposed.
    assert model.parameters == 2 * 32 * 16 + 32 + 17 * 48 + 2 * 17 * 16 + 16 * 16 * 3 + 16
    assert "qkv_linear_bias" in str(model)
    assert "attention" in str(model)


def test_open_dims_are_the_batch_and_the_sequence(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", 100])
    table = helper.make_tensor("table.weight", TensorProto.FLOAT, [100, 8], [0.5] * 800)
    head = helper.make_tensor("head.weight", TensorProto.FLOAT, [8, 100], [0.5] * 800)
    nodes = [
        helper.make_node("Gather", ["table.weight", "ids"], ["x"], name="/embed/Gather"),
        helper.make_node("MatMul", ["x", "head.weight"], ["y"], name="/head/MatMul"),
    ]
    graph = helper.make_graph(nodes, "net", [ids], [y], [table, head])
    opsets = [helper.make_opsetid("", 17)]
    path = saved(helper.make_model(graph, opset_imports=opsets), tmp_path / "net.onnx")
    assert "leaves `length` of input `ids` open. Say the length of sequences: --seq" in refusal(
        path
    )
    model = pc.Model.from_onnx(path, seq=48)
    assert (model.seq, model.parameters, model.dims["batch"]) == (48, 1600, 0)
    assert onnx.__version__


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\xff" * 100)
    assert "is not an ONNX model" in refusal(path)
    path.write_bytes(b"")
    assert "nothing" in refusal(path) or "no input" in refusal(path)
    assert "there is no file" in refusal(tmp_path / "missing.onnx")


def test_a_tensor_that_nothing_makes(tmp_path):
    model = block()
    model.graph.node[5].input[0] = "nowhere"
    assert "nowhere" in refusal(saved(model, tmp_path / "x.onnx"))


def test_an_axis_beyond_all_dims(tmp_path):
    # onnx 1.23 itself ends the process by this one (fuzzing, case 50980144).
    model = block()
    norm = next(node for node in model.graph.node if node.op_type == "LayerNormalization")
    next(entry for entry in norm.attribute if entry.name == "axis").i = 55732045388709887
    norm.output.append("mean")
    said = refusal(saved(model, tmp_path / "x.onnx"))
    assert "`axis` of `node_layer_norm" in said
    assert "55732045388709887" in said


def test_data_outside_the_folder_is_not_opened(tmp_path):
    import onnx
    from plancast.importers.onnx.constants import is_causal

    tensor = onnx.TensorProto(name="mask", data_type=onnx.TensorProto.FLOAT, dims=[2, 2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    (tmp_path / "inside").mkdir()
    import numpy as np

    mask = np.array([[0, -1e9], [0, 0]], np.float32).tobytes()
    (tmp_path / "mask").write_bytes(mask)
    (tmp_path / "inside" / "mask").write_bytes(mask)
    for location, found in (("mask", True), ("../mask", False), (str(tmp_path / "mask"), False)):
        entry.key, entry.value = "location", location
        assert is_causal(tensor, str(tmp_path / "inside" / "net.onnx")) is found
