"""FSDP as accelerate and the Trainer say it: YAML or JSON in, accelerate's YAML out."""

from __future__ import annotations

import re
from typing import Any

from plancast.errors import InputError
from plancast.frameworks import table
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known, data_parallel, preset
from plancast.frameworks.optimizers import read_optimizer, take_optimizer
from plancast.frameworks.plan import Plan, short_form, size_of

NAME = "fsdp"
# torch.distributed.fsdp.ShardingStrategy; accelerate numbers them from 1.
_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
_PREFETCH = {"1": "BACKWARD_PRE", "2": "BACKWARD_POST"}
_COMMAND = re.compile(r"^# *(?:accelerate launch|torchrun)\b(.*)$", re.MULTILINE)
_SAID_IN_COMMAND = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "ddp_bucket_cap_mb",
)
_MIB = 1 << 20
_FULL_ATTENTION = ("eager",)
_WHOLE = ("fsdp",)
# transformers/training_args.py, OptimizerNames; its SGD has no momentum.
_OPTIMIZERS = {
    "adamw_hf": "adam", "adamw_apex_fused": "adam", "sgd": "sgd", "adagrad": "adagrad",
    "rmsprop": "rmsprop", "rmsprop_bnb": "rmsprop", "lion_32bit": "lion", "lion_8bit": "lion",
    "rmsprop_bnb_8bit": "rmsprop",
}  # fmt: skip
_CALLED = {"sgd": "sgd", "adagrad": "adagrad", "rmsprop": "rmsprop", "lion": "lion_32bit"}


def command_of(text: str) -> dict[str, int | str]:
    """What a comment with the launch command says of batches and the optimizer.

    >>> command_of("# accelerate launch t.py --gradient_accumulation_steps 4")
    {'gradient_accumulation_steps': 4}
    """
    said: dict[str, int | str] = {}
    for command in _COMMAND.findall(text):
        for option in _SAID_IN_COMMAND:
            if match := re.search(rf"--{option}[ =](\d{{1,9}})\b", command):
                said[option] = int(match[1])
        if match := re.search(r"--optim[ =](\w{1,40})\b", command):
            said["optim"] = match[1]
    return said


def read(document: dict[str, Any], what: str, known: Known) -> Contents[str]:
    """The plan of a parsed configuration."""
    facts = table.load(NAME).read(table.flatten(document, _WHOLE), what)
    if facts["kind"] not in ("FSDP", "MULTI_GPU", "NO"):
        raise InputError(f"{what}: {facts.key('kind')} is `{facts['kind']}`, which is not FSDP.")
    strategy = _strategy(facts, what)
    gpus = known.gpus or facts["gpus"]
    keys: dict[str, object] = _mesh(facts, strategy, gpus, what, known)
    keys |= {"mb": facts["mb"], "accum": facts["accum"]}
    keys |= _sharding(facts, strategy, what)
    keys["bucket"] = _bucket(facts, sharded=bool(keys["zero"]))
    if (facts["accum"] or 1) > 1 and facts["sync_each"] != (keys["zero"] == 3):
        # accelerate runs all but the last micro-batch in no_sync, if not told otherwise.
        keys["sync"] = "each" if facts["sync_each"] else "last"
    if facts["checkpointing"]:
        keys["recompute"] = "full"
    if facts["attention"] in _FULL_ATTENTION:
        keys["attn"] = "unfused"
    elif facts["attention"]:
        keys["attn"] = "flash"
    compiled = facts["torch_compile"] or facts["compile"].upper() not in ("NO", "EAGER")
    dtype, types = _types(facts)
    dp, mb = keys["dp"], facts["mb"]
    return Contents(
        framework=NAME,
        strategy=short_form(keys),
        profile=_profile(facts, keys, compiled=compiled),
        batch=dp * mb * (facts["accum"] or 1) if isinstance(dp, int) and mb else None,
        seq=facts["seq"],
        dtype=dtype,
        types=types,
        model=preset(facts["model"]) or facts["model"],
        gpus=gpus,
        notes=tuple(facts.notes),
        unsupported=tuple(facts.unsupported),
    )


def _bucket(facts: table.Facts, *, sharded: bool) -> str | None:
    """DDP's, in whose words a MB is a MiB (torch/nn/parallel/distributed.py)."""
    if facts["bucket"] is None:
        return None
    if sharded:
        facts.note(f"{facts.key('bucket')}: of DDP, without effect where parameters are sharded.")
        return None
    return f"{facts['bucket']}MiB"


