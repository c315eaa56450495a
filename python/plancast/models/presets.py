"""The shipped models: transformers of the catalogue, and the zoo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from plancast import _core, arguments
from plancast.errors import InputError

# Files of the catalogue, in the order in which they are searched: a first forecast
# waits for no more of them than it needs.
_FILES = ("dense", "experts", "windows")


# The one whose models say what they were trained with.
_TRAINED = "experts"
# Of an entry of the catalogue, beside the fields of the model.
_ABOUT = ("family", "trained_with")


@cache
def _models_of(file: str) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in fields.items() if key not in _ABOUT}
        for name, fields in _entries_of(file).items()
    }


@cache
def _entries_of(file: str) -> dict[str, dict[str, Any]]:
    import yaml

    path = Path(__file__).parent / "catalogue" / f"{file}.yaml"
    text = path.read_text(encoding="utf-8")
    # The parser in C, where PyYAML has it: a tenth of the time of a first forecast
    # would go into reading this file.
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    families: dict[str, dict[str, Any]] = document["families"]
    return {
        name: {"name": name, **families[model["family"]], **model}
        for name, model in document["models"].items()
    }


def transformers() -> list[str]:
    """The names of the presets that `config` knows.

    >>> "llama3-70b" in transformers(), "resnet50" in transformers()
    (True, False)
    """
    return [name for file in _FILES for name in _models_of(file)]


def names() -> list[str]:
    """The names of all presets, by family and size.

    >>> "llama3-70b" in names(), "resnet50" in names()
    (True, True)
    """
    from plancast.zoo import catalogue

    return [*transformers(), *catalogue.names()]


def trained_otherwise(name: str, strategy: str) -> list[str]:
    """What the training of a model used and a plan does without, one sentence each.

    Args:
      name: of the model, in any spelling; one that is no preset was trained in no known way.
      strategy: short form; what concerns axes that it does not cut is left out.

    >>> trained_otherwise("deepseek-v3", "pp=16,ep=64")[0]  # doctest: +ELLIPSIS
    '`deepseek-v3` was trained with DualPipe, ... `schedule=dualpipe,overlap=ep`, ...
    >>> trained_otherwise("deepseek-v3", "pp=16,ep=64,schedule=dualpipe,overlap=grad+ep")
    []
    >>> trained_otherwise("deepseek-v3", "tp=8"), trained_otherwise("gpt2", "pp=2,ep=1")
    ([], [])
    """
    plain = _plain(re.sub(r"-l[1-9]\d*$", "", name))
    said = {key: word for key, _, word in (item.partition("=") for item in strategy.split(","))}
    cut = {axis for axis, size in said.items() if size.isdigit() and int(size) > 1}
    return [
        f"`{known}` was trained with {item['what']} ({item['source']}): with "
        f"`{','.join(word.partition('|')[0] for word in item['words'])}`, "
        "which says so, an iteration may take less"
        for known, entry in _entries_of(_TRAINED).items()
        if _plain(known) == plain
        for item in entry.get("trained_with", ())
        if cut.issuperset(item["axes"]) and not all(_says(said, word) for word in item["words"])
    ]


def _says(said: Mapping[str, str], word: str) -> bool:
    """Whether a strategy says `KEY=A|B`: one of these, alone or added (`+`) to others."""
    key, _, values = word.partition("=")
    return not set(values.split("|")).isdisjoint(said.get(key, "").split("+"))


def find(name: str) -> str | None:
    """The preset that a name written another way means, or None.

    Case, dashes and underscores do not matter, nor does a version at the end.

    >>> find("ResNet-50"), find("resnet50v1.5"), find("Inception_V3"), find("resnet52")
    ('resnet50', 'resnet50', 'inception-v3', None)
    """
    known = _by_plain_name()
    bare = re.sub(r"[-_ ]?v\d+(\.\d+)?$", "", name.lower())
    return known.get(_plain(name)) or known.get(_plain(bare))


def of_plain_name(name: str) -> str | None:
    """The preset that a name means whose case and dashes do not matter, or None.

    >>> of_plain_name("Llama-3_8B"), of_plain_name("llama-3")
    ('llama3-8b', None)
    """
    return _by_plain_name().get(_plain(name))


@cache
def _by_plain_name() -> dict[str, str]:
    return {_plain(preset): preset for preset in names()}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _fields(name: str) -> dict[str, Any] | None:
    for file in _FILES:
        if name in _models_of(file):
            return dict(_models_of(file)[name])
    cut = re.fullmatch(r"(.+)-l([1-9]\d{0,4})", name)
    whole = _fields(cut[1]) if cut else None
    if cut is None or whole is None:
        return None
    layers = int(cut[2])
    if layers > whole["layers"]:
        raise InputError(
            f"`{name}` has {layers} layers, and `{cut[1]}` has {whole['layers']}. "
            "The number after `-l` is of its first layers."
        )
    fields = {**whole, "name": name, "layers": layers}
    if "dense_layers" in fields:
        fields["dense_layers"] = min(fields["dense_layers"], layers)
    return fields


def is_transformer(name: str) -> bool:
    """Whether `config` knows the name.

    >>> is_transformer("llama3-70b-l12"), is_transformer("resnet50")
    (True, False)
    """
    return _fields(name) is not None


def config(name: str) -> dict[str, Any]:
    """The fields of a transformer preset, as `Model.from_config` takes them.

    `-lN` after a name stands for its first N layers.

    >>> config("llama3-8b")["kv_heads"], config("llama3-70b-l12")["layers"]
    (8, 12)
    """
    fields = _fields(name)
    if fields is not None:
        return fields
    offered = arguments.offer(name, names())
    listed = "" if "Did you mean" in offered else " `plancast list models` has all."
    raise InputError(
        f"no model preset `{name}`.{offered}{listed} Other models come as a `config.json` or a "
        "file with sizes (docs/models.md)."
    )


def is_machine(name: str) -> bool:
    """Whether a name, with or without sizes, is that of a machine.

    >>> is_machine("dgx-h100:2x4"), is_machine("gpt2")
    (True, False)
    """
    return name.partition(":")[0] in _core.Machine.preset_names()
