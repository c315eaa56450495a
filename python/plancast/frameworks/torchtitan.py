"""torchtitan's job configuration: TOML in and out."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.frameworks import table, torchtitan_pipeline
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known, accumulation, data_parallel, layers_of, preset
from plancast.frameworks.optimizers import take_optimizer
from plancast.frameworks.plan import Plan, short_form
from plancast.frameworks.toml_text import to_toml

NAME = "torchtitan"
_DTYPES = {"bfloat16": "bf16", "float32": "fp32"}
_CONVERTERS = {
    "float8": "fp8",
    "quantize.linear.float8": "fp8",
    "mx": "mxfp8",
    "quantize.linear.mx": "mxfp8",
}
_WHOLE = ("parallelism.module_fqns_per_model_part",)


def read(document: dict[str, Any], what: str, known: Known) -> Contents[str]:
    """The plan of a parsed job configuration."""
    facts = table.load(NAME).read(table.flatten(document, _WHOLE), what)
    model = _preset(facts["model"], facts["flavor"]) if "flavor" in facts else None
    if "flavor" in facts and model is None:
        facts.note(f"no preset is called `{facts['model']}` `{facts['flavor']}`.")
    keys: dict[str, object] = _mesh(facts, what, known)
    keys |= _stages(facts, layers_of(model, known), what)
    batch = _batch(facts, keys, what, known)
    keys |= _recompute(facts, what)
    if facts["cpu_offload"]:
        keys["offload"] = "optimizer+param"
    compiled = facts["compile"] and "model" in facts["components"]
    if facts["async_tp"] and facts["tp"] > 1:
        if compiled:
            keys["overlap"] = "grad+param+tp"
        else:
            facts.note(f"{facts.key('async_tp')} has no effect without compilation.")
    dtype, types = _types(facts)
    return Contents(
        framework=NAME,
        strategy=short_form(keys),
        profile="torchtitan" if compiled else "torchtitan-eager",
        batch=batch,
        seq=facts.get("seq"),
        dtype=dtype,
        types=types,
        model=model,
        gpus=known.gpus,
        notes=tuple(facts.notes),
        unsupported=tuple(facts.unsupported),
    )


def _preset(name: str, flavor: str) -> str | None:
    """The preset that a name and flavor mean."""
    called = table.load(NAME).models.items()
    return preset(f"{name}-{flavor}") or next((m for m, c in called if c == [name, flavor]), None)


def _write_model(plan: Plan, known: Known) -> dict[str, Any]:
    """The model's name and flavor; without them torchtitan trains a small one for debugging."""
    if known.model is None:
        plan.remarks.append("the model is not known: say `name` and `flavor` in [model]")
        return {}
    names = table.load(NAME)
    family, dash, size = known.model.name.partition("-")
    name, flavor = names.models.get(known.model.name, [family, size.upper()])
    if not dash or name not in names.shipped:
        plan.remarks.append(
            f"torchtitan ships no `{known.model.name}`: register it under the name in [model]"
        )
    return {"model": name, "flavor": flavor or "default"}


