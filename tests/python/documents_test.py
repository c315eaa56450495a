"""Documents are read strictly: what is said twice, is endless or is no plain value is refused."""

from __future__ import annotations

import datetime

import numpy as np
import plancast as pc
import pytest
from plancast import documents


def refusal(call, *arguments):
    with pytest.raises(pc.InputError) as error:
        call(*arguments)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "`a` is given twice"),
        ('{"a": {"b": 1, "b": 2}}', "`b` is given twice"),
        ('{"a": 1,}', "`x`:1:9 is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ("", "`x`:1:1 is not JSON"),
    ],
)
def test_json_that_is_refused(text, said):
    assert said in refusal(documents.parse_json, text, "`x`")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "`x`:3:1 is not YAML: `a` is given twice"),
        ("a: {b: 1, b: 2}", "`b` is given twice"),
        ("[" * 3000, "nested too deep"),
        ("a: 2020-13-45", "cannot read"),
        ("a: !!python/object/apply:os.getcwd []", "is not YAML"),
        ("a:\t1\n\tb: 2", "is not YAML"),
        ("a: 1\n---\nb: 2\n", "another document"),
        ("\0", "is not YAML"),
    ],
)
def test_yaml_that_is_refused(text, said):
    assert said in refusal(documents.parse_yaml, text, "`x`")


def test_yaml_may_merge_mappings():
    text = "base: &base {a: 1}\nmore:\n  <<: *base\n  b: 2\n"
    assert documents.parse_yaml(text, "x")["more"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "is empty"),
        ([1], "is a list"),
        (3, "is a number"),
        ({"a": float("nan")}, "`a` is nan"),
        ({"a": [{"b": float("inf")}]}, "`a[0].b` is inf"),
        ({"a": {1: 2}}, "the key `1` in `a` is a number"),
        ({"a": datetime.date(2020, 1, 1)}, "`a` is a date"),
        ({"a": b"x"}, "`a` is a bytes"),
        ({"a": "\ud800"}, "half a surrogate pair"),
    ],
)
def test_values_that_are_refused(value, said):
    assert said in refusal(documents.to_json, value, "x")


def test_a_cycle_is_refused():
    value: dict = {}
    value["a"] = value
    assert "nested too deep" in refusal(documents.to_json, value, "x")


def test_integers_of_numpy_are_integers():
    assert documents.to_json({"a": np.int64(3)}, "x") == '{"a": 3}'
