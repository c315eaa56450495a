"""The recipe that fits a model and a machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.recipes.table import Recipe, facts, framework, recipes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plancast.launch_config import LaunchConfig

# How the GPUs that recipes are written for are called by machines.
_GPUS = {"H100-SXM": "h100", "B200-SXM": "b200", "B300-SXM": "b300", "GB200": "gb200",
         "GB300": "gb300"}  # fmt: skip

# The machine of each such GPU, and GPUs of a host.
_MACHINES = {"h100": ("dgx-h100", 8), "b200": ("dgx-b200", 8), "b300": ("dgx-b300", 8),
             "gb200": ("gb200-nvl72", 4), "gb300": ("gb300-nvl72", 4)}  # fmt: skip

# Lengths of what fine-tuning recipes pack (default_squad_config of Megatron-Bridge's
# recipes/utils/finetune_utils.py): a context of 120 words, a question of 10 and an answer of 3, as
# SQuAD has on average, at 1.3 tokens a word, with their spread: assumption.
SQUAD = "lognormal:160:0.4"


def is_recipe(text: str) -> bool:
    """Whether the words behind `-s` ask for a recipe.

    >>> is_recipe("recipe:0.5/large-scale"), is_recipe("tp=8")
    (True, False)
    """
    return text.strip().lower().partition(":")[0] == "recipe"


def gpu_of(machine: Machine) -> str:
    """The word of recipes for a machine's GPU; its own name where there is none."""
    known = (word for start, word in _GPUS.items() if machine.gpu.startswith(start))
    return next(known, machine.gpu)


def gpu_in(preset: str) -> str | None:
    """The word of recipes for the GPU of a machine that they are written for; None: of another.

    >>> gpu_in("gb200-nvl72"), gpu_in("dgx-a100-80g")
    ('gb200', None)
    """
    return next((gpu for gpu, (name, _) in _MACHINES.items() if name == preset), None)


def machine_for(recipe: Recipe) -> str:
    """A machine that a recipe is written for, as `-c` has it.

    >>> machine_for(named("deepseek-v3/gb200/mxfp8/256@0.6.0"))
    'gb200-nvl72:64'
    """
    preset, of_host = _MACHINES[recipe.gpu]
    hosts = recipe.gpus // of_host
    return f"{preset}:{hosts}" if hosts else f"{preset}:1x{recipe.gpus}"


def named(name: str) -> Recipe:
    """The recipe of that name, as `plancast list recipes` has it.

    Raises:
      InputError: there is none; names the nearest.
    """
    known = {recipe.name: recipe for recipe in recipes()}
    if name in known:
        return known[name]
    raise InputError(f"no recipe is called `{name}`.{arguments.offer(name, known)}")


def choose(
    model: str, machine: Machine, *, dtype: str | None = None, words: Sequence[str] = ()
) -> Recipe:
    """The newest recipe of a model for this machine, the nearest in GPUs first.

    Args:
      model: its name, as recipes have it.
      machine: whose GPU and number of GPUs it must be for.
      dtype: of matrix products; bf16, or what there is, by default.
      words: of the recipe, such as `0.5`, `sft` or `large-scale`; all must hold.

    Raises:
      InputError: there is none; says what there is.
    """
    model = facts()["aliases"].get(model, model)
    found = _narrow(recipes(), "model", model, "recipes are shipped for")
    gpu = gpu_of(machine)
    found = _narrow(found, "gpu", gpu, f"recipes of {model} are for")
    for word in words:
        left = [recipe for recipe in found if word in recipe.words]
        if not left:
            known = sorted({one for recipe in found for one in recipe.words if "@" not in one})
            raise InputError(
                f"no recipe of {model} for {gpu} has `{word[:40]}`. Their words are "
                f"{', '.join(known)}."
            )
        found = left
    if "sft" not in words:
        found = [recipe for recipe in found if recipe.task == "pretrain"] or found
    kinds = list(dict.fromkeys(recipe.dtype for recipe in found))
    asked = dtype or ("bf16" if "bf16" in kinds else kinds[0])
    found = _narrow(found, "dtype", asked, f"recipes of {model} for {gpu} are in")
    running = [recipe for recipe in found if recipe.runs_on(machine.devices)]
    if not running:
        sizes = sorted({recipe.gpus for recipe in found})
        raise InputError(
            f"no recipe of {model} for {gpu} in {asked} runs on {machine.devices:,} GPUs: their "
            f"replicas and groups of experts need whole parts of "
            f"{', '.join(f'{size:,}' for size in sizes)} GPUs."
        )
    return min(running, key=lambda recipe: _order(recipe, machine.devices))


