"""Host and device time of one Megatron-Core layer on one GPU (docs/host_time.md).

    python tools/measure/megatron_layer.py --experts 8 --fp8 tensorwise

Needs torch, transformer_engine and megatron-core, which Plancast does not install. With few tokens
the host alone decides how long a layer takes; with many, the device column is what kernels take.
One line of JSON is printed for each pass: seconds of a layer, launches, kernels by name.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

WARM_UP, RUNS = 4, 12


def make_block(options: argparse.Namespace) -> tuple[Any, Any]:
    """A block of layers with the attention of Qwen3-30B, and its rotary embedding."""
    from megatron.core import parallel_state
    from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
    from megatron.core.models.gpt.gpt_layer_specs import (
        get_gpt_layer_with_transformer_engine_spec,
    )
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from megatron.core.transformer.transformer_block import TransformerBlock
    from megatron.core.transformer.transformer_config import TransformerConfig

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    model_parallel_cuda_manual_seed(1)
    experts: dict[str, Any] = {}
    if options.experts:
        experts = {
            "num_moe_experts": options.experts,
            "moe_router_topk": min(8, options.experts),
            "moe_ffn_hidden_size": options.expert_ffn,
            "moe_grouped_gemm": True,
            "moe_token_dispatcher_type": "alltoall",
            "moe_permute_fusion": True,
            "moe_router_fusion": True,
            "moe_router_load_balancing_type": "aux_loss",
            "moe_aux_loss_coeff": 1e-3,
            "moe_router_dtype": "fp32",
            "moe_router_force_load_balancing": True,
        }
    if options.fp8:
        experts.update(fp8="hybrid", fp8_recipe=options.fp8)
    config = TransformerConfig(
        num_layers=options.layers, hidden_size=options.hidden, num_attention_heads=32,
        num_query_groups=4, kv_channels=128, ffn_hidden_size=3 * options.hidden, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, hidden_dropout=0.0,
        attention_dropout=0.0, normalization="RMSNorm", gated_linear_unit=True,
        activation_func=torch.nn.functional.silu, add_bias_linear=False,
        bias_activation_fusion=True, bias_dropout_fusion=True, apply_rope_fusion=True,
        gradient_accumulation_fusion=True, qk_layernorm=True, **experts,
    )  # fmt: skip
    spec = get_gpt_layer_with_transformer_engine_spec(
        num_experts=config.num_moe_experts,
        moe_grouped_gemm=config.moe_grouped_gemm,
        qk_layernorm=config.qk_layernorm,
    )
    block = TransformerBlock(config, spec, post_layer_norm=False).cuda()
    for parameter in block.parameters():
        # As Megatron's buffers: products add to main_grad, and autograd keeps nothing.
        parameter.main_grad = torch.zeros(parameter.shape, device="cuda")
        parameter.grad_added_to_main_grad = False
        parameter.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
    return block, RotaryEmbedding(config.kv_channels, 1.0)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the host until `work` returns, the device idle before."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def kernels_of(work: Callable[[], Any], layers: int) -> dict[str, Any]:
    """What `work` launches, per layer."""
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        work()
        torch.cuda.synchronize()
    names: dict[str, list[float]] = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            entry = names.setdefault(event.name[:100], [0, 0.0])
            entry[0] += 1 / layers
            entry[1] += event.time_range.elapsed_us() * 1e-6 / layers
    return {
        "launches": sum(count for count, _ in names.values()),
        "device_s": sum(seconds for _, seconds in names.values()),
        "kernels": dict(sorted(names.items(), key=lambda item: -item[1][1])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=64, help="64: the host decides")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--experts", type=int, default=0, help="local experts; 0: a dense layer")
    parser.add_argument("--expert-ffn", type=int, default=768)
    parser.add_argument("--fp8", choices=["tensorwise", "delayed", "blockwise", "mxfp8"])
    options = parser.parse_args()
    block, rotary = make_block(options)
    shape = (options.tokens, 1, options.hidden)
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    positions, gradient = rotary(options.tokens), torch.randn_like(x)

    def forward() -> torch.Tensor:
        y = block(x, attention_mask=None, rotary_pos_emb=positions)
        return y[0] if isinstance(y, tuple) else y

    seconds: dict[str, list[float]] = {"forward": [], "backward": []}
    for run in range(WARM_UP + RUNS):
        ahead, y = timed(forward)
        back, _ = timed(lambda y=y: y.backward(gradient))
        if run >= WARM_UP:
            seconds["forward"].append(ahead)
            seconds["backward"].append(back)
    y = forward()
    work = {"forward": forward, "backward": lambda: y.backward(gradient)}
    for name, passes in seconds.items():
        host = statistics.median(passes) / options.layers
        found = kernels_of(work[name], options.layers)
        print(json.dumps({"pass": name, "host_s": host, **found}))


if __name__ == "__main__":
    main()
