"""Plans that a framework can run, drawn from a seed, every key said that the file says."""

from __future__ import annotations

import random
from typing import Any

from plancast.frameworks.plan import short_form
from plancast.strategy import Strategy

_MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")


def _strategy(keys: dict[str, Any]) -> Strategy:
    return Strategy.parse(short_form(keys))


def torchtitan(rng: random.Random) -> Strategy:
    """Sharded or replicated, tensor- and pipeline-parallel, in every order of recomputation."""
    pp = rng.choice((1, 1, 2, 4))
    accum = rng.choice((1, 2, 8)) if pp == 1 else rng.choice((1, pp, 2 * pp))
    shard, replicas = rng.choice((2, 4, 8)), rng.choice((1, 1, 2, 4))
    zero = rng.choice((0, 3, 3))
    keys: dict[str, Any] = {
        "dp": shard * replicas,
        "pp": pp,
        "cp": 1 if zero == 0 else rng.choice((1, 1, 2)),
        "mb": rng.choice((1, 2, 4)),
        "accum": accum,
        "recompute": rng.choice(("none", "full", "selective:op", "every:2", "every:5")),
        "offload": rng.choice((None, "optimizer+param")),
        "tp": rng.choice((1, 2, 8)),
    }
    keys["sp"] = "" if keys["tp"] > 1 else None
    if zero:
        keys |= {"zero": 3, "hsdp": shard, "reshard": rng.choice((None, "off"))}
    if keys["tp"] > 1:
        keys["overlap"] = rng.choice((None, "grad+param+tp"))
    if pp > 1:
        vpp = rng.choice((1, 1, 2))
        keys["schedule"] = rng.choice(("1f1b", "gpipe")) if vpp == 1 else "interleaved"
        keys |= {"vpp": vpp, "layout": _layout(rng, pp * vpp)}
        keys["sync"] = "last" if zero and accum > 1 else None
    elif not zero and accum > 1:
        keys["sync"] = "each"
    if zero and rng.random() < 0.3:
        keys |= {"ep": 2, "etp": rng.choice((1, keys["tp"])) if keys["tp"] > 1 else None}
    return _strategy(keys)


def fsdp(rng: random.Random) -> Strategy:
    """What accelerate runs: FSDP1, FSDP2 with a mesh, DDP."""
    shard, replicas = rng.choice((2, 4, 8)), rng.choice((1, 1, 2))
    zero, accum = rng.choice((0, 3, 3, 3)), rng.choice((1, 4))
    keys: dict[str, Any] = {
        "dp": shard * replicas,
        "mb": rng.choice((1, 2, 4)),
        "accum": accum,
        "recompute": rng.choice((None, "full")),
    }
    if zero:
        keys |= {
            "zero": 3,
            "hsdp": shard,
            "tp": rng.choice((1, 1, 2)),
            "reshard": rng.choice((None, "off", 2)),
            "offload": rng.choice((None, "optimizer+param")),
            "sync": "last" if accum > 1 else None,
        }
        if replicas == 1 and keys["tp"] == 1 and keys["reshard"] != 2:
            keys["prefetch"] = rng.choice((None, 0))
    return _strategy(keys)


def composer(rng: random.Random) -> Strategy:
    """FSDP1 with replicas and a limit of units ahead."""
    shard, replicas = rng.choice((2, 4, 8)), rng.choice((1, 1, 2))
    return _strategy(
        {
            "dp": shard * replicas,
            "zero": rng.choice((0, 3, 3, 3)),
            "hsdp": shard,
            "mb": rng.choice((1, 2, 4)),
            "accum": rng.choice((1, 4)),
            "recompute": rng.choice((None, "full")),
            "reshard": rng.choice((None, "off")),
            "prefetch": rng.choice((None, 0, 3)),
            "offload": rng.choice((None, "activations")),
            "attn": rng.choice((None, "flash", "unfused")),
        }
    )


def deepspeed(rng: random.Random) -> Strategy:
    """Every stage of ZeRO, ZeRO++, MiCS, offload."""
    zero = rng.choice((0, 1, 2, 3, 3))
    dp = rng.choice((2, 8, 16))
    keys: dict[str, Any] = {
        "dp": dp,
        "tp": rng.choice((1, 1, 2)),
        "zero": zero,
        "mb": rng.choice((1, 2, 4)),
        "accum": rng.choice((1, 4)),
        "bucket": rng.choice((None, "50MB", "1GB")),
    }
    moved = ["optimizer"] if zero and rng.random() < 0.5 else []
    if zero in (1, 2):
        keys["overlap"] = rng.choice((None, "none", "grad"))
    if zero == 3:
        keys["overlap"] = rng.choice((None, "none", "grad+param"))
        keys["reshard"] = rng.choice((None, 2))
        keys["hsdp"] = rng.choice((None, 2)) if dp > 2 else None
        keys["prefetch"] = rng.choice((None, 0))
        moved += ["param"] if rng.random() < 0.5 else []
    if rng.random() < 0.4:
        keys["recompute"] = "full"
        moved += ["activations"] if rng.random() < 0.5 else []
    keys["offload"] = "+".join(moved) or None
    return _strategy(keys)


