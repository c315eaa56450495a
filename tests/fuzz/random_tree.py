"""Draws strategy trees over the whole language.

A directive is one function: those of a node are in `NODE`, those of a plan in `PLAN`.
"""

from __future__ import annotations

import functools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import plancast as pc
import yaml

from tests.fuzz import small_models
from tests.fuzz.outline import Outline
from tests.fuzz.small_models import TRANSFORMERS, model_of

MODELS = (
    *small_models.ALL, *small_models.ALL, *TRANSFORMERS,
    "alexnet", "vgg16", "resnet18", "resnet50", "inception-v3", "efficientnet-b0", "vit-b-32",
    "t5-small", "flan-t5-small", "dlrm", "ncf", "wide-and-deep",
)  # fmt: skip
HOSTS = ("dgx-h100", "dgx-a100-80g", "dgx1-v100-32g", "l4-pcie", "h100-pcie-80g", "oci-mi300x")
AXES = ("dp", "tp", "dp", "tp", "ep", "etp", "pp", "cp")
PRODUCT = re.compile(r"(^|\.)(qkv|proj|fc\d|logits|\w*_up|\w*_down)$")
ODD = 0.02  # of choices that make no sense


@dataclass
class Tree:
    """A tree with what it is asked of."""

    model: str
    machine: str
    document: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The tree's file, with the rest of the question in a comment."""
        asked = json.dumps({"model": self.model, "machine": self.machine, **self.options})
        return f"# {asked}\n{yaml.safe_dump(self.document, sort_keys=False)}"


@functools.cache
def _outline(name: str) -> Outline:
    return Outline.of(model_of(name))


@functools.cache
def _gpus_of(kind: str) -> int:
    return pc.Machine.preset(kind).gpus_per_host


def _parts(of: int) -> list[int]:
    return [n for n in range(1, of + 1) if of % n == 0]


