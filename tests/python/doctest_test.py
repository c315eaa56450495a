"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import plancast
import pytest

# These run the command line or fit coefficients when imported or called.
LEFT_OUT = {"plancast.__main__"}
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(plancast.__path__, "plancast.")
    if info.name not in LEFT_OUT and not info.name.endswith("._core")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