def _profile(facts: table.Facts, keys: dict[str, object], *, compiled: bool) -> str:
    if not keys.get("zero"):
        return "ddp"
    if facts["version"] == 2:  # sharded parameter by parameter, as in torchtitan
        return "torchtitan" if compiled else "torchtitan-eager"
    if compiled:
        facts.cannot_say("the layers are compiled; the profile of FSDP1 runs them one by one.")
    return "fsdp"


def _strategy(facts: table.Facts, what: str) -> str:
    """The name of the sharding strategy."""
    if facts["kind"] != "FSDP":
        return "NO_SHARD"
    said = facts["strategy"]
    if said is not None:
        return _STRATEGIES[int(said) - 1] if said.isdecimal() else said.lstrip("_")
    words = facts["strategies"]  # the Trainer's `fsdp: full_shard auto_wrap`
    if words in (None, True, "", [], {}):
        return "FULL_SHARD"
    if isinstance(words, str):
        words = words.split()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{what}: `fsdp` must be words such as `full_shard auto_wrap`.")
    if "offload" in words:
        facts.said["offload"] = True
    options = {"offload", "auto_wrap"}
    names = [word.upper() for word in words if word not in options]
    if len(names) > 1 or any(name not in _STRATEGIES for name in names):
        raise InputError(
            f"{what}: `fsdp` is `{' '.join(words)[:60]}`; it takes one of `full_shard`, "
            "`shard_grad_op`, `no_shard`, `hybrid_shard`, `hybrid_shard_zero2`, and `offload`, "
            "`auto_wrap`."
        )
    return names[0] if names else "FULL_SHARD"


def _mesh(
    facts: table.Facts, strategy: str, gpus: int | None, what: str, known: Known
) -> dict[str, object]:
    tp, cp, replicas, shard = (facts[key] for key in ("tp", "cp", "replicate", "shard"))
    keys: dict[str, object] = {"tp": tp, "cp": cp}
    dp = data_parallel(gpus, tp * cp, what)
    hybrid = strategy.startswith("HYBRID")
    if shard is not None or replicas is not None:
        product = (shard or 1) * (replicas or 1)
        if dp is not None and dp != product:
            raise InputError(
                f"{what}: {facts.key('replicate')} times {facts.key('shard')} are {product} ranks, "
                f"and {gpus} GPUs are {dp} replicas of the model."
            )
        dp = product
        if (replicas or 1) > 1:
            keys["hsdp"] = shard or 1
    elif hybrid:
        if dp is None or (known.gpus_per_host is None and "hosts" not in facts):
            raise InputError(
                f"{what}: {strategy} shards inside hosts, and the number of GPUs or of hosts is "
                "not said. Say `num_processes` and `num_machines`, or give them."
            )
        keys["hsdp"] = known.gpus_per_host or dp // facts["hosts"]
    return {**keys, "dp": dp}


def _sharding(facts: table.Facts, strategy: str, what: str) -> dict[str, object]:
    if strategy == "NO_SHARD":
        return {"zero": 0, "hsdp": None}
    keys: dict[str, object] = {"zero": 3}
    if strategy.endswith(("GRAD_OP", "ZERO2")):
        # Sharded outside computation, whole from forward to backward.
        keys["reshard"] = "off"
    reshard = facts["reshard"]
    if isinstance(reshard, str) and reshard.upper().lstrip("_") in _STRATEGIES:
        other = reshard.upper().lstrip("_")  # accelerate's name for the strategy of FSDP1
        return _sharding_of(facts, other, what)
    if reshard is not None:
        if isinstance(reshard, str):
            reshard = {"true": True, "false": False}.get(reshard.lower(), reshard)
        if isinstance(reshard, bool):
            keys["reshard"] = "on" if reshard else "off"
        elif isinstance(reshard, int) and 2 <= reshard <= 10**6:
            keys["reshard"] = reshard
        else:
            raise InputError(
                f"{what}: {facts.key('reshard')} is `{str(reshard)[:40]}`; it must be true, false "
                "or a number of ranks from 2."
            )
    prefetch = _PREFETCH.get(facts["backward_prefetch"], facts["backward_prefetch"])
    if prefetch == "NO_PREFETCH":
        keys["prefetch"] = 0
        facts.cannot_say(
            f"{facts.key('backward_prefetch')} = `NO_PREFETCH`: only backward waits for its "
            "gathers; the plan lets forward wait, too."
        )
    elif prefetch == "BACKWARD_POST":
        facts.note(
            f"{facts.key('backward_prefetch')} = `BACKWARD_POST`: the next gather is issued behind "
            "a layer's backward kernels and before its reduction; taken as one ahead."
        )
    if facts["offload"]:
        keys["offload"] = "optimizer+param"
    return keys


