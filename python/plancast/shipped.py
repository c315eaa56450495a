"""What is shipped by name: models, machines, GPUs, software profiles, op rules and recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plancast import _core, arguments
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.recipes import named, profile_of, recipes

# A small part of a transformer, by which a GPU's kernels are looked at.
_PROBE = "llama3-8b-l2"


def models() -> list[str]:
    """Names of all models."""
    return Model.presets()


def gpus() -> list[str]:
    """Names of the GPUs that the shipped machines have.

    >>> "H100-SXM-80GB" in gpus()
    True
    """
    return sorted(_machines_of_gpu())


def machines_of(gpu: str) -> list[str]:
    """The shipped machines that have a GPU."""
    return list(_machines_of_gpu().get(gpu, ()))


# What can be listed, and how.
KINDS: dict[str, Callable[[], list[str]]] = {
    "models": models,
    "machines": Machine.presets,
    "gpus": gpus,
    "profiles": lambda: [*_core.profile_names(), *(f"+{a}" for a in _core.profile_additions())],
    "ops": lambda: list(_core.OpRule.names()),
    "recipes": lambda: [recipe.name for recipe in recipes()],
}


def kind_of(text: str) -> str:
    """The kind that a word means, singular or plural.

    >>> kind_of("gpu"), kind_of("machines")
    ('gpus', 'machines')
    """
    word = text.lower()
    word = {"cluster": "machines", "clusters": "machines", "rules": "ops"}.get(word, word)
    for kind in KINDS:
        if word in (kind, kind.removesuffix("s")):
            return kind
    raise InputError(f"nothing is listed as `{text}`.{arguments.offer(text, KINDS)}")


def names(kind: str, words: list[str]) -> list[str]:
    """Names of a kind that have all words in them, letter case aside.

    >>> names("models", ["llama3", "8b"])
    ['llama3-8b', 'llama3.1-8b', 'llava-llama3-8b']
    """
    known = KINDS[kind]()
    found = [name for name in known if all(word.lower() in name.lower() for word in words)]
    if words and not found:
        asked = " ".join(words)
        raise InputError(f"no {kind} are like `{asked}`.{arguments.offer(asked, known)}")
    return found


def kinds_of(name: str) -> list[tuple[str, str]]:
    """What a name is of: kinds, and what it is called there.

    Raises:
      InputError: nothing is called so; names what is called nearly so.
    """
    bare = name.partition(":")[0]
    found = []
    for kind in KINDS:
        asked = bare if kind == "machines" else name
        match = next((one for one in KINDS[kind]() if one.lower() == asked.lower()), None)
        base, plus, _ = name.partition("+")
        if kind == "profiles" and plus and base in _core.profile_names():
            _core.profile_description(name)  # or says what is wrong with the additions
            match = name
        if match is not None:
            found.append((kind, match))
    if found:
        return found
    from plancast.models import presets

    if presets.is_transformer(name):
        return [("models", name)]
    known = [one for kind in KINDS for one in KINDS[kind]()]
    raise InputError(
        f"nothing is called `{name}`.{arguments.offer(name, known)} `plancast list models` and "
        "`list machines`, `gpus`, `profiles`, `ops`, `recipes` have all names."
    )


def facts(kind: str, name: str) -> dict[str, Any]:
    """What a table says of one of them."""
    return _FACTS[kind](name)


def all_facts(kind: str, found: list[str]) -> Iterator[dict[str, Any]]:
    """The same of several, one by one."""
    return (facts(kind, name) for name in found)


def _model(name: str) -> dict[str, Any]:
    from plancast.models import presets

    if not presets.is_transformer(name):
        return {"name": name, "parameters": None, "active": None, "layers": None, "seq": None}
    model = Model.preset(name)
    return {
        "name": name,
        "parameters": model.parameters,
        "active": model.active_parameters,
        "layers": model.layers,
        "seq": model.seq,
    }


def _machine(name: str) -> dict[str, Any]:
    from plancast.training.prices import on_record, rent_if_known

    machine = Machine.preset(name, hosts=1)
    fields = machine.to_dict()
    price = rent_if_known(machine)
    return {
        "name": name,
        "gpu": machine.gpu,
        "gpus_per_host": machine.gpus_per_host,
        "memory_gb": fields["gpu"]["memory_gb"],
        "domain_gpus": machine.gpus_per_domain,
        "intra_gb_per_s": fields["intra_gb_per_s"],
        "network_gbit_per_s": fields["nics_per_host"] * fields["nic_gbit_per_s"],
        "fabric": fields["fabric"],
        "usd_per_gpu_hour": None
        if isinstance(price, str)
        else price.usd_per_hour / machine.devices,
        "prices": [quote.to_dict() for quote in on_record(machine)],
    }


def _gpu(name: str) -> dict[str, Any]:
    from plancast.planning import predict

    presets = machines_of(name)
    fields = Machine.preset(presets[0], hosts=1).to_dict()["gpu"]
    one = Machine.preset(presets[0], hosts=1, gpus_per_host=1)
    forecast = predict(Model.preset(_PROBE, seq=2048), one, "dp=1,mb=1", batch=1)
    return {
        "name": name,
        "memory_gb": fields["memory_gb"],
        "memory_gb_per_s": fields["memory_gb_per_s"],
        "bf16_tflops": fields["bf16_tflops"],
        "fp8_tflops": fields["fp8_tflops"],
        "own_kernels": 1 - forecast.knowledge().get("extrapolated", 0.0),
        "machines": presets,
    }


def _profile(name: str) -> dict[str, Any]:
    if name.startswith("+"):  # behind another's name
        what = _core.profile_additions()[name[1:]]
        return {"name": name, "what": what, "lineage": "", "from_documentation": False}
    return {
        "name": name,
        "what": _core.profile_description(name),
        "lineage": _core.profile_lineage(name),
        "from_documentation": _core.profile_from_documentation(name),
    }


def _op(name: str) -> dict[str, Any]:
    rule = str(_core.OpRule.find(name))
    return {"name": name, "call": rule.partition(" {")[0]}


def _recipe(name: str) -> dict[str, Any]:
    recipe = named(name)
    return {
        "name": name,
        "versions": list(recipe.versions),
        "gpus": recipe.gpus,
        "batch": recipe.batch,
        "seq": recipe.seq,
        "plan": recipe.plan,
        "cuda_graphs": recipe.cuda_graphs,
        "profile": profile_of(recipe),
    }


def _machines_of_gpu() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in Machine.presets():
        found.setdefault(Machine.preset(name, hosts=1).gpu, []).append(name)
    return found


_FACTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "models": _model,
    "machines": _machine,
    "gpus": _gpu,
    "profiles": _profile,
    "ops": _op,
    "recipes": _recipe,
}
