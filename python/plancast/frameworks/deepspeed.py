"""DeepSpeed's configuration: JSON in and out."""

from __future__ import annotations

import json
from typing import Any

from plancast.errors import InputError
from plancast.frameworks import table
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known, accumulation, data_parallel
from plancast.frameworks.optimizers import read_optimizer, take_optimizer
from plancast.frameworks.plan import Plan, default_sync, short_form, size_of

NAME = "deepspeed"
_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
# runtime/engine.py: its own optimizers, and those of torch.optim.
_OPTIMIZERS = {"adam": "adam", "adamw": "adam", "lamb": "lamb", "lion": "lion", "sgd": "sgd",
               "adagrad": "adagrad", "rmsprop": "rmsprop", "muon": "muon"}  # fmt: skip
_CALLED = {"lamb": "Lamb", "lion": "Lion", "sgd": "SGD", "sgd-momentum": "SGD",
           "adagrad": "Adagrad", "rmsprop": "RMSprop", "muon": "Muon"}  # fmt: skip


def read(document: dict[str, Any], what: str, known: Known) -> Contents[str]:
    """The plan of a parsed configuration."""
    if isinstance(document.get("zero_optimization"), bool):  # the form of 2020
        document = {**document, "zero_optimization": {"stage": int(document["zero_optimization"])}}
    facts = table.load(NAME).read(table.flatten(document), what)
    if facts["stage"] > 3:
        raise InputError(f"{what}: {facts.key('stage')} is {facts['stage']}; there are 0 to 3.")
    if facts["fp16"] and facts["bf16"]:
        raise InputError(f"{what} enables fp16 and bf16 both. Disable one.")
    dtype, types = _types(facts)
    keys: dict[str, object] = {"tp": max(facts["tp"], 1), "zero": facts["stage"]}
    batch = _batch(facts, keys, what, known)
    keys |= _sharding(facts, keys, what) | _buckets(facts, dtype, types, known)
    keys |= _offload(facts, what)
    if "activation_checkpointing" in document:
        keys["recompute"] = "full"
        facts.note(
            "the model's code decides what is recomputed, and `activation_checkpointing` how: "
            "taken as every layer."
        )
        if facts["partition_activations"] and facts["tp"] > 1:
            there = "+host" if facts["cpu_checkpointing"] else ""
            facts.cannot_say(
                f"{facts.key('partition_activations')}: saved activations are cut over tp. In a "
                f"tree, `home: {{activations: shard(tp){there}}}` of the layers says so."
            )
    facts.note(
        "pipeline stages, if any, are the code's; the file says none. The profile is of eager "
        "modules; of Megatron's layers it is `megatron-deepspeed`."
    )
    return Contents(
        framework=NAME,
        strategy=short_form(keys),
        profile=NAME,
        batch=batch,
        dtype=dtype,
        types=types,
        gpus=known.gpus,
        notes=tuple(facts.notes),
        unsupported=tuple(facts.unsupported),
    )


def _batch(facts: table.Facts, keys: dict[str, object], what: str, known: Known) -> int | None:
    """Fills dp, mb and accum from any two of the three sizes; gives the global batch."""
    batch, mb, accum = facts["batch"], facts["mb"], facts["accum"]
    dp = data_parallel(known.gpus, max(facts["tp"], 1), what)
    if batch is not None and mb is not None and accum is not None:
        if batch % (mb * accum):
            raise InputError(
                f"{what}: `train_batch_size` {batch} is no multiple of micro-batch {mb} times "
                f"{accum} accumulation steps."
            )
        said = batch // (mb * accum)
        if dp is not None and dp != said:
            raise InputError(
                f"{what}: `train_batch_size` {batch} is micro-batch {mb} times {accum} steps times "
                f"{said} ranks, and there are {dp}."
            )
        dp = said
    if mb is None and batch is not None and dp is not None:
        ranks = dp * (accum or 1)
        if batch % ranks:
            raise InputError(f"{what}: `train_batch_size` {batch} is no multiple of {ranks} ranks.")
        mb = batch // ranks
    if accum is None and batch is not None and mb is not None:
        accum = accumulation(batch, dp, mb, what)
    keys |= {"dp": dp, "mb": mb, "accum": accum}
    if batch is None and dp is not None and mb is not None and accum is not None:
        batch = dp * mb * accum
    return None if batch is None else int(batch)


