"""DeepSpeed as accelerate's configuration says it, in DeepSpeed's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plancast.errors import InputError

# commands/config/cluster.py and utils/dataclasses.py (DeepSpeedPlugin): the stage is 2
# if nothing is said.
_STAGE = 2
_NO_EFFECT = (
    "zero3_init_flag", "zero3_save_16bit_model", "deepspeed_multinode_launcher",
    "deepspeed_hostfile", "deepspeed_inclusion_filter", "deepspeed_exclusion_filter",
    "offload_optimizer_nvme_path", "offload_param_nvme_path", "deepspeed_moe_layer_cls_names",
)  # fmt: skip


def is_accelerate(document: Mapping[str, Any]) -> bool:
    """Whether it is accelerate's configuration of a run with DeepSpeed."""
    return document.get("distributed_type") == "DEEPSPEED" or "deepspeed_config" in document


def translate(document: Mapping[str, Any], what: str) -> tuple[dict[str, Any], int | None]:
    """DeepSpeed's configuration, and the number of GPUs.

    >>> translate({"deepspeed_config": {"zero_stage": 3}, "mixed_precision": "bf16"}, "x")[0]
    {'zero_optimization': {'stage': 3}, 'bf16': {'enabled': True}}
    """
    said = document.get("deepspeed_config") or {}
    if not isinstance(said, Mapping):
        raise InputError(f"{what}: `deepspeed_config` must hold `key: value` pairs.")
    if said.get("deepspeed_config_file"):
        raise InputError(
            f"{what} leaves everything to `{str(said['deepspeed_config_file'])[:200]}`. "
            "Read that file."
        )
    zero: dict[str, Any] = {"stage": said.get("zero_stage", _STAGE)}
    config: dict[str, Any] = {"zero_optimization": zero}
    for name, value in said.items():
        if name in ("offload_optimizer_device", "offload_param_device"):
            zero[name.removesuffix("_device")] = {"device": value}
        elif name in ("gradient_accumulation_steps", "gradient_clipping"):
            config[name] = value
        elif name not in _NO_EFFECT and name != "zero_stage":
            config[name] = value  # the table of DeepSpeed knows it or tells
    precision = document.get("mixed_precision")
    if precision in ("bf16", "fp16"):
        config[precision] = {"enabled": True}
    gpus = document.get("num_processes")
    if gpus is not None and (type(gpus) is not int or not 1 <= gpus <= 10**9):
        raise InputError(f"{what}: `num_processes` is `{str(gpus)[:40]}`; it must be a number.")
    return config, gpus
