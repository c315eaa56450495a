"""The shipped models, read from presets.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from plancast.errors import InputError
from plancast.models.fields import did_you_mean


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

    >>> "llama3-70b" in names()
    True
    """
    return list(_catalogue())


def config(name: str) -> dict[str, Any]:
    """The fields of a preset, as `Model.from_config` takes them.

    >>> config("llama3-8b")["kv_heads"]
    8
    """
    catalogue = _catalogue()
    if name in catalogue:
        return dict(catalogue[name])
    hint = did_you_mean(name.replace("_", "-"), list(catalogue))
    known = ", ".join(f"`{known}`" for known in catalogue)
    raise InputError(f"no model preset `{name}`; there are {known}.{hint}")
