"""Arguments of public functions held to their annotations, in words."""

from __future__ import annotations

import ast
import collections.abc
import functools
import importlib
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from plancast.errors import InputError

_T = TypeVar("_T")

# How one is made, by the name of its class.
_MADE_BY = {
    "Algorithm": 'Algorithm.make("all_reduce", "ring", gpus=8)',
    "AlphaBeta": "AlphaBeta((2, 4))",
    "ChromeTrace": 'ChromeTrace.open("trace.json")',
    "Forecast": "predict(model, machine, strategy)",
    "Kernel": "Kernel.gemm(4096, 4096, 4096)",
    "Learned": 'learn("runs.csv")',
    "Machine": 'Machine.preset("dgx-h100", hosts=2)',
    "Model": 'Model.preset("llama3-8b")',
    "NcclTopology": 'Topology.from_file("topo.xml")',
    "NcclTrace": 'NcclTrace.open("dump.txt")',
    "OpRule": 'Rule.find("linear")',
    "Randomness": "Randomness(jitter=0.02)",
    "RankResult": "rank(model, machine, batch=64)",
    "Records": 'Records("kernels.db")',
    "Session": "Session()",
    "Strategy": 'Strategy.parse("tp=8,mb=1")',
    "TextWorkload": 'TextWorkload.open("workload.txt")',
    "Topology": 'Topology.from_file("topo.xml")',
}
_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    Path: "a path",
    type(None): "None",
}
_LONGEST = 60


def checked(what: _T) -> _T:
    """A function, or a class with its public methods, that refuses arguments of wrong types.

    The InputError names the argument and what is wanted, as the annotations say it.

    >>> @checked
    ... def double(count: int) -> int:
    ...     return 2 * count
    >>> double("2")
    Traceback (most recent call last):
    plancast.errors.InputError: `count` is `'2'`; give a whole number.
    """
    if isinstance(what, type):
        for name, member in list(vars(what).items()):
            if name.startswith("_") and name not in ("__init__", "__getitem__"):
                continue
            if isinstance(member, classmethod | staticmethod):
                setattr(what, name, type(member)(_function(member.__func__)))
            elif inspect.isfunction(member):
                setattr(what, name, _function(member))
        return what
    return typing.cast(_T, _function(typing.cast(Callable[..., Any], what)))


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    kinds = inspect.Parameter
    by_place = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    many = {
        parameter.kind: name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    }
    rest, others = many.get(kinds.VAR_POSITIONAL), many.get(kinds.VAR_KEYWORD)
    places = len(by_place)
    hints: dict[str, Any] | None = None

    # Whoever is called with too many arguments, or too few, or one twice is told so by Python.
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal hints
        if hints is None:
            hints = _hints(function, signature)
        for name, value in zip(by_place, arguments, strict=False):
            if name in hints:
                _check(name, value, hints[name])
        if rest in hints:
            for value in arguments[places:]:
                _check(rest, value, hints[rest])
        for name, value in named.items():
            said = name if name in signature.parameters else others
            if said in hints:
                _check(name, value, hints[said])
        return function(*arguments, **named)

    return call


def _hints(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any]:
    """What each argument has to be; without those that say nothing of it."""
    names = _Names(getattr(function, "__globals__", {}))
    hints = {}
    for name, parameter in signature.parameters.items():
        hint = parameter.annotation
        if hint is inspect.Parameter.empty:
            continue
        if isinstance(hint, str):
            try:
                hint = eval(hint, {"__builtins__": __builtins__}, names)  # ours
            except (NameError, AttributeError, ImportError):
                continue  # of a package that is not installed
        if hint is not Any and typing.get_origin(hint) is not typing.Unpack:
            hints[name] = hint
    return hints


class _Names(dict[str, Any]):
    """Names of a module, and those that it imports for the sake of annotations alone."""

    def __missing__(self, name: str) -> Any:
        home = _imported_for_types(self.get("__name__", "")).get(name)
        if home is None:
            raise KeyError(name)
        return getattr(importlib.import_module(home), name)


@functools.cache
def _imported_for_types(module: str) -> dict[str, str]:
    """Where the names below `if TYPE_CHECKING:` come from."""
    try:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    except (OSError, ValueError):  # its source did not come along
        return {}
    blocks = [
        node.body
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    return {name.name: node.module for node in imports if node.module for name in node.names}


def _check(name: str, value: Any, hint: Any) -> None:
    if type(value) is hint or is_a(value, hint):
        return
    shown = repr(value)
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}..."
    raise InputError(f"`{name}` is `{shown}`; give {_wanted(hint)}.")


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is of, and its parts: `list` and `(int,)` of `list[int]`."""
    return typing.get_origin(hint), typing.get_args(hint)


def is_a(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; True where it cannot be told.

    >>> is_a(8, float), is_a(True, int), is_a([1, 2], int | list[int]), is_a("a", list[str])
    (True, False, True, False)
    """
    origin, inner = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        return type(value) in inner or any(is_a(value, each) for each in inner)
    if origin is typing.Literal:
        return value in inner
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, numbers.Real) and not _is_truth(value)
    if hint is int:
        return isinstance(value, numbers.Integral) and not _is_truth(value)
    if hint is bool:
        return _is_truth(value)
    if isinstance(hint, type) and issubclass(hint, Path):
        return isinstance(value, os.PathLike)
    if origin in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        return _is_row(value, origin, inner)
    kind = origin if isinstance(origin, type) else hint
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if typing.is_typeddict(kind):
        return isinstance(value, dict)
    return isinstance(value, kind)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_row(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if isinstance(value, str | bytes | collections.abc.Mapping):
        return False
    if origin is collections.abc.Iterable:
        if not isinstance(value, collections.abc.Iterable):
            return False
    elif not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        return False
    if not isinstance(value, list | tuple):
        return True  # arrays and the like; an iterator would be used up
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(is_a, value, inner))
    return all(is_a(each, inner[0]) for each in value) if inner else True


def _wanted(hint: Any) -> str:
    """An annotation in words.

    >>> _wanted(int | None), _wanted(list[str])
    ('a whole number', 'a list of text')
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        parts = [_wanted(each) for each in inner if each is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if origin is typing.Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return f"a pair of {_wanted(inner[0])}" if len(inner) == 2 else f"{len(inner)} values"
    if origin in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        of = (
            _wanted(inner[0])
            .replace("a whole number", "whole numbers")
            .replace("a number", "numbers")
            if inner
            else "values"
        )
        return f"a list of {of}"
    name = getattr(origin or hint, "__name__", str(hint))
    if name in _MADE_BY:
        return f"{_article(name)} {name}, such as `{_MADE_BY[name]}`"
    words = {"dict": "a mapping", "Mapping": "a mapping", "Callable": "a function"}
    return words.get(name, f"{_article(name)} {name}")


def _article(name: str) -> str:
    return "an" if name[0] in "AEIOUaeiou" else "a"
