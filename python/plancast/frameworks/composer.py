"""Composer and llm-foundry: YAML in and out."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.frameworks import table
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known, accumulation, data_parallel, preset
from plancast.frameworks.optimizers import read_optimizer, take_optimizer
from plancast.frameworks.plan import Plan, short_form

NAME = "composer"
_PRECISIONS = {"amp_bf16": "bf16", "bf16": "bf16", "amp_fp16": "fp16", "amp_fp8": "fp8",
               "fp32": "fp32"}  # fmt: skip
_NOT_OPENED = tuple(
    f"{section}.{key}"
    for section in ("fsdp_config", "parallelism_config.fsdp")
    for key in ("mixed_precision", "device_mesh")
)

# llmfoundry/optim.
_OPTIMIZERS = {"decoupled_adamw": "adam", "adamw": "adam", "adam": "adam",
               "decoupled_lionw": "lion", "decoupled_lionw_8b": "lion", "clip_lion": "lion",
               "adalr_lion": "lion"}  # fmt: skip


def read(document: dict[str, Any], what: str, known: Known) -> Contents[str]:
    """The plan of a parsed configuration."""
    facts = table.load(NAME).read(table.flatten(document, _NOT_OPENED), what)
    seq = _seq(facts, document, what)
    keys = _mesh(facts, what, known)
    keys |= _sharding(facts)
    dp = keys["dp"]
    assert dp is None or isinstance(dp, int)
    if facts["mb"] is not None:
        keys["mb"] = facts["mb"]
        keys["accum"] = accumulation(facts["batch"], dp, facts["mb"], what)
    if facts["checkpointing"]:
        keys["recompute"] = "full"
    if "attention" in facts:
        keys["attn"] = "unfused" if facts["attention"] == "torch" else "flash"
    dtype, types = _types(facts, what)
    types |= read_optimizer(facts, _OPTIMIZERS)
    if facts["optimizer"] == "decoupled_lionw_8b":
        types["state_dtype"] = "int8"
    return Contents(
        framework=NAME,
        strategy=short_form(keys),
        profile="composer" if types.get("reduce_dtype") == dtype else "composer-fp32-reduce",
        batch=facts["batch"],
        seq=seq,
        dtype=dtype,
        types=types,
        model=_model(facts, seq),
        gpus=known.gpus,
        notes=tuple(facts.notes),
        unsupported=tuple(facts.unsupported),
    )


def _seq(facts: table.Facts, document: dict[str, Any], what: str) -> int | None:
    value = facts["seq"]
    if isinstance(value, str) and value.startswith("${"):  # OmegaConf: ${variables.max_seq_len}
        value = table.flatten(document).get(value.strip("${}"))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        raise InputError(f"{what}: {facts.key('seq')} must be a number of tokens.")
    return value


def _model(facts: table.Facts, seq: int | None) -> Any:
    sizes = [facts[name] for name in ("d_model", "n_heads", "n_layers", "vocab")]
    if None in sizes:
        return preset(facts["model"]) or facts["model"]
    from plancast.model import Model
    from plancast.models import presets

    hidden, heads, layers, vocab = sizes
    mpt = presets.config("mpt-7b")  # what MPTs have in common
    return Model.from_config(
        **{
            **mpt,
            "name": f"mpt-{layers}x{hidden}",
            "hidden": hidden,
            "heads": heads,
            "layers": layers,
            "ffn": int(hidden * facts["expansion"]),
            "vocab": vocab,
            "seq": seq or mpt["seq"],
        },
        what="the file's model",
    )


def _mesh(facts: table.Facts, what: str, known: Known) -> dict[str, object]:
    tp, shard, replicas = facts["tp"], facts["shard"], facts["replicate"]
    mesh = facts["mesh"]
    if mesh is not None:  # before data_parallel_*_degree
        good = isinstance(mesh, list) and 1 <= len(mesh) <= 2
        if not good or any(type(n) is not int or not 1 <= n <= 10**6 for n in mesh):
            raise InputError(f"{what}: {facts.key('mesh')} must be one or two numbers of ranks.")
        replicas, shard = [1, *mesh][-2:]
    if shard == 0:
        raise InputError(f"{what}: {facts.key('shard')} is 0; it must be -1 or from 1.")
    dp = data_parallel(known.gpus, tp, what)
    if shard > 0:
        dp = shard * (replicas or 1)
    keys: dict[str, object] = {"tp": tp, "dp": dp}
    hybrid = "HYBRID" in facts["strategy"]
    if (replicas or 1) > 1:
        if dp is None or dp % (replicas or 1):
            raise InputError(
                f"{what}: {replicas} replicas need to know the number of GPUs, a multiple of "
                "theirs. Give `gpus`."
            )
        keys["hsdp"] = dp // (replicas or 1)
    elif hybrid and shard < 0:
        if known.gpus_per_host is None:
            raise InputError(
                f"{what}: {facts['strategy']} shards inside hosts; give the GPUs of one."
            )
        keys["hsdp"] = known.gpus_per_host
    return keys


def _sharding(facts: table.Facts) -> dict[str, object]:
    if facts["strategy"] == "NO_SHARD":
        offload = "activations" if facts["activation_offload"] else None
        return {"zero": 0, "hsdp": None, "offload": offload}
    keys: dict[str, object] = {"zero": 3}
    if facts["strategy"].endswith(("GRAD_OP", "ZERO2")):
        keys["reshard"] = "off"
    if facts["reshard"] is not None:
        parts = {True: "on", False: "off"}
        said = facts["reshard"]
        keys["reshard"] = parts[said] if isinstance(said, bool) else said
    ahead = {facts["backward_limit"], facts["forward_limit"]}
    if facts["prefetch"] == "NONE":
        keys["prefetch"] = 0
        facts.cannot_say(
            f"{facts.key('prefetch')} = `NONE`: only backward waits for its gathers; the plan lets "
            "forward wait, too."
        )
    elif max(ahead) > 1:
        keys["prefetch"] = facts["backward_limit"]
        if len(ahead) > 1:
            facts.cannot_say(
                f"{facts.key('forward_limit')} is {facts['forward_limit']} and "
                f"{facts.key('backward_limit')} {facts['backward_limit']}; a plan has one number, "
                "taken from backward."
            )
    moved = ["optimizer", "param"] if facts["offload"] else []
    moved += ["activations"] if facts["activation_offload"] else []
    keys["offload"] = "+".join(moved) or None
    return keys


def _types(facts: table.Facts, what: str) -> tuple[str | None, dict[str, str]]:
    if facts["precision"] is None:
        return None, {}
    dtype = _PRECISIONS[facts["precision"]]
    low = "bf16" if dtype == "fp8" else dtype
    mixed = facts["mixed_precision"]
    if isinstance(mixed, dict):
        said = mixed.get("reduce_dtype", "fp32")
        reduce = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "float32": "fp32",
                  "bfloat16": "bf16", "float16": "fp16"}.get(str(said))  # fmt: skip
        if reduce is None:
            raise InputError(f"{what}: `reduce_dtype` is `{str(said)[:40]}`; write bf16 or fp32.")
        return dtype, {"reduce_dtype": reduce}
    reductions = {"FULL": "fp32", "DEFAULT": "fp32", "PURE": low}
    if not isinstance(mixed, str) or mixed.upper() not in reductions:
        raise InputError(
            f"{what}: {facts.key('mixed_precision')} is `{str(mixed)[:40]}`; there are `PURE`, "
            "`DEFAULT` and `FULL`."
        )
    return dtype, {"reduce_dtype": reductions[mixed.upper()]}


def write(plan: Plan, known: Known) -> str:
    """llm-foundry's configuration that runs a plan, as YAML."""
    import yaml

    plan.without(
        pp="it has no pipeline.",
        cp="it has no context parallelism.",
        ep="experts are MegaBlocks' business.",
        tp="the layers of a tensor-parallel plan are listed in code.",
    )
    zero = int(plan.keys.get("zero", 0))
    said = _write_sharding(plan) | _write_batch(plan, zero, known)
    dtype, types = known.dtype or "bf16", dict(known.types)
    precisions = {"bf16": "amp_bf16", "fp16": "amp_fp16", "fp8": "amp_fp8", "fp32": "fp32"}
    if dtype not in precisions:
        plan.refuse(f"dtype {dtype}", "it has fp32, fp16, bf16 and fp8.", "bf16")
    optimizer = take_optimizer(plan, types, {"lion": "decoupled_lionw"})
    reduce = types.pop("reduce_dtype", None)
    low = "bf16" if dtype == "fp8" else dtype
    if reduce is None:
        reduce = "fp32" if known.profile == "composer-fp32-reduce" else low
    if reduce not in (low, "fp32"):
        plan.refuse(f"reduce_dtype {reduce}", f"it reduces in {low} or fp32.", low)
    for option, value in types.items():
        plan.refuse(f"{option} {value}", "it has no setting for that.", "its default")
    said |= {
        "seq": known.seq,
        "precision": precisions[dtype],
        "mixed_precision": "PURE" if reduce == low else "DEFAULT",
        "optimizer": optimizer,
    }
    attention = plan.take("attn")
    if attention is not None:
        said["attention"] = "torch" if attention == "unfused" else "flash"
    _check_rest(plan)
    plan.finish()
    comments = "".join(f"# {remark}\n" for remark in plan.remarks)
    document = table.nest(table.load(NAME).write(said))
    return comments + str(yaml.safe_dump(document, sort_keys=False))


