"""Rules with some factors written as several, or as none."""

from __future__ import annotations

import pytest
from plancast import _core
from plancast.importers.rule_text import template


def rewritten(call, ranks, symbols, operands=None, parameters=None):
    written = template(call, ranks)
    trained = parameters or [argument.parameter for argument in written.inputs]
    return _core.OpRule.parse(written.text(symbols, operands or {}, trained))


@pytest.mark.parametrize("name", _core.OpRule.names())
def test_every_shipped_rule_survives(name):
    rule = _core.OpRule.find(name)
    again = rewritten(name, (), {})
    assert sorted(again.factors) == sorted(rule.factors)
    assert [argument.name for argument in again.inputs] == [a.name for a in rule.inputs]
    assert [argument.factors for argument in again.inputs] == [a.factors for a in rule.inputs]
    assert [argument.dtype for argument in again.outputs] == [a.dtype for a in rule.outputs]


def test_features_of_a_linear_layer_become_heads():
    rule = rewritten("linear_nd", (3, 2), {"n": ["n_1", "n_2"]})
    assert [argument.factors for argument in rule.inputs] == [
        ["_1", "_2", "k"],
        ["n_1", "n_2", "k"],
    ]
    assert rule.outputs[0].factors == ["_1", "_2", "n_1", "n_2"]


def test_sizes_become_products():
    text = template("layer_norm_nd", (2, 1, 1)).text({"h": ["h_1", "h_2"]}, {}, [False, True, True])
    assert "(size(h_1) * size(h_2))" in text


def test_an_operand_is_stretched():
    rule = rewritten("add", (2, 2), {}, {"z": ["_2"]})
    assert rule.inputs[1].factors == ["_2"]
    assert rule.outputs[0].factors == ["_1", "_2"]


def test_factors_that_go_away_leave_scalars():
    rule = rewritten("layer_norm_nd", (2, 1, 1), {"_1": []})
    assert rule.inputs[0].factors == ["h"]


def test_trained_operands_are_marked():
    rule = rewritten("multiply", (1, 1), {}, parameters=[False, True])
    assert [argument.parameter for argument in rule.inputs] == [False, True]


def test_what_conditions_name_is_fixed():
    assert template("attention", ()).fixed == {"s", "t"}
    assert template("embedding_nd", (2, 2)).fixed == {"v"}
    assert {"i", "j", "p", "q", "k", "u"} <= template("conv2d", ()).fixed
