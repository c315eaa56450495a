"""Tables of settings."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.frameworks import table, values

NAMES = ("torchtitan", "fsdp", "composer", "deepspeed", "megatron")


@pytest.mark.parametrize("name", NAMES)
def test_every_key_means_one_thing(name):
    loaded = table.load(name)
    keys = [key for row in loaded.rows.values() for key in row.keys]
    assert len(keys) == len(set(keys))
    assert not set(keys) & set(loaded.unsupported)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_of_their_kind(name):
    for row in table.load(name).rows.values():
        if row.default is not None and row.kind != "any":
            assert row.value(row.default, "key", "file", text=False) == row.default


@pytest.mark.parametrize("name", NAMES)
def test_every_unsupported_setting_says_what_it_means(name):
    for key, row in table.load(name).unsupported.items():
        assert row["means"], key
        assert set(row) <= {"harmless", "means"}, key  # a comma would end the words


def test_names_of_one_setting_may_not_disagree():
    loaded = table.load("torchtitan")
    keys = ("training.local_batch_size", "training.batch_size")
    assert loaded.read(dict.fromkeys(keys, 4), "file")["local_batch"] == 4
    with pytest.raises(pc.InputError, match="mean the same"):
        loaded.read(dict(zip(keys, (4, 8), strict=True)), "file")


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("count", 8, 8), ("whole", 5e8, 500_000_000), ("whole", "1e9", 10**9),
        ("flag", "no", False),
        ("word", 2, "2"), ("list", "a, b", ["a", "b"]), ("size", True, True), ("number", 2, 2.0),
    ],
)  # fmt: skip
def test_values(kind, value, read):
    assert values.read(kind, (), value, "x", text=False) == read


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("count", 0), ("count", True), ("count", "8"), ("count", 2.5), ("count", 10**30),
        ("count", float("nan")), ("flag", 1), ("word", ["a"]), ("list", [1]), ("number", "x"),
        ("whole", float("inf")), ("word", "x" * 2000),
    ],
)  # fmt: skip
def test_values_that_are_refused(kind, value):
    with pytest.raises(pc.InputError, match="it must be"):
        values.read(kind, (), value, "`file`: `key`", text=False)