def _mesh(facts: table.Facts, what: str, known: Known) -> dict[str, object]:
    tp, pp, cp, replicas, shard = (facts[key] for key in ("tp", "pp", "cp", "replicate", "shard"))
    dp: int | None
    if shard == 0:
        raise InputError(f"{what}: {facts.key('shard')} is 0; it must be -1 or from 1.")
    if shard > 0:
        dp = replicas * shard
    else:
        dp = data_parallel(known.gpus, tp * pp * cp, what)
        if dp is not None and dp % replicas:
            raise InputError(
                f"{what}: {replicas} replicas do not divide the {dp} data-parallel ranks."
            )
        if dp is None and replicas > 1:
            raise InputError(
                f"{what}: {facts.key('shard')} is -1, so that the size of a shard group of "
                f"{replicas} replicas depends on the number of GPUs. Give `gpus`."
            )
    sharded = shard != 1 or cp > 1
    keys: dict[str, object] = {"dp": dp, "tp": tp, "pp": pp, "cp": cp}
    if cp > 1 and facts["cp_balance"] in (None, "", "none", "None"):
        keys["cp_type"] = "ring"
    elif cp > 1 and facts["cp_balance"] != "headtail":
        facts.cannot_say(f"{facts.key('cp_balance')}: read as `headtail`.")
    if tp > 1 and facts["sequence_parallel"]:
        keys["sp"] = ""
    if facts["ep"] > 1:
        keys |= {"ep": facts["ep"], "etp": facts["etp"] if tp > 1 else None}
    if sharded:
        keys["zero"] = 3
        if dp is not None and replicas > 1:
            keys["hsdp"] = dp // replicas
        keys["reshard"] = {"always": "on", "never": "off"}.get(facts["reshard"])
    elif replicas > 1:
        facts.note("without sharding gradients are reduced by DDP in buckets of 100 MiB.")
    return keys


def _stages(facts: table.Facts, layers: int | None, what: str) -> dict[str, object]:
    if facts["pp"] == 1:
        return {}
    if facts["schedule_csv"]:
        facts.cannot_say(f"{facts.key('schedule_csv')}: a table of torchtitan's actions.")
    word = torchtitan_pipeline.OLD_SCHEDULES.get(facts["schedule"], facts["schedule"])
    schedule = torchtitan_pipeline.SCHEDULES.get(word)
    if schedule is None:
        facts.cannot_say(f"{facts.key('schedule')} = `{word}`: read as Interleaved1F1B.")
        schedule = "interleaved"
    vpp, layout = torchtitan_pipeline.read_stages(facts, schedule, layers, what)
    if why := torchtitan_pipeline.check_chunks(schedule, vpp):
        raise InputError(f"{what}: {facts.key('schedule')} is `{word}`; {why}.")
    keys: dict[str, object] = {"schedule": schedule}
    keys["vpp"] = vpp if schedule in ("interleaved", "breadth-first") else None
    keys["layout"] = None if layout is None else "+".join(str(count) for count in layout)
    return keys


