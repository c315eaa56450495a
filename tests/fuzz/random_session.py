"""Draws sessions of users: a model and a machine of any kind, a plan in any words, options.

Each is a number: the same number draws the same session.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plancast as pc

from tests.fuzz import seeds, small_models
from tests.fuzz.random_tree import MODELS, Drawing
from tests.fuzz.small_models import TRANSFORMERS, model_of

Document = dict[str, Any]

IMPORTED = ("block.pt2", "config.json", "small.yaml")
# Tokens of a sequence at most of models of the catalogue, so that a session takes moments.
SEQ = ("256", "512")
LINKS = ("nvlink", "xgmi", "pcie", "nic", "host-bridge")
# Options that say how the answer is made or that it is told, not what is asked.
TOLD = (
    ("--memory-timeline",), ("--sensitivities",), ("--trace", "trace.json"),
    ("--report", "page.html"), ("--memory-svg", "memory.svg"), ("--no-shortcuts",),
    ("--jitter", "0.1", "--samples", "3", "--workers", "1"),
    ("--jitter", "0.1", "--samples", "3", "--workers", "2"),
)  # fmt: skip
# Options that change what is asked, with what they are called in Python.
TYPES = {
    "grad_dtype": ("fp32", "bf16"), "param_dtype": ("fp32", "bf16"),
    "state_dtype": ("fp32", "bf16"), "reduce_dtype": ("fp32", "bf16"),
    "cuda_graphs": (True,), "fidelity": ("chunks",),
    "what_if": ("nic=2x", "straggler:0=0.5", "op:attn=free", "kernel:gemm=2x"),
}  # fmt: skip
OPTIMIZERS = ("sgd", "sgd-momentum", "adagrad", "lion", "lamb", "muon")
# Of a space, each key with what it may be; at most so many plans.
SPACE = {
    "tp": ("1", "1|2", "1|2|4", "*"), "pp": ("1", "1|2", "1..4"), "vpp": ("1", "1", "1|2"),
    "mb": ("1", "1|2"), "recompute": ("none", "full", "none|full"), "zero": ("0", "0|1", "1|3"),
    "sp": ("0", "1", "0|1"), "cp": ("1",), "ep": ("1", "1", "*"),
}  # fmt: skip
MOST_PLANS = 24


@dataclass
class Drawn:
    """A session: what is asked for again and again."""

    seed: int
    model: str
    kind: str  # of model
    machine: Document
    damage: str
    strategy: Document | str
    options: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    space: str = ""

    def __str__(self) -> str:
        said = dict(vars(self))
        said["machine"] = {**self.machine, "source": ""}
        return json.dumps(said)


@functools.cache
def imports() -> Path:
    """A folder with models of other formats."""
    folder = Path(tempfile.gettempdir()) / "plancast-sessions"
    folder.mkdir(exist_ok=True)
    if not (folder / "kernels.db").exists():
        seeds.write(folder)
    return folder


@functools.cache
def _catalogue() -> tuple[str, ...]:
    """Models of the catalogue, of a length that does not take minutes."""
    zoo = set(MODELS)
    return tuple(name for name in pc.Model.presets() if name not in zoo)


@functools.cache
def _hosts() -> tuple[str, ...]:
    return tuple(pc.Machine.presets())


def _draw_model(rng: random.Random) -> tuple[str, str]:
    kind = rng.choice(("small", "layers", "zoo", "graph", "graph", "import", "catalogue"))
    if kind == "small":
        return rng.choice(small_models.ALL), kind
    if kind == "layers":
        return rng.choice(TRANSFORMERS), kind
    if kind == "zoo":
        return rng.choice([m for m in MODELS if m not in (*small_models.ALL, *TRANSFORMERS)]), kind
    if kind == "graph":
        return f"{small_models.RANDOM}{rng.randrange(10_000)}", kind
    if kind == "import":
        return str(imports() / rng.choice(IMPORTED)), kind
    name = rng.choice(_catalogue())
    return (f"{name}@{rng.choice(SEQ)}" if _has_length(name) else name), kind


@functools.cache
def _has_length(name: str) -> bool:
    try:
        pc.Model.preset(name, seq=256)
    except pc.InputError:
        return False
    return True


def _damage(rng: random.Random, machine: Document) -> str:
    """Slows devices and links of a machine, or changes its figures; says how."""
    parts = machine.get("sections", [machine])
    part = rng.choice(parts)
    devices = part["hosts"] * part["gpus_per_host"]
    how = rng.choice(("", "", "device", "link", "figures", "both"))
    if how in ("device", "both"):
        part["device_overrides"] = [
            {"device": device, "compute_scale": rng.choice((0.1, 0.5, 0.9, 0.99))}
            for device in rng.sample(range(devices), min(devices, rng.choice((1, 1, 2))))
        ]
    if how in ("link", "both"):
        link = rng.choice(LINKS)
        part["link_overrides"] = [
            {"link": link, "instance": 0, "capacity_scale": rng.choice((0.01, 0.25, 0.5))}
        ]
    if how == "figures":
        part["nic_gbit_per_s"] = rng.choice((1, 10, 100, 800))
        part["gpu"]["memory_gb"] = rng.choice((1, 8, 24, 500))
        part["gpu"].pop("usable_gb", None)
    return how


def _is_machine(machine: Document) -> bool:
    try:
        pc.Machine.from_dict(machine)
    except pc.InputError:
        return False
    return True


def _draw_space(rng: random.Random) -> str:
    while True:
        said = {key: rng.choice(values) for key, values in SPACE.items()}
        plans = math.prod(4 if v in ("*", "1..4") else 1 + v.count("|") for v in said.values())
        if plans <= MOST_PLANS:
            return ",".join(f"{key}={value}" for key, value in said.items())


def draw(seed: int) -> Drawn:
    """The session of a number."""
    rng = random.Random(f"session {seed}")
    model, kind = _draw_model(rng)
    drawing = Drawing(rng, models=(model,), hosts=_hosts())
    tree = drawing.tree()
    whole = pc.Machine.open(tree.machine).to_dict()
    machine = copy.deepcopy(whole)
    damage = _damage(rng, machine)
    if not _is_machine(machine):  # it has no such link
        machine, damage = whole, ""
    strategy: Document | str = tree.document
    if rng.random() < 0.3:
        strategy = tree.document["plan"]
    options = dict(tree.options)
    for name, values in TYPES.items():
        if rng.random() < 0.04:
            options[name] = rng.choice(values)
    beside = random.Random(f"optimizer {seed}")  # other draws stay what they are
    if beside.random() < 0.1:
        options["optimizer_type"] = beside.choice(OPTIMIZERS)
    told = list(rng.choice(TOLD)) if rng.random() < 0.25 else []
    space = _draw_space(rng)
    return Drawn(seed, model, kind, machine, damage, strategy, options, told, space)


def simpler(drawn: Drawn) -> list[str]:
    """What somebody tries whose plan is refused: less of it, then next to nothing."""
    said = drawn.strategy if isinstance(drawn.strategy, str) else drawn.strategy["plan"]
    keys = said.split(",")
    rng = random.Random(drawn.seed)
    mesh = [key for key in keys if key.partition("=")[0] in ("dp", "tp", "pp", "mb", "sp", "ep")]
    some = [key for key in keys if key in mesh or rng.random() < 0.5]
    return list(dict.fromkeys([said, ",".join(some), ",".join(mesh), "mb=1"]))


def model(drawn: Drawn) -> pc.Model:
    """The model of a session."""
    return model_of(drawn.model)
