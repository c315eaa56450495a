"""Equal layers become one body, tensors pass through what does not read them."""

from __future__ import annotations

from graphs import Sketch, ops
from plancast.importers import make
from plancast.importers.segments import place


def test_places():
    assert place("model.layers.3.mlp") == ("model.layers", 3)
    assert place("layer1.0") == ("layer1", 0)
    assert place("0.conv") == ("", 0)
    assert place("lm_head") == ("", -1)


def test_equal_layers_are_one_body():
    s = Sketch()
    x = s.x
    for index in range(5):
        x = s.linear(x, f"layers.{index}.fc", 64)
    text = str(s.model(x))
    assert "layers.* x 5" in text
    assert ops(text).count("linear_nd") == 1


def test_layers_that_differ_are_not():
    s = Sketch()
    x = s.linear(s.x, "layers.0.fc", 64)
    x = s.linear(x, "layers.1.fc", 64, bias=True)
    model = s.model(x)
    assert "layers.* x 1" in str(model)
    assert model.layers == 2


def test_a_tensor_passes_through():
    s = Sketch()
    skip = s.op("relu_nd", s.x, path="embed")
    x = s.x
    for index in range(3):
        x = s.linear(x, f"layers.{index}.fc", 64)
    y = make.elementwise(s.graph, "add", x, skip)
    model = s.model(y)
    assert "layers.* x 3" in str(model)
    assert ops(model).count("add") == 1


def test_a_tensor_that_all_layers_read():
    s = Sketch()
    memory = s.op("relu_nd", s.x, path="embed")
    x = s.x
    for index in range(3):
        x = s.linear(x, f"layers.{index}.fc", 64)
        x = make.elementwise(s.graph, "add", x, memory, path=f"layers.{index}")
    assert "layers.* x 3" in str(s.model(x))


def test_tied_parameters_count_once():
    s = Sketch()
    table = s.graph.nodes[0].inputs[1]
    logits = s.op("linear_nd", s.x, table, shape=(3, 16, 1000), path="head")
    x = s.linear(s.x, "layers.0.fc", 64)
    logits = s.op("linear_nd", x, table, shape=(3, 16, 1000), path="head")
    model = s.model(logits)
    assert model.parameters == 64000 + 64 * 64
    assert "tied" in str(model)


def test_a_table_that_one_look_up_reads_keeps_its_sparse_gradient():
    s = Sketch()
    table = s.x.node.inputs[1]
    table.sparse = True
    assert "sparse param" in str(s.model(s.linear(s.x, "fc", 64)))
    tied = Sketch()
    table = tied.x.node.inputs[1]
    table.sparse = True
    logits = tied.op("linear_nd", tied.x, table, shape=(3, 16, 1000), path="head")
    assert "sparse param" not in str(tied.model(logits))