def _write_batch(plan: Plan, zero: int, known: Known) -> dict[str, Any]:
    dp, mb, accum = plan.take("dp"), plan.number("mb"), plan.take("accum")
    ranks = int(dp) if dp else known.gpus
    batch = known.batch
    if ranks is not None:
        batch = ranks * mb * int(accum) if accum else batch or ranks * mb
    elif accum is not None and batch is None:
        plan.refuse(f"accum={accum}", "it has the global batch instead.", "the plan with dp said")
    steps = accumulation(batch, ranks, mb, "the plan") or 1
    plan.take_sync("each" if zero else "last", zero, accumulates=steps > 1)
    return {"mb": mb, "batch": batch}


def _write_sharding(plan: Plan) -> dict[str, Any]:
    zero, hsdp, dp = plan.number("zero", 0), plan.take("hsdp"), plan.keys.get("dp")
    if zero in (1, 2):
        plan.refuse(f"zero={zero}", "FSDP shards parameters.", "zero=3,reshard=off (or zero=0)")
    said: dict[str, Any] = {"strategy": "FULL_SHARD" if zero else "NO_SHARD"}
    reshard, prefetch = plan.take("reshard"), plan.take("prefetch")
    plan.only("unit", (), "the model says which modules are wrapped.", "unit=1")
    if reshard not in (None, "on", "off"):
        plan.refuse(f"reshard={reshard}", "FSDP1 reshards to the whole group.", "reshard=on")
    if hsdp is not None:
        if dp is None:
            plan.refuse(f"hsdp={hsdp}", "it needs the replicas.", "the plan with dp said")
        said |= {
            "replicate": plan.replicas(int(dp), int(hsdp)),
            "shard": int(hsdp),
            "strategy": "HYBRID_SHARD",
        }
    elif dp is not None:
        said |= {"shard": int(dp)} if zero else {"shard": 1, "replicate": int(dp)}
    if reshard == "off":
        said["strategy"] = "_HYBRID_SHARD_ZERO2" if hsdp else "SHARD_GRAD_OP"
    if prefetch == "0":
        said["prefetch"] = "NONE"
    elif prefetch is not None:
        said |= {"prefetch": "BACKWARD_PRE", "backward_limit": int(prefetch),
                 "forward_limit": int(prefetch)}  # fmt: skip
    offload = plan.words("offload") or []
    if "activations" in offload:
        said["activation_offload"] = True
    if set(offload) - {"activations"}:
        plan.refuse(f"offload={'+'.join(offload)}", "it refuses it.", "offload=activations")
    recompute = plan.take("recompute")
    if recompute not in (None, "full"):
        plan.refuse(f"recompute={recompute}", "it checkpoints whole layers.", "recompute=full")
    return {**said, "checkpointing": recompute == "full"}


def _check_rest(plan: Plan) -> None:
    overlap = plan.words("overlap")
    if overlap is not None and overlap != ["grad", "param"]:
        nearest = "overlap=grad+param"
        plan.refuse(f"overlap={'+'.join(overlap) or 'none'}", "FSDP overlaps both.", nearest)
    bucket, order = plan.take("bucket"), plan.take("order")
    if bucket is not None:
        plan.refuse(f"bucket={bucket}", "a layer is one message.", "the plan without `bucket`")
    if order is not None:
        plan.refuse(f"order={order}", "all ranks are data-parallel.", "the plan without `order`")
