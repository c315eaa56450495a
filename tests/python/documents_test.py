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
        ("a:\n  - 1" + ":59" * 100_000, "`x`:2:5 is not YAML: a number of 300,001 characters"),
        ("a: 1" + "0" * 1000 + ".5", "`x`:1:4 is not YAML: a number of 1,003 characters"),
    ],
)
def test_yaml_that_is_refused(text, said):
    assert said in refusal(documents.parse_yaml, text, "`x`")


def doubled(levels: int) -> str:
    """A mapping that every level merges nine times."""
    lines = ["a0: &a0 {k: 1, l: 2}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        doubled(20),
        "a: {" + ", ".join(f"k{i}: 1" for i in range(30_000)) + "}",
        "a: &a {<<: *a}",
    ],
    ids=["merges", "values", "itself"],
)
def test_yaml_that_grows_is_refused_before_it_does(text):
    said = refusal(documents.parse_yaml, text, "`x`")
    assert "more than 50,000 values" in said or "nested too deep" in said


def test_yaml_merges_before_the_mapping_that_it_merges_is_read():
    text = "base: &b {x: 1}\ntop: {inner: &m {<<: *b, x: 2}}\nlast: {<<: *m}\n"
    assert documents.parse_yaml(text, "x")["last"] == {"x": 2}


@pytest.mark.parametrize(
    "text",
    ['!!int ""', "!!bool maybe", "!!timestamp soon", "!!float x", "1" + ":59" * 300 + ".5"],
)
def test_yaml_values_that_are_not_of_their_type_are_refused(text):
    assert "`x` holds a value that YAML cannot read" in refusal(
        documents.parse_yaml, f"a: {text}", "`x`"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".".join("a" * 100_000) + " = 1", "`x`:1 has a key of more than 64 parts"),
        ("b = 1\n[" + " . ".join(['"a"'] * 100) + "]", "`x`:2 has a key of more than 64 parts"),
        ("a = " + "[" * 5000, "nested too deep"),
        ("a = 2020-13-45", "`x`:1:9 is not TOML"),
        ("a = " + "9" * 5000, "TOML cannot read"),
        ("a = 1\na = 2", "`x` is not TOML: Cannot overwrite a value"),
    ],
)
def test_toml_that_is_refused(text, said):
    assert said in refusal(documents.parse_toml, text, "`x`")


def test_toml_may_have_long_words_and_many_dots():
    text = "word = " + repr("a" * 100_000) + "\nlist = [" + "0.5, " * 1000 + "]\na.b.c = 1\n"
    assert documents.parse_toml(text, "x")["a"] == {"b": {"c": 1}}


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
        ({"a": [int("9" * 4000) * 10**4000]}, "`a[0]` is a whole number of 26,"),
        ({"a": 2**64}, "`a` is a whole number of 65 bits; give one of at most 64"),
        ({"a": {10**5000: 1}}, "a key in `a` is a number. Keys are names"),
        ({7: 1}, "the key `7` is a number"),
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
