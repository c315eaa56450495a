"""Reads the performance recipes of Megatron-Bridge into python/plancast/recipes/*.csv.

    tools/recipes/bridge.py CHECKOUT... > python/plancast/recipes/megatron_bridge.csv

Each CHECKOUT is a directory named after a release (`0.4.0`) with `scripts/performance` and
`src/megatron/bridge/perf_recipes` of its tag. Their Python is run, with stand-ins for torch and
Megatron; nothing of it is copied. Recipes of models that are not shipped are left out.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stand_ins

_MODELS = {
    "deepseek_v3": "deepseek-v3",
    "gpt_oss_120b": "gpt-oss-120b",
    "kimi_k2": "kimi-k2",
    "llama31_405b": "llama3.1-405b",
    "llama3_70b": "llama3-70b",
    "llama3_8b": "llama3-8b",
    "qwen3_235b_a22b": "qwen3-235b-a22b",
    "qwen3_30b_a3b": "qwen3-30b-a3b",
}
_DTYPES = {"bf16": "bf16", "fp8_cs": "fp8", "fp8_sc": "fp8-block", "fp8_mx": "mxfp8",
           "nvfp4": "nvfp4"}  # fmt: skip
_GPUS = ("h100", "b200", "b300", "gb200", "gb300")
# Tokens of a sequence where the recipe leaves them to the model's: src/megatron/bridge/recipes.
_SEQ = {"pretrain": {"llama": 8192, "other": 4096}, "sft": {"llama": 4096, "other": 4096}}
# Models whose recipes overlap tensor parallelism unless they say otherwise, by the recipes of
# src/megatron/bridge/recipes that they start from; DeepSeek's and Kimi's do not.
_TP_OVERLAPS = ("llama", "gpt-oss", "qwen")
# How layers are dealt to that many virtual stages, DeepSeek-V3's module of multi-token prediction
# with the last: set_deepseek_v3_pipeline_model_parallel_layout, _get_kimi_k2_pipeline_layout, and
# pp_layout of H100's.
_LAYOUTS = {
    "deepseek-v3": {4: "16x3+14", 8: "8x7+6", 16: "4x15+2", 32: "1+2x30+1"},
    "kimi-k2": {4: "16x3+13", 8: "8x7+5", 16: "4x15+1", 32: "1+2x30+0"},
}
# Trained with Muon, which gathers weights only after its step: ddp.overlap_param_gather of
# src/megatron/bridge/recipes.
_MUON = ("kimi-k2",)
FIELDS = ("versions", "model", "task", "gpu", "dtype", "variant", "gpus", "batch", "seq", "plan",
          "cuda_graphs", "dispatcher", "fused", "attention")  # fmt: skip


def legacy(checkout: Path) -> Iterator[dict[str, Any]]:
    """Recipes of 0.2 to 0.5: a table of sizes, and a function for each model and GPU."""
    from utils.utils import WorkloadBaseConfig

    kinds = "|".join(_DTYPES).upper()
    gpus = "|".join(_GPUS).upper()
    new = re.compile(rf"(.+?)_(PRETRAIN|SFT)_CONFIG_({gpus})_({kinds})(?:_(.+))?")
    old = re.compile(rf"(.+?)_({gpus})_(?:(SFT)_)?({kinds})_BASE_CONFIG")
    for folder in sorted((checkout / "scripts/performance/configs").iterdir()):
        sizes: dict[str, Any] = {}
        makers: dict[str, Any] = {}
        for path in sorted(folder.glob("*.py")):
            if not re.search(r"workload_base_configs|_llm_(pretrain|finetune)", path.name):
                continue
            module = vars(importlib.import_module(f"configs.{folder.name}.{path.stem}"))
            sizes |= {k: v for k, v in module.items() if isinstance(v, WorkloadBaseConfig)}
            makers |= {k: v for k, v in module.items() if inspect.isfunction(v)}
        for name, size in sizes.items():
            if found := new.fullmatch(name):
                model, task, gpu, dtype, variant = found.groups()
            elif found := old.fullmatch(name):
                model, gpu, task, dtype = found.groups()
                task, variant = task or "PRETRAIN", None
            else:
                continue
            model, task, gpu, dtype = (word.lower() for word in (model, task, gpu, dtype))
            if model not in _MODELS:
                continue
            make = (
                makers.get(f"{model}_{task}_config_{gpu}")
                or makers.get(f"{model}_{gpu}_{task}_config")
                or makers[f"{model}_{gpu}_config"]
            )
            options = {"precision": dtype}
            if "config_variant" in inspect.signature(make).parameters:
                options["config_variant"] = (variant or "v1").lower()
            yield _line(make(**options), model, task, gpu, dtype, variant or "", size.num_gpus)


def current(checkout: Path) -> Iterator[dict[str, Any]]:
    """Recipes since 0.6: a function each, with GPUs and type in its name."""
    names = re.compile(
        rf"(.+?)_(pretrain|sft)_(\d+)gpu_({'|'.join(_GPUS)})_([a-z0-9]+?)_(.*)config"
    )
    kinds = {kind.replace("_", ""): kind for kind in _DTYPES}
    for path in sorted((checkout / "src/megatron/bridge/perf_recipes").glob("*/*/*.py")):
        if path.stem == "__init__" or path.parent.name not in _GPUS:
            continue
        module = ".".join(["megatron.bridge.perf_recipes", *path.parts[-3:-1], path.stem])
        for name, make in vars(importlib.import_module(module)).items():
            found = names.fullmatch(name)
            if not found or found[1] not in _MODELS or found[5] not in kinds:
                continue
            model, task, gpus, gpu, dtype, variant = found.groups()
            if variant not in ("", "large_scale_"):  # experiments of single features
                continue
            config = make()
            if config.said("train.global_batch_size") is None:  # its sizes are the model's recipe's
                continue
            size = int(gpus)
            yield _line(config, model, task, gpu, kinds[dtype], variant.rstrip("_"), size)


def _line(
    config: Any, name: str, task: str, gpu: str, dtype: str, variant: str, gpus: int
) -> dict[str, Any]:
    model, said = _MODELS[name], config.said
    dense = model.startswith("llama")
    graphs = "full-iteration" if stand_ins.captures_iteration(config.model) else ""
    if not graphs and said("model.cuda_graph_impl") in ("local", "transformer_engine"):
        graphs = "+".join(said("model.cuda_graph_scope"))
    dispatcher = "" if dense else _dispatcher(config, model)
    return {
        "model": model,
        "task": task,
        "gpu": gpu,
        "dtype": _DTYPES[dtype],
        "variant": variant.lower().replace("_", "-"),
        "gpus": gpus,
        "batch": said("train.global_batch_size"),
        "seq": said("model.seq_length") or _SEQ[task]["llama" if dense else "other"],
        "plan": _plan(config, model, gpus, dtype),
        "cuda_graphs": graphs,
        "dispatcher": dispatcher,
        "attention": _attention(config, dtype),
        "fused": "yes" if dispatcher and said("model.use_transformer_engine_op_fuser") else "",
    }


def _attention(config: Any, dtype: str) -> str:
    """The type of attention where it is that of 8-bit products; empty: 16 bits."""
    quantized = config.said("mixed_precision.fp8_dot_product_attention")
    return _DTYPES[dtype] if quantized and dtype in ("fp8_cs", "fp8_mx") else ""


def _dispatcher(config: Any, model: str) -> str:
    """`alltoall` or the flex dispatcher's backend, with what the model's own recipe has."""
    passed = config.said("moe_flex_dispatcher_backend")  # to the model's recipe, in 0.2
    if passed:
        return passed
    kind = config.said("model.moe_token_dispatcher_type")
    if not config.says("model.moe_flex_dispatcher_backend") and kind is None:
        # As in the model's own recipe: src/megatron/bridge/recipes of 0.6.
        return "hybridep" if model == "deepseek-v3" else "alltoall"
    backend = config.said("model.moe_flex_dispatcher_backend")
    return backend if kind != "alltoall" and backend else "alltoall"


def _plan(config: Any, model: str, gpus: int, dtype: str) -> str:
    """The short form, without dp."""
    said = config.said
    tp, pp, cp = (said(f"model.{kind}_parallel_size") or 1
                  for kind in ("tensor_model", "pipeline_model", "context"))  # fmt: skip
    vpp = said("model.virtual_pipeline_model_parallel_size") or 1
    ep = said("model.expert_model_parallel_size") or 1
    sizes = {"tp": tp, "pp": pp, "vpp": vpp, "cp": cp, "ep": ep}
    parts = [f"{key}={size}" for key, size in sizes.items() if size > 1]
    if tp > 1:
        parts.insert(1, "sp")
    if tp > 1 and ep > 1:
        parts.append(f"etp={said('model.expert_tensor_parallel_size') or 1}")
    layout = _LAYOUTS.get(model, {}).get(pp * vpp)
    if layout:
        parts.append(f"layout={layout}")
    parts.append("zero=3" if said("ddp.use_megatron_fsdp") else "zero=1")
    parts.append(f"mb={said('train.micro_batch_size')}")
    modules = said("model.recompute_modules")
    if said("model.recompute_granularity") == "full":
        parts.append(f"recompute=full:{said('model.recompute_num_layers')}")
    elif said("model.recompute_granularity") == "selective" and modules != []:
        parts.append("recompute=selective" + (":" + "+".join(sorted(modules)) if modules else ""))
    if said("model.cpu_offloading"):
        parts.append(f"offload=activations:{said('model.cpu_offloading_num_layers')}")
    dp = gpus // (tp * pp * cp)
    overlap = _overlap(config, model, dtype, tp, dp) or ("none" if dp > 1 else "")
    return ",".join([*parts, f"overlap={overlap}"] if overlap else parts)


def _overlap(config: Any, model: str, dtype: str, tp: int, dp: int) -> str:
    """By training/comm_overlap.py: gradients and parameters unless the recipe says otherwise."""
    said = config.said
    parts = [kind for kind, field in (("grad", "grad_reduce"), ("param", "param_gather"))
             if dp > 1 and said(f"comm_overlap.overlap_{field}") is not False
             and (kind == "grad" or model not in _MUON)]  # fmt: skip
    overlaps_tp = said("comm_overlap.tp_comm_overlap")
    if overlaps_tp is None:
        overlaps_tp = said("comm_overlap_config.tp_comm_overlap")
    if overlaps_tp is None:
        overlaps_tp = model.startswith(_TP_OVERLAPS) and dtype != "nvfp4"
    if tp > 1 and overlaps_tp:
        parts.append("tp")
    if said("comm_overlap.overlap_moe_expert_parallel_comm"):
        parts.append("ep")
    return "+".join(parts)


def _runs(line: dict[str, str]) -> bool:
    """Whether the recipe says its sizes, and its GPUs hold a whole group of experts."""
    sizes = dict(re.findall(r"(\w+)=(\d+)", line["plan"]))
    tp, pp, cp, ep = (int(sizes.get(key, 1)) for key in ("tp", "pp", "cp", "ep"))
    of_stage = int(line["gpus"]) // pp
    return "mb" in sizes and of_stage % (tp * cp) == 0 and of_stage % ep == 0


def main(checkouts: list[str]) -> None:
    """Prints the table; with one checkout and `--one`, its lines alone."""
    if checkouts[0] == "--one":
        checkout = Path(checkouts[1]).resolve()
        stand_ins.install(checkout)
        read = legacy if (checkout / "scripts/performance/configs").is_dir() else current
        lines = {tuple(line[name] for name in FIELDS[1:]) for line in read(checkout)}
        csv.writer(sys.stdout, lineterminator="\n").writerows(sorted(lines, key=str))
        return
    versions: dict[tuple[str, ...], list[str]] = {}
    for checkout in checkouts:
        one = subprocess.run([sys.executable, __file__, "--one", checkout], check=True,
                             capture_output=True, text=True)  # fmt: skip
        for line in csv.reader(one.stdout.splitlines()):
            if not _runs(dict(zip(FIELDS[1:], line, strict=True))):
                print(f"left out of {checkout}: {','.join(line)}", file=sys.stderr)
                continue
            versions.setdefault(tuple(line), []).append(Path(checkout).name)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(FIELDS)
    for line, found in sorted(versions.items()):
        writer.writerow([" ".join(found), *line])


if __name__ == "__main__":
    main(sys.argv[1:])
