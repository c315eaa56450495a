"""Megatron-core: arguments of Megatron-LM in and out."""

from __future__ import annotations

import shlex
from typing import Any

from plancast import _core
from plancast.errors import InputError
from plancast.frameworks import (
    megatron_context,
    megatron_model,
    megatron_stages,
    megatron_types,
    table,
)
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known, accumulation, data_parallel
from plancast.frameworks.plan import Plan, default_sync, layout_of, short_form, size_of

NAME = "megatron-core"
TABLE = "megatron"
# As scripts run that say nothing of the loss.
_PLAIN_LOSS = "megatron-lm"
_ZERO = ("no_shard", "optim", "optim_grads", "optim_grads_params")
_MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
_LAUNCHER = ("--nproc-per-node", "--nnodes", "--world-size")


def read(flags: dict[str, Any], notes: list[str], what: str, known: Known) -> Contents[str]:
    """The plan of flags and their values."""
    flags = dict(flags)
    for flag in _LAUNCHER:  # often left to the scheduler
        if isinstance(flags.get(flag), str) and not flags[flag].isdecimal():
            notes = [*notes, f"`{flag}` is `{flags.pop(flag)[:40]}`: left open."]
    facts = table.load(TABLE).read(flags, what, text=True)
    facts.notes[:0] = notes
    for name in ("attention_dropout", "hidden_dropout"):
        if facts[name]:
            facts.cannot_say(f"{facts.key(name)} = {facts[name]}: the profile has no dropout.")
    if "--rampup-batch-size" in flags:
        facts.note("the batch grows at the start of training; the final one is taken.")
    model = megatron_model.read_model(facts)
    layers = facts["layers"] or known.layers
    gpus = known.gpus or facts["world"] or _product(facts["per_node"], facts["nodes"])
    keys = _mesh(facts, gpus, layers, what, strict=known.gpus is not None)
    dtype, types = megatron_types.read_types(facts, what)
    keys |= _sharding(facts, keys, dtype, types, what)
    keys |= _batch(facts, keys, what)
    _tell_group(facts, keys)
    keys |= _recompute(facts, what) | _offload(facts)
    if facts["attention"] != "auto":
        keys["attn"] = "flash" if facts["attention"] in ("flash", "fused") else "unfused"
    elif facts["flash"]:
        keys["attn"] = "flash"
    return Contents(
        framework=NAME,
        strategy=short_form(keys),
        profile="megatron-core" if facts["loss_fusion"] else _PLAIN_LOSS,
        batch=facts["batch"],
        seq=facts["seq"],
        dtype=dtype,
        types=types,
        model=model,
        gpus=gpus,
        cuda_graphs=facts["graphs_local"] or facts["graphs_te"] or facts["graphs"] != "none",
        notes=tuple(facts.notes),
        unsupported=tuple(facts.unsupported),
    )


def _product(per_node: int | None, nodes: int | None) -> int | None:
    return None if per_node is None else per_node * (nodes or 1)


def _mesh(
    facts: table.Facts, gpus: int | None, layers: int | None, what: str, *, strict: bool
) -> dict[str, object]:
    tp, pp, cp = facts["tp"], facts["pp"], facts["cp"]
    dp = data_parallel(gpus, tp * pp * cp, what, strict=strict)
    if gpus is not None and dp is None:
        facts.note(
            f"the script starts {gpus} GPUs, which {tp * pp * cp} of one replica do not divide; "
            "dp is left open."
        )
    vpp, layout = megatron_stages.read_stages(facts, layers, what)
    _tell(facts)
    return {
        "dp": dp,
        "tp": tp,
        "sp": "" if facts["sp"] and tp > 1 else None,
        "pp": pp,
        "vpp": vpp,
        "layout": None if layout is None else "+".join(str(count) for count in layout),
        "cp": cp,
        "cp_type": megatron_context.read(facts, what) if cp > 1 else None,
        "ep": facts["ep"],
        "etp": facts["etp"],
        "order": "tp-cp-ep-pp-dp" if facts["pp_before_dp"] else None,
    }


def _tell(facts: table.Facts) -> None:
    """Names what differs from the exchange and attention that are simulated."""
    if facts["ep"] > 1 and facts["dispatcher"] != "alltoall":
        facts.cannot_say(
            f"{facts.key('dispatcher')} is {facts['dispatcher']}: tokens are not exchanged by one "
            "all-to-all, which is what `megatron-core` simulates (`megatron-core-flex`: flex)."
        )