def megatron(rng: random.Random) -> Strategy:
    """Every axis, ZeRO 0 to 3, recomputation, offload, overlap."""
    tp, pp, cp = rng.choice((1, 2, 8)), rng.choice((1, 2, 4)), rng.choice((1, 1, 2))
    dp, zero = rng.choice((1, 2, 8)), rng.choice((0, 1, 1, 2, 3))
    vpp = rng.choice((1, 2)) if pp > 1 else 1
    keys: dict[str, Any] = {
        "dp": dp,
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "zero": zero,
        "mb": rng.choice((1, 2)),
        "accum": rng.choice((1, 8, 16)),
        "sp": "" if tp > 1 and rng.random() < 0.7 else None,
        "recompute": rng.choice(
            ("none", "selective", "full", "full:3", "selective:" + "+".join(_some(rng)))
        ),
        "attn": rng.choice((None, "flash", "unfused")),
        "bucket": rng.choice((None, "160MB", "1GB")),
        "order": rng.choice((None, "tp-cp-ep-pp-dp")),
    }
    if keys["recompute"] == "selective:core_attn":
        keys["recompute"] = "selective"
    if cp > 1:
        keys["cp_type"] = rng.choice((None, "ring_zigzag", "allgather", "ulysses", "hybrid:2"))
    if pp > 1:
        keys["layout"] = _layout(rng, pp * vpp)
    if dp > 2 and zero:
        keys["hsdp"] = rng.choice((None, 2))
    if rng.random() < 0.3:
        keys |= {"ep": 2, "etp": rng.choice((None, 1)) if tp > 1 else None}
    if zero == 3 and pp == 1 and "ep" not in keys and keys.get("hsdp") is None:
        keys["reshard"] = rng.choice((None, "off"))
    words = ["grad"] if rng.random() < 0.6 else []
    words += ["param"] if words and zero and rng.random() < 0.6 else []
    if keys.get("reshard") == "off":  # FSDP2 overlaps without a word
        words = []
    words += ["tp"] if keys["sp"] is not None and rng.random() < 0.5 else []
    words += ["ep"] if rng.random() < 0.2 and (pp == 1 or vpp > 1) else []
    keys["overlap"] = "+".join(words) or None
    moved = ["optimizer"] if rng.random() < 0.3 else []
    moved += ["activations:2"] if rng.random() < 0.3 else []
    keys["offload"] = "+".join(moved) or None
    return _strategy(keys)


DRAW = {
    "torchtitan": torchtitan,
    "fsdp": fsdp,
    "composer": composer,
    "deepspeed": deepspeed,
    "megatron-core": megatron,
}


def _some(rng: random.Random) -> list[str]:
    return sorted(rng.sample(_MODULES, rng.randint(1, 3)))


def _layout(rng: random.Random, stages: int) -> str | None:
    """Layers of uneven stages, or nothing."""
    if rng.random() < 0.5:
        return None
    layout = [rng.randint(0, 3), *(rng.randint(1, 4) for _ in range(stages - 2)), rng.randint(4, 6)]
    return "+".join(str(layers) for layers in layout)


def anything(rng: random.Random) -> Strategy:
    """A plan of the language, whether or not any framework runs it."""
    choices: dict[str, tuple[Any, ...]] = {
        "dp": (1, 2, 8), "tp": (1, 2, 8), "sp": ("",), "pp": (1, 2, 4), "vpp": (1, 2, 3),
        "cp": (1, 2), "cp_type": ("ring", "ulysses", "hybrid:2"), "ep": (1, 8), "etp": (1, 2),
        "zero": (0, 1, 2, 3), "hsdp": (1, 2),
        "reshard": ("on", "off", 2), "prefetch": (0, 1, 2), "sync": ("each", "last"),
        "mb": (1, 2), "accum": (1, 8), "bucket": ("25MB", "100MiB"), "attn": ("flash", "unfused"),
        "recompute": ("none", "full", "selective", "full:2", "uniform:2", "every:2", "selective:op",
                      "selective:mlp+moe"),
        "schedule": ("1f1b", "gpipe", "interleaved", "zbv", "breadth-first", "zb1p"),
        "overlap": ("none", "grad", "grad+param", "tp", "grad+param+tp+cp+ep"),
        "offload": ("optimizer", "param", "activations", "activations:3", "optimizer+param"),
        "order": ("tp-cp-ep-pp-dp", "tp-pp-dp", "dp-tp-pp"),
    }  # fmt: skip
    often = ("dp", "tp", "zero", "mb")
    keys = {
        key: rng.choice(values)
        for key, values in choices.items()
        if rng.random() < (0.8 if key in often else 0.15)
    }
    items = [f"{key}={value}" if value != "" else key for key, value in keys.items()]
    return Strategy.parse(",".join(items))
