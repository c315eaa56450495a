"""Every result is shown in a line, and in notebooks as its tables."""

from __future__ import annotations

import inspect

import plancast as pc
import pytest
from plancast.shown import Shown, Tabular

CLASSES = [one for name in pc.__all__ if inspect.isclass(one := getattr(pc, name))]


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_a_class_says_what_it_is(one):
    if issubclass(one, Exception):
        return
    assert one.__repr__ is not object.__repr__
    if hasattr(one, "__rich__"):
        assert hasattr(one, "_repr_html_")
    if issubclass(one, Shown):
        assert one.__rich__ is not Shown.__rich__
    if issubclass(one, Tabular):
        assert one.records is not Tabular.records


def test_whoever_has_no_tables_or_rows_is_none():
    with pytest.raises(NotImplementedError):
        Shown()._repr_html_()
    with pytest.raises(NotImplementedError):
        Tabular().to_frame()