def _sharding(facts: table.Facts, keys: dict[str, object], what: str) -> dict[str, object]:
    stage, found = facts["stage"], {}
    for name, effect in (("hpz", 1), ("mics", 0)):
        if facts[name] > effect and stage != 3:
            raise InputError(f"{what}: {facts.key(name)} needs ZeRO stage 3, not {stage}.")
    if facts["hpz"] > 1:
        found["reshard"] = facts["hpz"]
    if facts["mics"] > 0:
        found["hsdp"] = facts["mics"]
    if "overlap" in facts and stage > 0:
        words = "grad+param" if stage == 3 else "grad"
        found["overlap"] = words if facts["overlap"] else "none"
    elif stage == 3:
        facts.note("`overlap_comm` is on by default with stage 3: layers are gathered ahead.")
    return found


def _buckets(
    facts: table.Facts, dtype: str | None, types: dict[str, str], known: Known
) -> dict[str, object]:
    keys: dict[str, object] = {}
    wire = _wire(dtype, types)
    if facts["bucket"]:
        keys["bucket"] = f"{facts['bucket'] * wire}B"
    if facts["gather_bucket"] is not None and facts["stage"] in (1, 2):
        if facts["gather_bucket"] == facts["bucket"]:
            facts.note(f"{facts.key('gather_bucket')} is as large as the bucket of gradients.")
        else:
            facts.cannot_say(
                f"{facts.key('gather_bucket')} = {facts['gather_bucket']:,} elements: parameters "
                "are gathered in other buckets than gradients are reduced in."
            )
    if facts["stage"] != 3:
        return keys
    if facts["prefetch"] == 0:
        keys["prefetch"] = 0
    elif facts["prefetch"] is not None:
        layer = _elements_of_layer(known)
        if layer is None:
            facts.note(
                f"{facts.key('prefetch')}: {facts['prefetch']:,} elements are gathered ahead; a "
                "plan counts layers, taken as 1. Give the model to have them counted."
            )
        else:
            keys["prefetch"] = max(1, round(facts["prefetch"] / layer))
            facts.note(
                f"{facts.key('prefetch')}: {facts['prefetch']:,} elements gathered ahead are "
                f"{facts['prefetch'] / layer:.2f} layers; a plan counts whole ones."
            )
    if facts["whole_below"] is not None:
        said = f"{facts.key('whole_below')}: parameters of fewer than {facts['whole_below']:,}"
        if facts["whole_below"] <= 1_000_000:
            facts.note(f"{said} elements stay whole; they are taken to be small.")
        else:
            facts.cannot_say(f"{said} elements stay whole on every rank.")
    return keys