class Drawing:
    """Draws one tree."""

    def __init__(
        self, rng: random.Random, models: Sequence[str] = MODELS, hosts: Sequence[str] = HOSTS
    ) -> None:
        self.rng = rng
        self.model = rng.choice(models)
        self.outline = _outline(self.model)
        per_host = rng.choice((1, 2, 4, 4, 8))
        kinds = [rng.choice(hosts) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        per_host = min(per_host, *(_gpus_of(kind) for kind in kinds))
        self.hosts = [rng.choice((1, 1, 2)) for _ in kinds]
        self.machine = "+".join(
            f"{kind}:{hosts}x{per_host}" for kind, hosts in zip(kinds, self.hosts, strict=True)
        )
        self.per_host = per_host
        self.devices = sum(self.hosts) * per_host
        self.mesh: dict[str, int] = {}
        self.stages: list[dict[str, Any]] = []
        self.keys: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.below: list[str] = []  # ops of the node that is being drawn

    def maybe(self, one_in: float) -> bool:
        return self.rng.random() * one_in < 1

    def of(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def odd(self) -> bool:
        """Whether this one makes no sense."""
        return self.rng.random() < ODD

    def tree(self) -> Tree:
        """The tree, all of whose parts are drawn."""
        self.draw_mesh()
        for key, draw in PLAN.items():
            value = draw(self)
            if value is not None:
                self.keys[key] = value
        for _ in range(self.of(0, 1, 1, 2, 3, 5)):
            self.draw_node()
        document: dict[str, Any] = {
            "plan": ",".join(k if v is True else f"{k}={v}" for k, v in self.keys.items())
        }
        if self.nodes:
            document["nodes"] = self.nodes
        if self.stages:
            document["stages"] = self.stages
        if load := self.draw_load():
            document["load"] = load
        samples = self.keys.get("mb", 1) * self.mesh["dp"]
        options = {
            "batch": samples * self.of(1, 1, 2, 3, 5, 8) + self.odd(),
            "profile": self.of("megatron-core", "megatron-core", *pc.profiles()),
            "dtype": self.of("bf16", "bf16", "bf16", "fp32", "fp8", "mxfp8"),
        }
        return Tree(self.model, self.machine, document, options)

    def draw_mesh(self) -> None:
        tp = self.of(*_parts(self.devices))
        tp = tp if tp <= 8 or self.odd() else 1
        stages = self.of(1, 1, *_parts(self.devices // tp))
        stages = min(stages, 6)
        vpp = 2 if stages > 1 and self.maybe(5) else 1
        self.mesh = {"tp": tp, "pp": stages, "vpp": vpp}
        self.mesh["dp"] = max(1, self.devices // tp // stages)
        self.samples = 0  # of a micro-batch on all ranks, where stages have their own
        if (stages * vpp > 1 and self.maybe(2)) or self.maybe(20):
            self.draw_stages()

    def draw_stages(self) -> None:
        places = list(self.outline.places())
        count = self.mesh["pp"] * self.mesh["vpp"]
        whole = [place for place in places if place[2] == 0]
        among = whole if self.maybe(2) else places
        cuts = sorted(self.rng.sample(among[1:], min(count - 1, len(among) - 1)))
        ends = [*cuts, (len(self.outline.modules), 0, 0)]
        for begin, end in zip([places[0], *cuts], ends, strict=True):
            nodes = self.outline.nodes(begin, end)
            self.stages.append({"nodes": nodes[0] if len(nodes) == 1 else nodes})
        if self.odd():
            self.rng.shuffle(self.stages)
        if self.odd():
            self.stages.pop()
        if self.maybe(2):
            self.draw_places()

    def draw_places(self) -> None:
        """Devices and meshes of the pipeline's stages."""
        count = min(self.mesh["pp"], len(self.stages))
        if count < 1 or self.devices < count:
            return
        cuts = sorted(self.rng.sample(range(1, self.devices), count - 1))
        if self.maybe(2):  # whole hosts
            cuts = sorted({max(1, cut // self.per_host) * self.per_host for cut in cuts})
            if len(cuts) < count - 1 or (cuts and cuts[-1] >= self.devices):
                return
        begins = [0, *cuts]
        sizes = [end - at for at, end in zip(begins, [*cuts, self.devices], strict=True)]
        order = list(range(count))
        if self.maybe(4):
            self.rng.shuffle(order)
        dps = []
        for stage, which in zip(self.stages, order, strict=False):
            dp = self.of(*_parts(sizes[which]))
            dps.append(dp)
            stage["mesh"] = {"dp": dp, "tp": sizes[which] // dp}
            if self.maybe(3):
                stage["mesh"].pop(self.of("dp", "tp"))
            last = begins[which] + sizes[which] - 1
            if order != list(range(count)) or self.maybe(2):
                stage["devices"] = self.range_of(begins[which], last)
        self.samples = math.lcm(*dps) * self.of(1, 1, 2)
        self.mesh["dp"], self.mesh["tp"] = dps[0], sizes[order[0]] // dps[0]
        for stage, dp in zip(self.stages, dps, strict=False):
            if self.maybe(4):
                stage["mb"] = self.samples // dp + self.odd()

    def range_of(self, first: int, last: int) -> str:
        host = self.per_host
        if first % host == 0 and (last + 1) % host == 0 and self.maybe(2):
            a, b = first // host, last // host
            return f"host {a}" if a == b else f"hosts {a}-{b}"
        return f"gpu {first}" if first == last else f"gpus {first}-{last}"

    def draw_node(self) -> None:
        path = self.path()
        said = {}
        for name in self.rng.sample(list(NODE), self.of(1, 1, 1, 2)):
            value = NODE[name](self)
            if value is not None:
                said[name] = value
        if said:
            self.nodes.setdefault(path, {}).update(said)

    def path(self) -> str:
        """Any node of the model; sets the ops below it."""
        self.below = sorted({op for module in self.outline.modules for op in module.ops})
        if self.maybe(8):
            return ""
        if self.odd():
            return self.of("layerz", "layers.*.*.*", "layers[9:3]", "*", "head.logit", "layers.999")
        module = self.rng.choice(self.outline.modules)
        path = module.path if self.maybe(3) else module.all
        if module.layers and self.maybe(2):
            n = self.rng.randrange(module.layers)
            path = module.path + self.of(
                f".{n}", f"[{n}]", f"[{n - module.layers}]", f"[{n}:]", f"[:{n + 1}]", "[::2]",
                "[1::2]", f"[{n}:{n + 2}]", f"[0,{n}]" if n else "[0]", f"[-{n + 1}:]",
            )  # fmt: skip
        self.below = list(module.ops)
        if module.ops and self.maybe(2):
            part = self.rng.choice(module.below())
            path += f".{part}"
            self.below = [op for op in module.ops if op == part or op.startswith(f"{part}.")]
        return path

    def experts(self) -> int:
        return dict(model_of(self.model)._core.dims).get("experts", 0)

    def draw_load(self) -> dict[str, Any] | None:
        experts = self.experts()
        if not (self.maybe(4) if experts else self.odd()):
            return None
        count = (experts or 2) + self.odd()
        return {"experts": [self.of(1, 1, 2, 0.5, 3) for _ in range(count)]}


def split(d: Drawing) -> dict[str, list[str]]:
    """Any axis over any dims of the model, or factors of the op's rule, or in a hierarchy."""
    known = (*d.outline.dims, "heads", "seq", "hidden", "batch", ".k", ".n", ".b", ".s", ".f")

    def dims() -> list[str]:
        if d.maybe(4):
            return []
        if d.odd():
            return [d.of("headz", "!", ".", "")]
        found = list(dict.fromkeys(d.of(*known) for _ in range(d.of(1, 1, 2))))
        if d.maybe(5):  # one of them says how many ranks it has
            at = d.rng.randrange(len(found))
            found[at] += f"/{d.of(1, 2, 2, 4)}"
        return found

    axes = ["tp"] if d.maybe(2) else [d.of(*AXES) for _ in range(d.of(1, 2))]
    return {axis: dims() for axis in axes}


def on(d: Drawing) -> dict[str, Any]:
    return {d.of("dp", "tp", *(AXES if d.odd() else ())): d.of(0, 1, "0/2", "1/2", "1/3", "3")}


def recompute(d: Drawing) -> str:
    words = list(pc.recompute_sets())
    some = "+".join(d.rng.sample(words, 2))
    return d.of("none", "full", "selective", f"selective:{d.of(*words)}", f"selective:{some}")


def home(d: Drawing) -> Any:
    if d.odd():
        return {"state": d.of("device(3)", "shard(tp)", "shard", "disk")}
    if d.maybe(5):
        return d.of("replicate", "shard(dp)", "host", "shard(dp)+host")
    # How much is sharded; what is not said follows, and what is said must agree.
    zero = d.of(0, 1, 2, 3)
    said = {}
    for kind, least in (("weights", 3), ("gradients", 2), ("state", 1)):
        if d.maybe(2):
            sharded = zero >= least
            host = "+host" if kind != "gradients" and d.maybe(5) else ""
            said[kind] = f"shard(dp){host}" if sharded else "replicate"
            if kind == "state" and host and not sharded:
                said[kind] = "host"
    if d.maybe(4):
        said["activations"] = d.of(
            "device", "host", "shard(tp)", "shard(tp)+host", "on(pp=1)", "on(pp=0)"
        )
    if d.odd():
        said = {"weights": "shard(dp)", "gradients": "replicate"}
    return said or None


def bucket(d: Drawing) -> str:
    return d.of("1MB", "25MB", "1GB", "3kB", "0B") if d.odd() else d.of("1MB", "25MB", "1GB")


def unit(d: Drawing) -> int | None:
    return d.of(1, 2, 2, 3, 8, 0 if d.odd() else 4) if d.maybe(2) else None


def train(d: Drawing) -> bool | None:
    return d.of(True, False, False) if d.maybe(2) else None


def lora(d: Drawing) -> dict[str, Any] | None:
    products = [op for op in d.below if PRODUCT.search(op)]
    if not (products and d.maybe(2)) and not d.odd():
        return None
    on = products if d.maybe(1.5) else d.rng.sample(products, min(len(products), d.of(1, 2)))
    if d.odd() and d.below:
        on = [d.of(*d.below)]
    said: dict[str, Any] = {"rank": d.of(1, 4, 16, 10000 if d.odd() else 8), "on": on}
    if d.maybe(3):
        said["dropout"] = d.of(0, 0.1, 1.5 if d.odd() else 0.05)
    if d.maybe(3):
        said["base"] = "nf4"
    return said


def micro_batches(d: Drawing) -> int | None:
    return d.of(1, 2, 2, 4, 3 if d.odd() else 8) if d.maybe(6) else None


def max_ongoing(d: Drawing) -> int | list[int] | None:
    return d.of(1, 2, [2, 1] if d.odd() else 1) if d.maybe(12) or d.odd() else None


# What a node says, and what the plan's keys say.
NODE: dict[str, Callable[[Drawing], Any]] = {
    "split": split, "recompute": recompute, "home": home, "bucket": bucket, "train": train,
    "lora": lora, "on": on, "unit": unit,
    "micro_batches": micro_batches, "max_ongoing": max_ongoing,
}  # fmt: skip


def _mesh_key(axis: str) -> Callable[[Drawing], int | None]:
    def draw(d: Drawing) -> int | None:
        size = d.mesh[axis] + d.odd()
        said = size > 1 if axis != "dp" else not d.samples and d.maybe(2)
        return size if said else None

    return draw


def _micro_batch(d: Drawing) -> int | None:
    if d.samples:
        return d.samples // d.mesh["dp"]
    return d.of(1, 1, 2, 4)


PLAN: dict[str, Callable[[Drawing], Any]] = {
    "dp": _mesh_key("dp"),
    "tp": _mesh_key("tp"),
    "pp": _mesh_key("pp"),
    "vpp": _mesh_key("vpp"),
    "mb": _micro_batch,
    "sp": lambda d: True if d.mesh["tp"] > 1 and d.maybe(2) else None,
    "ep": lambda d: d.of(2, 4) if d.odd() or (d.experts() and d.maybe(2)) else None,
    "etp": lambda d: d.of(1, 2) if d.odd() or (d.experts() and d.maybe(4)) else None,
    "zero": lambda d: d.of(1, 1, 2, 3, 3) if d.maybe(2) else None,
    "hsdp": lambda d: d.of(*_parts(d.mesh["dp"])) if d.maybe(8) else None,
    "reshard": lambda d: d.of("on", "off", 2) if d.maybe(8) else None,
    "prefetch": lambda d: d.of(0, 1, 2) if d.maybe(8) else None,
    "unit": lambda d: d.of(1, 2, 3, 4) if d.maybe(16) else None,
    "sync": lambda d: d.of("each", "last") if d.maybe(6) else None,
    "optimizer": lambda d: d.of("at-end", "post-validated", "in-backward") if d.maybe(12) else None,
    "recompute": lambda d: (
        d.of("none", "selective", "full", "full:1", "every:2", "uniform:2", "selective:mlp")
        if d.maybe(2)
        else None
    ),
    "schedule": lambda d: (
        d.of(
            "gpipe",
            "1f1b",
            "interleaved",
            "eager-1f1b",
            "breadth-first",
            "zb1p",
            "zb2p",
            "F0 B0;F0 B0",
            "F0 F1 B0 B1 W0 W1;F0 B0 W0 F1 B1 W1",
        )
        if d.mesh["pp"] > 1 and d.maybe(5)
        else None
    ),
    "attn": lambda d: d.of("flash", "unfused") if d.maybe(6) else None,
    "overlap": lambda d: d.of("none", "grad", "param", "grad+param", "tp") if d.maybe(4) else None,
    "bucket": lambda d: d.of("1MB", "25MB", "400MB") if d.maybe(6) else None,
    "offload": lambda d: (
        d.of("optimizer", "activations", "activations:1", "optimizer+param", "param")
        if d.maybe(6)
        else None
    ),
    "order": lambda d: d.of("dp-tp-pp", "tp-pp-dp", "pp-tp-cp-ep-dp") if d.maybe(12) else None,
}


def draw(seed: int) -> Tree:
    """The tree of a number."""
    return Drawing(random.Random(f"trees {seed}")).tree()
