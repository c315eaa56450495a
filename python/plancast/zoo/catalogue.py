"""The names of the zoo, and the models behind them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from plancast import arguments
from plancast.builder import GraphBuilder
from plancast.errors import InputError

# Which module has the function of a family.
_MODULES = {
    "alexnet": "vgg",
    "dlrm": "dlrm",
    "efficientnet": "efficientnet",
    "inception_v3": "inception",
    "llava": "llava",
    "ncf": "ncf",
    "resnet": "resnet",
    "ssd": "ssd",
    "t5": "t5",
    "vgg": "vgg",
    "vit": "vit",
    "wide_deep": "wide_deep",
}
# Arguments that the catalogue sets and a user may choose; the others make a model what it is.
_CHOICES = ("auxiliary", "classes", "hot", "image", "seq", "sparse", "target_seq")


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    import yaml

    text = Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return entries


def names() -> list[str]:
    """The names of all models of the zoo.

    >>> "resnet50" in names()
    True
    """
    return list(_catalogue())


def choices(name: str) -> list[str]:
    """What may be chosen of a model: sizes of its data, kinds of gradients.

    >>> choices("resnet50")
    ['classes', 'image']
    """
    return _choices(_function(_catalogue()[name]["family"]))


def builder(name: str, **chosen: int) -> GraphBuilder:
    """The builder of a model of the catalogue; `chosen` as in `choices`."""
    entry = dict(_catalogue()[name])
    return family(entry.pop("family"), name, **{**entry, **_checked(name, choices(name), chosen)})


def family(function: str, name: str, **arguments: Any) -> GraphBuilder:
    """A builder of any member of a family, `resnet`, from the family's own arguments."""
    made: GraphBuilder = _function(function)(name, **arguments)
    return made


def _function(family_name: str) -> Callable[..., GraphBuilder]:
    module = importlib.import_module(f"plancast.zoo.{_MODULES[family_name]}")
    function: Callable[..., GraphBuilder] = getattr(module, family_name)
    return function


def _choices(function: Callable[..., GraphBuilder]) -> list[str]:
    parameters = inspect.signature(function).parameters
    return sorted(name for name in parameters if name in _CHOICES)


def _checked(name: str, known: list[str], chosen: Mapping[str, int]) -> dict[str, int]:
    for key in chosen:
        if key not in known:
            raise InputError(f"`{name}` has no `{key}` to choose.{arguments.offer(key, known)}")
    return dict(chosen)