def _elements_of_layer(known: Known) -> int | None:
    if known.model is None or known.model.layers < 1:
        return None
    return max(1, known.model.parameters // known.model.layers)


def _wire(dtype: str | None, types: dict[str, str]) -> int:
    """Bytes of a gradient's element as it travels."""
    return _BYTES.get(types.get("reduce_dtype", dtype or "bf16"), 2)


def _offload(facts: table.Facts, what: str) -> dict[str, object]:
    moved = []
    for name, device, old, needed in (
        ("optimizer", "optimizer_device", "old_offload", 1),
        ("param", "param_device", "old_offload_param", 3),
    ):
        if facts[device] == "none" and not facts[old]:
            continue
        if facts["stage"] < needed:
            fact = device if facts[device] != "none" else old
            raise InputError(
                f"{what}: {facts.key(fact)} needs ZeRO stage {needed}{' at least' * (needed < 3)}, "
                f"not {facts['stage']}."
            )
        if facts[device] == "nvme":
            facts.cannot_say(f"{facts.key(device)} = `nvme`: read as the memory of the host.")
        moved.append(name)
    if facts["cpu_checkpointing"]:
        moved.append("activations")
    return {"offload": "+".join(moved) or None}


def _types(facts: table.Facts) -> tuple[str | None, dict[str, str]]:
    left_open = None if facts.auto & {"fp16", "bf16"} else "fp32"
    dtype = "fp16" if facts["fp16"] else "bf16" if facts["bf16"] else left_open
    types: dict[str, str] = {}
    # runtime/engine.py: gradients travel in the type of the model, if not said otherwise.
    if facts["communication_dtype"]:
        types["reduce_dtype"] = facts["communication_dtype"]
    elif dtype in ("fp16", "bf16"):
        types["reduce_dtype"] = dtype
    if facts["grad_dtype"]:
        types["grad_dtype"] = facts["grad_dtype"]
    if facts["fp16_master"] or facts["bf16_master"]:
        types["master"] = "fp16" if facts["fp16_master"] else "bf16"
    if facts["bf16_states"]:
        types["state_dtype"] = "bf16"
    if facts["quantized_weights"]:
        types["gather_dtype"] = "int8"
    if facts["quantized_gradients"]:
        types["reduce_dtype"] = "int4"
    if facts["optimizer"] and "8bit" in facts["optimizer"].lower():
        types["state_dtype"] = "int8"
    elif facts["optimizer"]:
        types |= read_optimizer(facts, _OPTIMIZERS, momentum=facts["momentum"] > 0)
    return dtype, types


def write(plan: Plan, known: Known) -> str:
    """The configuration that runs a plan, as JSON."""
    stage = plan.number("zero", 0)
    dtype = known.dtype or "bf16"
    if dtype not in _BYTES:
        plan.refuse(f"dtype {dtype}", "it has fp32, fp16 and bf16.", "bf16")
    said = _write_types(plan, dtype, dict(known.types))
    wire = _BYTES.get(said.get("communication_dtype") or dtype, 2)
    if "dp" in plan.keys and "hsdp" in plan.keys:
        plan.replicas(int(plan.keys["dp"]), int(plan.keys["hsdp"]))
    said |= _write_batch(plan, known) | _write_sharding(plan, stage, wire, known)
    said |= _write_offload(plan, stage)
    plan.without(
        pp="stages are made by the model's code (PipelineModule).",
        cp="it has Ulysses instead, in the model's code.",
        ep="experts are spread by the model's code.",
        sp="its tensor parallelism is not sequence-parallel.",
    )
    plan.only("attn", ("flash",), "attention is the model's code.", "attn=flash")
    plan.finish()
    return json.dumps(table.nest(table.load(NAME).write(said)), indent=2) + "\n"


def _write_batch(plan: Plan, known: Known) -> dict[str, Any]:
    dp, tp = plan.take("dp"), plan.number("tp")
    mb, accum = plan.number("mb"), plan.take("accum")
    order = plan.take("order")
    if order is not None:
        plan.refuse(f"order={order}", "ranks of tp are next to each other.", "the plan without it")
    ranks = int(dp) if dp else data_parallel(known.gpus, tp, "the plan", strict=False)
    steps = int(accum) if accum else accumulation(known.batch, ranks, mb, "the plan")
    if steps is None and known.batch is not None:
        return {"tp": tp if tp > 1 else None, "mb": mb, "batch": known.batch}
    return {
        "tp": tp if tp > 1 else None,
        "mb": mb,
        "accum": steps or 1,
        "batch": ranks * mb * (steps or 1) if ranks else None,
    }


def _write_sharding(plan: Plan, stage: int, wire: int, known: Known) -> dict[str, Any]:
    said: dict[str, Any] = {"stage": stage}
    hsdp, reshard = plan.take("hsdp"), plan.take("reshard")
    plan.take_sync(default_sync(stage), stage)
    if hsdp is not None:
        if stage != 3:
            plan.refuse(f"zero={stage},hsdp={hsdp}", "MiCS shards parameters.", "zero=3")
        said["mics"] = int(hsdp)
    if reshard == "off":
        plan.refuse("reshard=off", "stage 3 gives parameters up.", "zero=2, or reshard=N")
    if reshard not in (None, "on"):
        said["hpz"] = int(reshard)
    overlap = plan.words("overlap")
    if overlap is not None and stage == 0:
        if overlap:
            plan.refuse(f"overlap={'+'.join(overlap)}", "stage 0 reduces at the end.", "none")
    elif overlap is not None:
        words = ["grad", "param"] if stage == 3 else ["grad"]
        if overlap not in ([], words):
            nearest = f"overlap={'+'.join(words)}"
            plan.refuse(f"overlap={'+'.join(overlap)}", "overlap_comm is one switch.", nearest)
        said["overlap"] = bool(overlap)
    bucket = plan.take("bucket")
    if bucket is not None:
        if size_of(bucket) % wire:
            plan.refuse(f"bucket={bucket}", f"it counts elements of {wire} bytes.", "a multiple")
        said["bucket"] = size_of(bucket) // wire
    plan.only("unit", (), "it gathers modules one by one.", "unit=1")
    prefetch = plan.take("prefetch")
    if prefetch == "0":
        said["prefetch"] = 0
    elif prefetch is not None:
        layer = _elements_of_layer(known)
        if layer is None:
            plan.refuse(f"prefetch={prefetch}", "it counts elements; give the model.", "prefetch=1")
        said["prefetch"] = int(prefetch) * layer
    return said


def _write_offload(plan: Plan, stage: int) -> dict[str, Any]:
    said: dict[str, Any] = {}
    offload = plan.words("offload") or []
    recompute = plan.take("recompute")
    if recompute not in (None, "full"):
        plan.refuse(f"recompute={recompute}", "it checkpoints whole layers.", "recompute=full")
    for word in offload:
        if word.startswith("activations:") or (word == "activations" and not recompute):
            why = "it moves the inputs of recomputed layers, all of them."
            plan.refuse(f"offload={word}", why, "recompute=full,offload=activations")
    if "optimizer" in offload:
        if stage < 1:
            plan.refuse("offload=optimizer", "it needs ZeRO.", "zero=1")
        said["optimizer_device"] = "cpu"
    if "param" in offload:
        if stage != 3:
            plan.refuse("offload=param", "it needs stage 3.", "zero=3")
        said["param_device"] = "cpu"
    if recompute:
        said |= {"partition_activations": False, "cpu_checkpointing": "activations" in offload}
    return said


def _write_types(plan: Plan, dtype: str, types: dict[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {"fp16": dtype == "fp16" or None, "bf16": dtype == "bf16" or None}
    reduce, gather = types.pop("reduce_dtype", None), types.pop("gather_dtype", None)
    grad = types.pop("grad_dtype", None)
    if reduce == "int4":
        said["quantized_gradients"] = True
    elif reduce in _BYTES:
        said["communication_dtype"] = None if reduce == dtype else reduce
    elif reduce is not None:
        plan.refuse(f"reduce_dtype {reduce}", "it has fp32, fp16, bf16 and int4.", "bf16")
    if gather == "int8":
        said["quantized_weights"] = True
    elif gather not in (None, dtype):
        plan.refuse(f"gather_dtype {gather}", f"it gathers in {dtype} or int8.", "int8")
    if grad is not None:
        if grad not in _BYTES:
            plan.refuse(f"grad_dtype {grad}", "it has fp32, fp16 and bf16.", "bf16")
        said["grad_dtype"] = grad
    momentum = 0.9 if types.get("optimizer_type") == "sgd-momentum" else None
    optimizer = take_optimizer(plan, types, _CALLED)
    if optimizer is not None:
        said |= {"optimizer": optimizer, "momentum": momentum}
    master, state = types.pop("master", "on"), types.pop("state_dtype", "fp32")
    if master == dtype and dtype in ("fp16", "bf16"):
        said[f"{dtype}_master"] = True
    elif master not in ("on", "fp32"):
        plan.refuse(f"master {master}", f"it keeps one in fp32 or {dtype}.", dtype)
    if state == "bf16" and dtype == "bf16":
        said["bf16_states"] = True
    elif state != "fp32":
        plan.refuse(f"state_dtype {state}", "the optimizer's code chooses.", "fp32, or bf16")
    for option, value in types.items():
        plan.refuse(f"{option} {value}", "it has no setting for that.", "its default")
    return said
