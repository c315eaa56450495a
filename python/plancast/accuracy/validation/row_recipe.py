"""The recipe that a row ran, or the nearest to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.scaling import dtype_of
from plancast.accuracy.validation.software import release_of
from plancast.recipes import Recipe, gpu_in, recipes

_DEGREES = ("tp", "pp", "vpp", "cp", "ep")


@dataclass(frozen=True)
class RowRecipe:
    """What the software ships for a row's model, GPU and type."""

    recipe: Recipe
    exact: bool
    """Whether the row's degrees and micro-batch are the recipe's, so that the row ran it."""

    @property
    def offloaded(self) -> str | None:
        """Layers whose activations are on the host."""
        return self.recipe.keys.get("offload", "").partition(":")[2] or None

    def lacks(self, overlap: list[str]) -> list[str]:
        """Of the words of a row's `overlap`, those that the recipe has switched off."""
        has = self.recipe.keys.get("overlap", "").split("+")
        return [word for word in overlap if word in ("grad", "param", "tp") and word not in has]


def recipe_of(row: Row) -> RowRecipe | None:
    """None: its software ships none for this model, GPU and type."""
    release = release_of(row.software)
    if release is None:
        return None
    gpu, dtype = gpu_in(row.machine.partition(":")[0]), dtype_of(row)
    task = "sft" if "sft_packed_sequences" in row.assumptions else "pretrain"
    found = [
        recipe
        for recipe in recipes()
        if release in recipe.versions
        and (recipe.model, recipe.gpu, recipe.dtype, recipe.task) == (row.model, gpu, dtype, task)
    ]
    if not found:
        return None
    keys = row.strategy_keys()
    gpus = math.prod(_whole(keys.get(key)) or 1 for key in ("dp", "tp", "pp", "cp"))
    nearest = min(
        found,
        key=lambda recipe: (
            not _ran(recipe, keys, row),
            recipe.keys["zero"] != keys.get("zero", "0"),
            abs(math.log(recipe.gpus / gpus)),
            recipe.variant == "large-scale",
            abs(recipe.batch_on(gpus) - row.global_batch) if recipe.runs_on(gpus) else math.inf,
        ),
    )
    return RowRecipe(nearest, _ran(nearest, keys, row))


def _ran(recipe: Recipe, keys: dict[str, str], row: Row) -> bool:
    """Whether all that the row says of its plan is the recipe's."""
    said = dict(keys)
    for key in _DEGREES:
        if key not in said and row.assumption(key) != "not_printed":
            said[key] = "1"
    degrees = (key for key in (*_DEGREES, "mb") if key in said)
    shards = keys.get("zero") == "3"
    return shards == (recipe.keys["zero"] == "3") and all(
        _whole(said[key]) == recipe.degree(key) for key in degrees
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
