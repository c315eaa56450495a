"""The shipped models: transformers of presets.yaml, and the zoo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast.errors import InputError
from plancast.models.fields import did_you_mean

if TYPE_CHECKING:
    from plancast.model import Model


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    import yaml

    text = Path(__file__).with_name("presets.yaml").read_text(encoding="utf-8")
    # The parser in C, where PyYAML has it: a tenth of the time of a first forecast
    # would go into reading this file.
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    families: dict[str, dict[str, Any]] = document["families"]
    catalogue = {}
    for name, model in document["models"].items():
        own = {key: value for key, value in model.items() if key != "family"}
        catalogue[name] = {"name": name, **families[model["family"]], **own}
    return catalogue


def names() -> list[str]:
    """The names of all presets, by family and size.

    >>> "llama3-70b" in names(), "resnet50" in names()
    (True, True)
    """
    from plancast.zoo import catalogue

    return [*_catalogue(), *catalogue.names()]


def model(name: str, chosen: Mapping[str, int]) -> Model:
    """The model of a name; `chosen` are sizes of its data (`seq`, `image`, ...)."""
    from plancast.model import Model

    if name not in _catalogue():
        # The builder and the zoo are loaded for their own models only.
        from plancast.zoo import catalogue

        if name in catalogue.names():
            return catalogue.builder(name, **chosen).build()
    fields = config(name)
    for key in chosen:
        if key != "seq":
            raise InputError(f"`{name}` has no `{key}` to choose; it has `seq`.")
    return Model.from_config(**{**fields, **chosen})


def config(name: str) -> dict[str, Any]:
    """The fields of a transformer preset, as `Model.from_config` takes them.

    >>> config("llama3-8b")["kv_heads"]
    8
    """
    catalogue = _catalogue()
    if name in catalogue:
        return dict(catalogue[name])
    hint = did_you_mean(name.replace("_", "-"), names())
    known = ", ".join(f"`{known}`" for known in names())
    raise InputError(f"no model preset `{name}`; there are {known}.{hint}")