def _batch(facts: table.Facts, keys: dict[str, object], what: str, known: Known) -> int | None:
    """Fills mb, accum and sync; gives the global batch."""
    local, dp = facts["local_batch"], keys["dp"]
    if "local_batch" not in facts:
        facts.note(f"{facts.key('local_batch')} is not said; torchtitan's is {local}.")
    assert dp is None or isinstance(dp, int)
    batch = facts["global_batch"] if facts["global_batch"] > 0 else None
    if batch is None and dp is not None:
        batch = dp * local
    steps = accumulation(batch, dp, local, what)  # forward and backward passes of a local batch
    if facts["pp"] == 1:
        keys |= {"mb": local, "accum": steps}
        if "zero" not in keys and steps not in (None, 1):
            keys["sync"] = "each"
        return batch
    if facts["microbatches"] is not None:
        mb = local // facts["microbatches"]
    else:
        mb = facts["microbatch"]
    if mb < 1 or local % mb:
        raise InputError(
            f"{what}: a local batch of {local} cannot be cut into equal micro-batches as "
            f"{facts.key('microbatches' if facts['microbatches'] else 'microbatch')} asks."
        )
    if steps is not None and steps > 1:
        facts.cannot_say(
            f"{facts.key('global_batch')}: {steps} pipelines one after the other, each drained; "
            "the plan has one of all their micro-batches."
        )
    keys |= {"mb": mb, "accum": (steps or 1) * local // mb}
    if keys.get("zero") == 3 and local > mb:
        # PipelineStage.backward_maybe_with_nosync keeps gradients until the last backward.
        keys["sync"] = "last"
    return batch


def _recompute(facts: table.Facts, what: str) -> dict[str, object]:
    mode, option = facts["ac_mode"], facts["ac_option"]
    if mode == "memory_budget":
        facts.cannot_say(f"{facts.key('ac_mode')} = `memory_budget`: what the compiler chooses.")
        return {}
    if mode != "selective":
        return {"recompute": mode}
    if option == "op":
        return {"recompute": "selective:op"}
    if not option.isdecimal() or not 1 <= int(option) <= 10**6:
        raise InputError(
            f"{what}: {facts.key('ac_option')} is `{option[:40]}`; it must be `op` or a number of "
            "layers."
        )
    if "ac_mode" not in facts:
        facts.note(f"no activation checkpointing is said; torchtitan recomputes every {option}.")
    return {"recompute": "full" if int(option) == 1 else f"every:{int(option)}"}


def _types(facts: table.Facts) -> tuple[str | None, dict[str, str]]:
    dtype = _DTYPES[facts["param_dtype"]]
    types = {"reduce_dtype": _DTYPES[facts["reduce_dtype"]]} if "reduce_dtype" in facts else {}
    if facts["weights"] == "bfloat16":  # parameters, and what the optimizer keeps of them
        types |= {"param_dtype": "bf16", "state_dtype": "bf16", "master": "off"}
    for converter in facts["converters"]:
        found = _CONVERTERS.get(converter)
        if found is None:
            facts.cannot_say(f"{facts.key('converters')}: `{converter[:60]}`.")
        else:
            dtype = found
    if facts["fp8_linear"]:
        dtype = "fp8"
    if dtype == "fp8" and facts["fp8_recipe"] != "tensorwise":
        dtype = "fp8-row"
        if facts["fp8_recipe"] != "rowwise":
            facts.cannot_say(f"{facts.key('fp8_recipe')}: weight gradients stay in 16 bits.")
    if facts["fp8_gather"]:
        if dtype == "fp8":
            types["gather_dtype"] = "fp8"
        else:
            facts.note(f"{facts.key('fp8_gather')} has no effect without the float8 converter.")
    return dtype, types


def write(plan: Plan, known: Known) -> str:
    """The job configuration that runs a plan, as TOML."""
    said = _write_mesh(plan, known)
    said |= _write_stages(plan, said["pp"], known)
    said |= _write_batch(plan, said, known)
    said |= _write_rest(plan, said, known)
    said |= _write_types(plan, known)
    plan.finish()
    remarks = "".join(f"# {remark}\n" for remark in plan.remarks)
    return remarks + to_toml(table.nest(table.load(NAME).write(said)))


def _write_mesh(plan: Plan, known: Known) -> dict[str, Any]:
    dp, tp, pp, cp = plan.take("dp"), plan.number("tp"), plan.number("pp"), plan.number("cp")
    if dp is None and known.gpus is not None:
        dp = str(data_parallel(known.gpus, tp * pp * cp, "the plan"))
    plan.only("cp_type", ("ring_zigzag",), "it has a balanced ring.", "cp_type=ring_zigzag")
    zero, hsdp, sp = plan.number("zero", 0), plan.take("hsdp"), plan.take("sp")
    if tp > 1 and sp is None:
        plan.refuse(f"tp={tp}", "its tensor parallelism is sequence-parallel.", f"tp={tp},sp")
    if zero in (1, 2):
        plan.refuse(f"zero={zero}", "it shards parameters, too.", "zero=3,reshard=off (or zero=0)")
    if zero == 0 and cp > 1:
        plan.refuse(f"zero=0,cp={cp}", "it shards parameters over cp.", "zero=3,hsdp=1")
    said: dict[str, Any] = {"tp": tp, "pp": pp, "cp": cp, "replicate": 1, "shard": -1}
    if zero == 0:
        if dp is None:
            plan.refuse("zero=0", "without dp its -1 means zero=3.", "the plan with dp said")
        said |= {"replicate": int(dp), "shard": 1}
    elif hsdp is not None:
        if dp is None:
            plan.refuse(f"hsdp={hsdp}", "it needs the replicas.", "the plan with dp said")
        said |= {"replicate": plan.replicas(int(dp), int(hsdp)), "shard": int(hsdp)}
    elif dp is not None:
        said["shard"] = int(dp)
    if zero == 3 and said["shard"] == 1 and cp == 1:
        plan.refuse("zero=3,hsdp=1", "groups of one rank shard nothing.", "zero=0")
    reshard = plan.take("reshard")
    if reshard not in (None, "on", "off"):
        plan.refuse(f"reshard={reshard}", "it reshards to the whole group or not.", "reshard=on")
    said["reshard"] = {None: "default", "on": "always", "off": "never"}[reshard]
    plan.only("prefetch", (), "FSDP2 gathers one unit ahead.", "prefetch=1")
    plan.only("unit", (), "each layer is wrapped by itself.", "unit=1")
    ep, etp = plan.number("ep"), plan.take("etp")
    if ep > 1:
        degree = int(etp) if etp is not None else tp
        if degree not in (1, tp):
            plan.refuse(f"etp={degree}", "experts are whole or cut as tp.", f"etp=1 or etp={tp}")
        said |= {"ep": ep, "etp": degree}
    elif etp is not None:
        plan.refuse(f"etp={etp}", "without ep experts are cut as all else.", f"etp={tp}")
    return said


def _write_stages(plan: Plan, pp: int, known: Known) -> dict[str, Any]:
    vpp, layout, schedule = plan.take("vpp"), plan.take("layout"), plan.take("schedule")
    if pp == 1:
        return {}
    schedule = schedule or ("1f1b" if vpp is None else "interleaved")
    words = {ours: word for word, ours in torchtitan_pipeline.SCHEDULES.items()}
    if schedule not in words:
        splits = schedule.startswith("zb") or "W" in schedule
        nearest = "schedule=zbv" if splits else "schedule=1f1b"
        plan.refuse(f"schedule={schedule}", "torchtitan has no name for it.", nearest)
    chunks = int(vpp) if vpp else 2 if schedule in ("zbv", "dualpipev") else 1
    if why := torchtitan_pipeline.check_chunks(schedule, chunks):
        plan.refuse(f"schedule={schedule}", f"{why}.", "another vpp")
    stages = torchtitan_pipeline.write_stages(pp, chunks, schedule, layout, known.layers)
    text = f"pp={pp},vpp={chunks},schedule={schedule}"
    return {"schedule": words[schedule], "_stages": text, **stages}


def _write_batch(plan: Plan, said: dict[str, Any], known: Known) -> dict[str, Any]:
    mb, accum = plan.number("mb"), plan.take("accum")
    dp = said["replicate"] * said["shard"] if said["shard"] > 0 else None
    steps = int(accum) if accum else accumulation(known.batch, dp, mb, "the plan") or 1
    # Pipelines reduce with the last backward; else nothing defers a reduction.
    own, zero = "last" if said["pp"] > 1 else "each", 0 if said["shard"] == 1 else 3
    plan.take_sync(own, zero, accumulates=steps > 1)
    if said["pp"] > 1:
        stages = said.pop("_stages")
        if steps > 1:  # else the batch may be open
            plan.run_micro_batches(stages, steps)
        return {"local_batch": mb * steps, "microbatch": mb}
    if dp is None and known.batch is None and steps > 1:
        plan.refuse(f"accum={steps}", "it has the global batch instead.", "the plan with dp said")
    batch = known.batch if dp is None else dp * mb * steps if steps > 1 else None
    return {"local_batch": mb, "global_batch": batch}


def _write_rest(plan: Plan, said: dict[str, Any], known: Known) -> dict[str, Any]:
    said = {**said, "compile": known.profile != "torchtitan-eager"}
    overlap = plan.words("overlap")
    if overlap is not None:
        if set(overlap) - {"grad", "param", "tp"}:
            plan.refuse(f"overlap={'+'.join(overlap)}", "it has none of it.", "grad+param+tp")
        data = [word for word in overlap if word != "tp"]
        if data != ["grad", "param"] and (said["shard"] != 1 or data != ["grad"]):
            nearest = "overlap=grad+param"
            plan.refuse(f"overlap={'+'.join(overlap) or 'none'}", "it overlaps both.", nearest)
        if "tp" in overlap:
            if not said["compile"]:
                plan.refuse("overlap=tp", "only compiled models have it.", "profile torchtitan")
            said["async_tp"] = True
    recompute = plan.take("recompute") or "none"
    if recompute == "selective" and (known.profile or "").startswith(NAME):
        recompute = "selective:op"  # what its profiles mean by the word
    mode, _, option = recompute.partition(":")
    if recompute in ("none", "full"):
        said["ac_mode"] = recompute
    elif mode == "every" or recompute == "selective:op":
        said |= {"ac_mode": "selective", "ac_option": option}
    else:
        nearest = (
            "recompute=full or every:N" if mode in ("full", "uniform") else "recompute=selective:op"
        )
        plan.refuse(f"recompute={recompute}", "it recomputes layers or by op.", nearest)
    offload = set((plan.take("offload") or "").split("+")) - {""}
    if offload not in (set(), {"optimizer", "param"}):
        nearest = "offload=optimizer+param"
        plan.refuse(f"offload={'+'.join(sorted(offload))}", "it moves both.", nearest)
    said["cpu_offload"] = bool(offload)
    bucket = plan.take("bucket")  # of DDP: replicate(bucket_cap_mb=100) in infra/parallelize.py
    if bucket is not None and (said["shard"] != 1 or bucket != "100MiB"):
        nearest = "the plan without `bucket`"
        plan.refuse(f"bucket={bucket}", "FSDP2 reduces layer by layer.", nearest)
    plan.only("attn", ("flash",), "it calls scaled_dot_product_attention.", "attn=flash")
    order = plan.take("order")
    if order is not None:
        plan.refuse(f"order={order}", "its mesh is pp, dp, cp, tp.", "order=tp-cp-ep-dp-pp")
    return said


def _write_types(plan: Plan, known: Known) -> dict[str, Any]:
    said: dict[str, Any] = {"seq": known.seq}
    said |= _write_model(plan, known)
    dtype = known.dtype or "bf16"
    if dtype not in ("bf16", "fp32", "fp8", "fp8-row", "mxfp8"):
        plan.refuse(f"dtype {dtype}", "it has bf16, fp32, fp8, fp8-row and mxfp8.", "bf16")
    said["param_dtype"] = "float32" if dtype == "fp32" else "bfloat16"
    if dtype in ("fp8", "fp8-row", "mxfp8"):
        said["converters"] = ["mx" if dtype == "mxfp8" else "float8"]
        said["fp8_recipe"] = "rowwise" if dtype == "fp8-row" else None
    types = dict(known.types)
    reduce = types.pop("reduce_dtype", "fp32")
    if reduce not in ("fp32", "bf16"):
        plan.refuse(f"reduce_dtype {reduce}", "it reduces in fp32 or bf16.", "bf16")
    said["reduce_dtype"] = {"fp32": "float32", "bf16": "bfloat16"}[reduce]
    take_optimizer(plan, types, {})
    gather = types.pop("gather_dtype", None)
    if gather == "fp8" and dtype == "fp8":
        said["fp8_gather"] = True
    elif gather not in (None, "bf16"):
        plan.refuse(f"gather_dtype {gather}", "float8 gathers need dtype fp8.", "bf16")
    low = {"param_dtype": "bf16", "state_dtype": "bf16", "master": "off"}
    if all(types.get(option) == value for option, value in low.items()):
        said["weights"] = "bfloat16"
        types = {option: value for option, value in types.items() if option not in low}
    for option, value in types.items():
        plan.refuse(f"{option} {value}", "it has no setting for that.", "its default")
    return said