def _check_delayed(facts: table.Facts, pairs: bool, what: str) -> None:
    """Weight gradients beside the exchange of tokens: part of what overlap=ep simulates."""
    key = facts.key("delay_wgrad")
    if facts["delay_wgrad"] and not pairs:
        raise InputError(f"{what}: {key} needs {facts.key('overlap_ep')}.")
    if pairs and not facts["delay_wgrad"]:
        facts.cannot_say(
            f"without {key} gradients of experts' weights are made before their tokens go back; "
            "overlap=ep makes them beside that."
        )


def _sharding(
    facts: table.Facts, keys: dict[str, object], dtype: str | None, types: dict[str, str], what: str
) -> dict[str, object]:
    # Muon is sharded matrix by matrix, under a name of its own.
    sharded = facts["sharded_optimizer"] or facts["optimizer"] == "dist_muon"
    found: dict[str, object] = {"zero": 1 if sharded else 0}
    if facts["megatron_fsdp"]:
        found["zero"] = _ZERO.index(facts["sharding"])
    elif "sharding" in facts and facts["sharding"] != "no_shard":
        facts.note(f"{facts.key('sharding')} has no effect without `--use-megatron-fsdp`.")
    if facts["torch_fsdp"]:
        found |= {"zero": 3, "reshard": "off" if facts["no_reshard"] else None}
    if facts["instances"] > 1:
        dp = keys["dp"]
        if not isinstance(dp, int) or dp % facts["instances"]:
            raise InputError(
                f"{what}: {facts.key('instances')} = {facts['instances']} needs to know the "
                "number of GPUs, whose data-parallel ranks are a multiple of it. Give `gpus`."
            )
        found["hsdp"] = dp // facts["instances"]
    overlap = [
        word
        for word, name in (("grad", "overlap_grad"), ("param", "overlap_param"),
                           ("tp", "overlap_tp"), ("ep", "overlap_ep"))
        if facts[name]
    ]  # fmt: skip
    if "tp" in overlap and not facts["sp"]:
        raise InputError(f"{what}: {facts.key('overlap_tp')} needs `--sequence-parallel`.")
    _check_delayed(facts, "ep" in overlap, what)
    found["overlap"] = "+".join(overlap) or None
    if facts["bucket"] is not None:
        found["bucket"] = f"{facts['bucket'] * megatron_types.gradient_bytes(dtype, types)}B"
    return found


def _batch(facts: table.Facts, keys: dict[str, object], what: str) -> dict[str, object]:
    dp, mb = keys["dp"], facts["mb"]
    if mb is None or not isinstance(dp, int):
        return {"mb": mb}
    if facts["batch"] is not None and facts["batch"] % (mb * dp):
        facts.note(
            f"{facts.key('batch')} = {facts['batch']} is no multiple of dp*mb = {dp}*{mb}; dp is "
            "left open."
        )
        return {"mb": mb, "dp": None}
    return {"mb": mb, "accum": accumulation(facts["batch"], dp, mb, what)}


def _tell_group(facts: table.Facts, keys: dict[str, object]) -> None:
    """Names a number of micro-batches that the interleaved schedule takes at a time but is not
    simulated."""
    pp, accum = facts["pp"], keys.get("accum")
    said = facts["group"] or pp
    own = _core.interleaved_group(pp, accum) if isinstance(accum, int) else pp
    if keys["vpp"] != 1 and pp > 1 and said != own:
        facts.cannot_say(
            f"{facts.key('group')} = {said}: the interleaved schedule that is simulated takes "
            f"{own} micro-batches at a time."
        )


def _recompute(facts: table.Facts, what: str) -> dict[str, object]:
    granularity = facts["granularity"]
    modules = list(facts["modules"] or [])
    if facts["recompute_activations"]:
        granularity = granularity or "selective"
    if facts["moe_recompute"]:
        granularity = granularity or "selective"
        modules = modules or ["moe"]
    if facts["checkpoint_activations"]:
        granularity = "full"
    if granularity == "selective":
        unknown = [module for module in modules if module not in _MODULES]
        if unknown:
            from plancast.arguments import offer

            raise InputError(
                f"{what}: {facts.key('modules')} has `{unknown[0][:40]}`."
                f"{offer(unknown[0], _MODULES)}"
            )
        words = "+".join(sorted(set(modules)))
        plain = words in ("", "core_attn")
        return {"recompute": "selective" if plain else f"selective:{words}"}
    if granularity is None:
        return {}
    number = facts["recompute_layers"]
    if facts["method"] == "block" and number is not None:
        return {"recompute": f"full:{number}"}
    if facts["method"] == "uniform" and (number or 1) > 1:
        return {"recompute": f"uniform:{number}"}
    return {"recompute": "full"}