def _narrow(found: Iterable[Recipe], field: str, asked: str, there_are: str) -> list[Recipe]:
    found = list(found)
    left = [recipe for recipe in found if getattr(recipe, field) == asked]
    if left:
        return left
    known = sorted({getattr(recipe, field) for recipe in found})
    raise InputError(
        f"{there_are} {', '.join(known)}, not `{asked}`. Say the plan, such as `-s tp=8,mb=1`, or "
        "leave `-s` out: `plancast plan` finds one."
    )


def _order(recipe: Recipe, gpus: int) -> tuple[Any, ...]:
    newest = tuple(-int(part) for part in recipe.versions[-1].split("."))
    apart = abs(math.log(recipe.gpus / gpus))
    later = [-ord(letter) for letter in recipe.variant]
    return newest, apart, recipe.variant == "large-scale", later


@checked
def recipe(
    model: Model | str, machine: Machine, *, dtype: str | None = None, words: Sequence[str] = ()
) -> LaunchConfig:
    """What a framework ships for a model on a machine, ready to be predicted.

    Args:
      model: a preset's name, or a model.
      machine: where. Data parallelism and the batch follow its number of GPUs.
      dtype: of matrix products; bf16, or what there is, by default.
      words: `0.5` or another version, `sft`, `large-scale`, `v1`, ...; all must hold.

    Raises:
      InputError: there is none; says what there is.
    """
    from plancast.frameworks.contents import Contents
    from plancast.launch_config import LaunchConfig
    from plancast.strategy import Strategy

    name = model if isinstance(model, str) else model.name
    found = choose(name, machine, dtype=dtype, words=words)
    strategy = Strategy.parse(f"dp={machine.devices // found.replica},{found.plan}")
    contents = Contents(
        framework=framework(),
        strategy=strategy.short_form,
        profile=profile_of(found),
        batch=found.batch_on(machine.devices),
        seq=found.seq,
        dtype=found.dtype,
        types=types_of(found),
        model=_model(found),
        gpus=machine.devices,
        cuda_graphs=found.cuda_graphs,
        notes=tuple(_notes(found, machine.devices)),
    )
    launch = LaunchConfig.of(contents, strategy)
    strategy._launch = launch
    return launch


def asked(
    text: str, model: Model | None, machine: Machine | None, *, dtype: str | None = None
) -> LaunchConfig:
    """What `-s recipe`, `-s recipe:0.5/sft` or `-s recipe:NAME` means.

    Raises:
      InputError: there is no such recipe, or it is not said for which model and machine.
    """
    if model is None or machine is None:
        raise InputError("a recipe is for a model and a machine; say both (`-m`, `-c`).")
    rest = text.strip().partition(":")[2]
    words = [rest] if "@" in rest else [word for word in rest.lower().split("/") if word]
    return recipe(model, machine, dtype=dtype, words=words)


def profile_of(recipe: Recipe) -> str:
    """The software profile that runs a recipe."""
    profiles: dict[str, str] = facts()["profiles"]
    return profiles["fused" if recipe.fused else recipe.dispatcher]


def types_of(recipe: Recipe) -> dict[str, str]:
    """Types of a recipe other than its profile's."""
    types = {
        "param_dtype": facts()["param_dtype"].get(recipe.dtype),
        "state_dtype": facts()["state_dtype"].get(recipe.model),
        "optimizer_type": facts()["optimizer_type"].get(recipe.model),
        "attention_dtype": recipe.attention,
    }
    return {name: word for name, word in types.items() if word}


def _model(recipe: Recipe) -> Model:
    model = Model.preset(recipe.model, seq=recipe.seq)
    if recipe.task == "sft":
        model = model.with_documents(SQUAD)
    ahead = facts()["mtp"].get(recipe.model)
    return model.with_mtp(ahead) if ahead else model


def _notes(recipe: Recipe, gpus: int) -> Iterable[str]:
    versions = ", ".join(recipe.versions)
    yield f"recipe {recipe.name} of {framework()} {versions}"
    if gpus != recipe.gpus:
        yield (
            f"it is written for {recipe.gpus:,} GPUs and {recipe.batch:,} samples a step; data "
            f"parallelism and batch follow the number of GPUs"
        )
    if recipe.task == "sft":
        yield f"its sequences are packed from SQuAD, `{SQUAD}` tokens each (an assumption)"
