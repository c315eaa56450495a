"""Types in Megatron's arguments, in both directions."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.frameworks import table
from plancast.frameworks.known import Known
from plancast.frameworks.optimizers import read_optimizer, take_optimizer
from plancast.frameworks.plan import Plan

_OPTIMIZERS = {"adam": "adam", "sgd": "sgd", "muon": "muon", "dist_muon": "muon"}


def read_types(facts: table.Facts, what: str) -> tuple[str | None, dict[str, str]]:
    """The type of products, and the others that are said."""
    if facts["bf16"] and facts["fp16"]:
        raise InputError(f"{what} says `--bf16` and `--fp16` both. Keep one.")
    dtype = "bf16" if facts["bf16"] else "fp16" if facts["fp16"] else "fp32"
    types: dict[str, str] = {}
    if facts["bf16"] and (facts["grads_bf16"] or facts["main_grads"] == "bf16"):
        types |= {"grad_dtype": "bf16", "reduce_dtype": "bf16"}
    if facts["fp16"] and facts["grads_fp32"]:
        types |= {"grad_dtype": "fp32", "reduce_dtype": "fp32"}
    states = [facts[name] or "fp32" for name in ("exp_avg", "exp_avg_sq")]
    if states != ["fp32", "fp32"]:
        types["state_dtype"] = "+".join(dict.fromkeys(states))
    types |= read_optimizer(facts, _OPTIMIZERS, momentum=facts["momentum"] > 0)
    if facts["main_grads"] == "bf16":
        types["main_grad_dtype"] = "bf16"
    if facts["main_params"] == "fp16":
        types["master"] = "fp16"
    if facts["fp8"]:
        dtype = {"mxfp8": "mxfp8", "blockwise": "fp8-block"}.get(facts["fp8_recipe"], "fp8")
    if facts["fp4"]:
        dtype = "nvfp4"
    if facts["fp8_gather"]:
        types["gather_dtype"] = "fp8"
    if facts["fp8_attention"] and facts["fp8"]:
        if dtype == "fp8-block":
            facts.cannot_say(f"{facts.key('fp8_attention')}: attention with blockwise scales.")
        else:
            types["attention_dtype"] = dtype
    elif facts["fp8_attention"]:
        facts.note(f"{facts.key('fp8_attention')} has no effect without `--fp8-format`.")
    return dtype, types


def gradient_bytes(dtype: str | None, types: dict[str, str]) -> int:
    """Bytes of an element of the gradient buffer."""
    own = "fp16" if dtype == "fp16" else "fp32"
    return 4 if types.get("grad_dtype", own) == "fp32" else 2


def write_types(plan: Plan, known: Known) -> dict[str, Any]:
    """The facts of the types that a run has."""
    dtype, types = known.dtype or "bf16", dict(known.types)
    said: dict[str, Any] = {"bf16": dtype not in ("fp16", "fp32", "tf32"), "fp16": dtype == "fp16",
                            "grads_fp32": False}  # fmt: skip
    recipes = {"fp8": "tensorwise", "fp8-block": "blockwise", "mxfp8": "mxfp8"}
    if dtype in recipes:
        said |= {"fp8": "hybrid", "fp8_recipe": recipes[dtype]}
    elif dtype == "nvfp4":
        said["fp4"] = "e2m1"
    elif dtype not in ("bf16", "fp16", "fp32"):
        plan.refuse(f"dtype {dtype}", "it has no such products.", "bf16, or fp8")
    own = "fp16" if dtype == "fp16" else "fp32"
    grads = {types.pop(name) for name in ("grad_dtype", "reduce_dtype") if name in types} or {own}
    if grads == {"bf16"} and said["bf16"]:
        said["grads_bf16"] = True
    elif grads == {"fp32"} and dtype == "fp16":
        said["grads_fp32"] = True
    elif grads != {own}:
        words = " and ".join(sorted(grads))
        plan.refuse(f"gradients in {words}", f"with {dtype} they cannot be.", own)
    called = {"sgd": "sgd", "sgd-momentum": "sgd", "muon": "muon"}
    optimizer = take_optimizer(plan, types, called)
    if optimizer is not None:
        said["optimizer"] = optimizer
        said["momentum"] = 0.0 if known.types["optimizer_type"] == "sgd" else None
    state, gather = types.pop("state_dtype", "fp32"), types.pop("gather_dtype", None)
    moments = (state.split("+") * 2)[:2]
    if set(moments) - {"fp32", "fp16", "bf16", "fp8"}:
        plan.refuse(f"state_dtype {state}", "it has fp32, fp16, bf16 and fp8.", "fp8")
    if state != "fp32":
        said |= {"precision_aware": True, "exp_avg": moments[0], "exp_avg_sq": moments[1]}
    if types.pop("main_grad_dtype", "fp32") == "bf16":
        said |= {"precision_aware": True, "main_grads": "bf16"}
    attention = types.pop("attention_dtype", None)
    if attention in ("fp8", "mxfp8"):
        if attention != dtype:
            why = "attention runs in the type of 8-bit products."
            plan.refuse(f"attention_dtype {attention}", why, "bf16, or that dtype")
        said["fp8_attention"] = True
    master = types.pop("master", "on")
    if master not in ("on", "fp32", "fp16"):
        plan.refuse(f"master {master}", "it keeps one in fp32 or fp16.", "fp16")
    if master == "fp16":
        said |= {"precision_aware": True, "main_params": "fp16"}
    if gather == "fp8" and dtype in recipes:
        said["fp8_gather"] = True
    elif gather not in (None, "bf16", "fp16"):
        plan.refuse(f"gather_dtype {gather}", "fp8 gathers need dtype fp8.", "bf16")
    for option, value in types.items():
        plan.refuse(f"{option} {value}", "it has no setting for that.", "its default")
    return said