def _offload(facts: table.Facts) -> dict[str, object]:
    moved = ["optimizer"] if facts["offload_optimizer"] else []
    if facts["offload_layers"]:
        moved.append(f"activations:{facts['offload_layers']}")
    return {"offload": "+".join(moved) or None}


def write(plan: Plan, known: Known) -> str:
    """A shell script with the arguments of a plan in an array `MEGATRON_ARGS`."""
    said = megatron_model.write_model(known.model, known.seq)
    _remark(plan, said, known)
    said |= _write_dropout(known)
    said["loss_fusion"] = known.profile != _PLAIN_LOSS
    said |= megatron_types.write_types(plan, known)
    said |= _write_mesh(plan, known)
    world = said.pop("gpus")
    said |= _write_sharding(plan, said)
    said |= _write_rest(plan, known)
    plan.finish()
    lines = []
    for flag, value in table.load(TABLE).write(said).items():
        if value is True:
            lines.append(f"    {flag}")
        elif isinstance(value, list):
            lines.append(f"    {flag} {' '.join(value)}")
        elif value is not False:
            lines.append(f"    {flag} {shlex.quote(str(value))}")
    head = [f"# {remark}" for remark in plan.remarks]
    head += [f"WORLD_SIZE={world}"] if world else []
    return "\n".join([*head, "MEGATRON_ARGS=(", *lines, ")", ""])


def _remark(plan: Plan, said: dict[str, Any], known: Known) -> None:
    """Names what the model needs and nobody knows here."""
    if known.model is not None and "layers" not in said:
        plan.remarks.append(f"{known.model.name} is no transformer: add the model's arguments")
    elif known.model is None:
        plan.remarks.append("the model is not known: add its sizes")
    unsaid = megatron_model.unsaid(known.model)
    if unsaid:
        plan.remarks.append(f"of the model these are not said: {', '.join(unsaid)}")
    if said.get("position") == "rope" and said.get("rotary_base") is None:
        plan.remarks.append("the base of rotary embeddings is not known: Megatron takes 10000")


def _write_dropout(known: Known) -> dict[str, Any]:
    """Megatron drops a tenth where nothing is said; most profiles train without."""
    if _core.profile_dropout(known.profile or NAME):
        return {}
    return {"attention_dropout": 0, "hidden_dropout": 0}


def _write_mesh(plan: Plan, known: Known) -> dict[str, Any]:
    tp, pp, cp, vpp = (plan.number(key) for key in ("tp", "pp", "cp", "vpp"))
    dp, mb, accum = plan.take("dp"), plan.number("mb"), plan.take("accum")
    ranks = int(dp) if dp else data_parallel(known.gpus, tp * pp * cp, "the plan", strict=False)
    batch = known.batch
    if accum is not None and ranks is not None:
        batch = ranks * mb * int(accum)
    elif accum is not None and batch is None:
        plan.refuse(f"accum={accum}", "it has the global batch instead.", "the plan with dp said")
    layout, schedule, order = plan.take("layout"), plan.take("schedule"), plan.take("order")
    if schedule is not None:
        own = "interleaved" if vpp > 1 else "1f1b"
        plan.refuse(f"schedule={schedule}", "it has 1F1B and the interleaved one.", own)
    if order not in (None, "tp-cp-ep-pp-dp", "tp-pp-dp", "tp-cp-pp-dp", "tp-ep-pp-dp"):
        plan.refuse(f"order={order}", "dp may only change places with pp.", "tp-cp-ep-pp-dp")
    stages = megatron_stages.write_stages(
        pp,
        vpp,
        layout_of(layout) if layout else None,
        known.layers,
        megatron_model.multi_token(known.model),
    )
    group = None
    if batch is not None and ranks is not None and vpp > 1:
        micro_batches = batch // (ranks * mb)
        plan.run_micro_batches(f"pp={pp},vpp={vpp}", micro_batches)
        group = _core.interleaved_group(pp, micro_batches)
    etp, sp, experts = plan.take("etp"), plan.take("sp"), plan.number("ep")
    return {
        "tp": tp,
        "sp": sp is not None,
        "pp": pp,
        "group": group if group != pp else None,
        **stages,
        "cp": cp if cp > 1 else None,
        **megatron_context.write(plan, cp),
        "ep": experts if experts > 1 else None,
        "etp": int(etp) if etp else None,
        "dispatcher": "alltoall" if experts > 1 else None,
        "pp_before_dp": order is not None,
        "mb": mb,
        "batch": batch,
        "gpus": ranks * tp * pp * cp if ranks else None,
        "_ranks": ranks,
        "_chunks": vpp > 1 or pp == 1,
    }


