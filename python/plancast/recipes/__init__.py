"""Plans that frameworks ship for a model, a GPU and a type: recipes (docs/recipes.md).

`-s recipe` and `plancast.recipe` take the one that fits a machine.
"""

from plancast.recipes.choose import (
    SQUAD,
    asked,
    gpu_in,
    is_recipe,
    machine_for,
    named,
    profile_of,
    recipe,
)
from plancast.recipes.table import Recipe, framework, recipes

__all__ = [
    "SQUAD",
    "Recipe",
    "asked",
    "framework",
    "gpu_in",
    "is_recipe",
    "machine_for",
    "named",
    "profile_of",
    "recipe",
    "recipes",
]