def _sharding_of(facts: table.Facts, strategy: str, what: str) -> dict[str, object]:
    del facts.said["reshard"]
    return _sharding(facts, strategy, what)


def _types(facts: table.Facts) -> tuple[str | None, dict[str, str]]:
    dtype, types = _mixed(facts)
    if "8bit" in facts["optimizer"]:
        types["state_dtype"] = "int8"
    if not facts["optimizer"].startswith("adamw"):
        types |= read_optimizer(facts, _OPTIMIZERS)
    return dtype, types


def _mixed(facts: table.Facts) -> tuple[str | None, dict[str, str]]:
    said = facts["mixed_precision"]
    if said is None:
        said = "bf16" if facts["bf16"] else "fp16" if facts["fp16"] else None
    if said is None:
        return None, {}
    if said == "no":
        return "fp32", {}
    if said == "fp8":
        return "fp8", {"reduce_dtype": "bf16"}
    # accelerate: one type for parameters, reductions and buffers.
    return said, {"reduce_dtype": said}


def write(plan: Plan, known: Known) -> str:
    """accelerate's configuration that runs a plan, as YAML; the first line is the command."""
    import yaml

    plan.without(
        pp="it has no pipeline.",
        ep="it has no expert parallelism.",
        sp="its tensor parallelism is not sequence-parallel.",
    )
    said, command = _write_mesh(plan, known)
    types, optimizer = _write_types(plan, known)
    said |= _write_sharding(plan, said) | types
    command += _write_bucket(plan, said) + optimizer
    _check_rest(plan, said)
    recompute = plan.take("recompute")
    if recompute not in (None, "full"):
        plan.refuse(f"recompute={recompute}", "it checkpoints whole layers.", "recompute=full")
    said["checkpointing"] = recompute == "full"
    plan.finish()
    document = {
        "compute_environment": "LOCAL_MACHINE",
        **table.nest(table.load(NAME).write(said)),
    }
    if said["kind"] == "FSDP":
        document["fsdp_config"] |= {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
    comments = "".join(f"# {line}\n" for line in [command, *plan.remarks])
    return comments + str(yaml.safe_dump(document, sort_keys=False))


def _write_mesh(plan: Plan, known: Known) -> tuple[dict[str, Any], str]:
    tp, cp, dp = plan.number("tp"), plan.number("cp"), plan.take("dp")
    plan.only("cp_type", ("ring_zigzag",), "it has torch's balanced ring.", "cp_type=ring_zigzag")
    mb, accum = plan.number("mb"), plan.take("accum")
    zero, hsdp = plan.number("zero", 0), plan.take("hsdp")
    ranks = int(dp) if dp else data_parallel(known.gpus, tp * cp, "the plan", strict=False)
    if accum is None and known.batch is not None and ranks and known.batch % (ranks * mb) == 0:
        accum = str(known.batch // (ranks * mb))
    world = ranks * tp * cp if ranks else None
    hosts = None
    if world is not None and known.gpus_per_host and world % known.gpus_per_host == 0:
        hosts = world // known.gpus_per_host
    command = "accelerate launch --config_file FILE "
    if hosts is not None and hosts > 1:
        command += "--machine_rank RANK --main_process_ip HOST --main_process_port PORT "
    command += f"TRAIN.py --per_device_train_batch_size {mb}"
    if accum is not None:
        command += f" --gradient_accumulation_steps {accum}"
    if zero in (1, 2):
        plan.refuse(f"zero={zero}", "FSDP shards parameters.", "zero=3,reshard=off (or zero=0)")
    said: dict[str, Any] = {"kind": "FSDP" if zero else "MULTI_GPU"}
    said |= {"gpus": world, "hosts": hosts}
    if hsdp is not None or tp * cp > 1:
        if ranks is None:
            plan.refuse("the plan", "its mesh needs every size.", "the plan with dp said")
        shard = int(hsdp) if hsdp else ranks if zero else 1
        said |= {"replicate": plan.replicas(ranks, shard), "shard": shard, "tp": tp, "cp": cp}
    if zero == 0 and tp * cp > 1:
        plan.refuse("zero=0", "with tp or cp it shards parameters.", "zero=3")
    plan.take_sync("last", zero, accumulates=accum not in (None, "1"))
    return said, command


def _write_sharding(plan: Plan, said: dict[str, Any]) -> dict[str, Any]:
    reshard, prefetch = plan.take("reshard"), plan.take("prefetch")
    plan.only("unit", (), "it wraps the modules of a class one by one.", "unit=1")
    offload = plan.words("offload")
    if said["kind"] != "FSDP":
        if offload:
            plan.refuse(f"offload={'+'.join(offload)}", "it offloads what it shards.", "zero=3")
        return {}
    # FSDP2 where the plan needs it: part of the mesh, or ranks to reshard to.
    second = "shard" in said or reshard not in (None, "on", "off")
    found: dict[str, Any] = {"version": 2 if second else 1}
    if second:
        ranks = reshard if reshard not in (None, "on", "off") else None
        found["reshard"] = int(ranks) if ranks else reshard != "off"
        if prefetch is not None:
            plan.refuse(f"prefetch={prefetch}", "FSDP2 gathers one unit ahead.", "prefetch=1")
    else:
        found["strategy"] = "SHARD_GRAD_OP" if reshard == "off" else "FULL_SHARD"
        if prefetch not in (None, "0"):
            plan.refuse(f"prefetch={prefetch}", "it gathers one unit ahead.", "prefetch=1")
        found["backward_prefetch"] = "NO_PREFETCH" if prefetch == "0" else "BACKWARD_PRE"
    if offload is not None and offload != ["optimizer", "param"]:
        plan.refuse(f"offload={'+'.join(offload)}", "it moves both.", "offload=optimizer+param")
    return {**found, "offload": bool(offload)}


def _write_types(plan: Plan, known: Known) -> tuple[dict[str, Any], str]:
    dtype, types = known.dtype or "bf16", dict(known.types)
    words = {"bf16": "bf16", "fp16": "fp16", "fp32": "no", "fp8": "fp8"}
    if dtype not in words:
        plan.refuse(f"dtype {dtype}", "it has fp32, fp16, bf16 and fp8.", "bf16")
    optimizer = take_optimizer(plan, types, _CALLED)
    reduce = types.pop("reduce_dtype", None)
    own = "bf16" if dtype == "fp8" else dtype
    if reduce not in (None, own):
        plan.refuse(f"reduce_dtype {reduce}", f"it reduces in {own}.", own)
    for option, value in types.items():
        plan.refuse(f"{option} {value}", "it has no setting for that.", "its default")
    return {"mixed_precision": words[dtype]}, "" if optimizer is None else f" --optim {optimizer}"


def _write_bucket(plan: Plan, said: dict[str, Any]) -> str:
    """What the command says of DDP's buckets, an argument of the Trainer."""
    bucket = plan.take("bucket")
    if bucket is None:
        return ""
    if said["kind"] == "FSDP":
        plan.refuse(f"bucket={bucket}", "a layer is one message.", "the plan without `bucket`")
    size = size_of(bucket)
    if size % _MIB:
        nearest = f"bucket={max(1, round(size / _MIB))}MiB"
        plan.refuse(f"bucket={bucket}", "it counts in MiB.", nearest)
    return f" --ddp_bucket_cap_mb {size // _MIB}"


def _check_rest(plan: Plan, said: dict[str, Any]) -> None:
    overlap = plan.words("overlap")
    normal = ["grad", "param"] if said["kind"] == "FSDP" else ["grad"]
    if overlap is not None and overlap != normal:
        nearest = f"overlap={'+'.join(normal)}"
        plan.refuse(f"overlap={'+'.join(overlap) or 'none'}", "it always overlaps.", nearest)
    plan.only("attn", (), "the model's code chooses (attn_implementation).", "the plan without it")
    order = plan.take("order")
    if order is not None:
        plan.refuse(f"order={order}", "its mesh is dp, cp, tp.", "order=tp-cp-ep-dp-pp")