def _write_sharding(plan: Plan, said: dict[str, Any]) -> dict[str, Any]:
    zero, ranks, chunks = plan.number("zero", 0), said.pop("_ranks"), said.pop("_chunks")
    found: dict[str, Any] = {}
    if zero == 1 and said.get("optimizer") == "muon":
        found["optimizer"] = "dist_muon"
    elif zero == 1:
        found["sharded_optimizer"] = True
    elif zero > 1 and said.get("optimizer") == "muon":
        plan.refuse(f"optimizer_type muon with zero={zero}", "it shards no matrices.", "zero=1")
    reshard = plan.take("reshard")
    if reshard not in (None, "on", "off"):
        plan.refuse(f"reshard={reshard}", "it reshards to the whole group.", "reshard=on")
    torch = zero == 3 and reshard == "off"
    if torch:
        if said["pp"] > 1 or said.get("ep"):
            why = "only torch's FSDP2 keeps parameters, and that has no pp or ep."
            plan.refuse("reshard=off", why, "reshard=on, or zero=2")
        found |= {"torch_fsdp": True, "no_reshard": True, "ckpt_format": "torch_dist"}
    elif zero > 1:
        found |= {"megatron_fsdp": True, "sharding": _ZERO[zero], "sharded_optimizer": True,
                  "ckpt_format": "fsdp_dtensor"}  # fmt: skip
    hsdp = plan.take("hsdp")
    if hsdp is not None:
        if ranks is None:
            plan.refuse(f"hsdp={hsdp}", "it needs the replicas.", "the plan with dp said")
        if torch:
            plan.refuse("hsdp with reshard=off", "torch's FSDP2 has one group.", "reshard=on")
        found["instances"] = plan.replicas(ranks, int(hsdp))
    plan.only("prefetch", (), "units ahead are not a setting.", "prefetch=1")
    plan.only("unit", (), "it wraps the modules of a class one by one.", "unit=1")
    plan.take_sync(default_sync(zero), zero)
    overlap = plan.words("overlap") or []
    if "cp" in overlap:
        plan.refuse("overlap=cp", "ring attention has no switch.", "the plan without it")
    if torch and set(overlap) & {"grad", "param"} == {"grad", "param"}:
        overlap = [word for word in overlap if word not in ("grad", "param")]
    if "param" in overlap and "grad" not in overlap:
        plan.refuse("overlap=param", "it needs overlap of gradients.", "overlap=grad+param")
    if "param" in overlap and zero == 0:
        plan.refuse("overlap=param", "nothing is gathered with zero=0.", "overlap=grad")
    if "tp" in overlap and not said["sp"]:
        plan.refuse("overlap=tp", "it needs sp.", "the plan with sp")
    for word in overlap:
        found[f"overlap_{word}"] = True
    if "ep" in overlap and not chunks:
        plan.refuse("overlap=ep with pp", "it needs the interleaved schedule.", "the plan with vpp")
    if "ep" in overlap:
        found["delay_wgrad"] = True
    bucket = plan.take("bucket")
    if bucket is not None:
        size = 2 if said.get("grads_bf16") or (said["fp16"] and not said["grads_fp32"]) else 4
        if size_of(bucket) % size:
            plan.refuse(f"bucket={bucket}", f"it counts elements of {size} bytes.", "a multiple")
        found["bucket"] = size_of(bucket) // size
    return found


def _write_rest(plan: Plan, known: Known) -> dict[str, Any]:
    said: dict[str, Any] = {}
    recompute = plan.take("recompute") or "none"
    mode, _, rest = recompute.partition(":")
    if mode == "every":
        plan.refuse(f"recompute={recompute}", "it has blocks of layers.", "recompute=full:N")
    elif mode in ("full", "uniform"):
        said = {"granularity": "full", "method": "block" if mode == "full" and rest else "uniform",
                "recompute_layers": int(rest or 1)}  # fmt: skip
    elif mode == "selective":
        words = rest.split("+") if rest else ["core_attn"]
        if unknown := [word for word in words if word not in _MODULES]:
            nearest = f"sets of {', '.join(_MODULES)}"
            plan.refuse(f"recompute={recompute}", f"it has no `{unknown[0]}`.", nearest)
        said = {"granularity": "selective", "modules": words}
    for word in plan.words("offload") or []:
        if word == "optimizer":
            said["offload_optimizer"] = True
        elif word.startswith("activations:"):
            said["offload_layers"] = int(word.partition(":")[2])
        else:
            why = "it offloads the optimizer, and activations of a number of layers."
            plan.refuse(f"offload={word}", why, "offload=optimizer+activations:N")
    attention = plan.take("attn")
    said["attention"] = attention
    said["graphs"] = "local" if known.cuda_graphs else None
    return said
