"""Traces in the dialect of PyTorch's profiler, made from the timelines of forecasts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plancast as pc
from plancast.run_traces.forecasts import forecast_iteration
from plancast.run_traces.work import Iteration, Kernel

# A name of each class as libraries write it.
NAMES = {
    "product": "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN",
    "attention": "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
    "attention.bwd": "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>",
    "convolution": "sm80_xmma_fprop_implicit_gemm_bf16_nhwc",
    "norm": "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>",
    "elementwise": "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>",
    "copy": "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(...)>",
    "optimizer": "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Adam>",
    "loss": "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d",
}
COLLECTIVES = {
    "all_gather": ("ncclDevKernel_AllGather_RING_LL", "_allgather_base"),
    "reduce_scatter": ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "_reduce_scatter_base"),
    "all_reduce": ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "allreduce"),
    "all_to_all": ("ncclDevKernel_SendRecv", "all_to_all"),
    "send_recv": ("ncclDevKernel_SendRecv", "send"),
}
US = 1e6


def changed(iteration: Iteration, times: Callable[[Kernel], float]) -> Iteration:
    """The iteration with each kernel so many times as long; kernels that follow move along."""
    begins = [k.start_s for k in iteration.kernels if not k.is_collective]
    added: list[float] = []
    total = 0.0
    for kernel in (k for k in iteration.kernels if not k.is_collective):
        added.append(total)
        total += (times(kernel) - 1) * kernel.seconds

    def moved(moment: float) -> float:
        before = sum(1 for begin in begins if begin < moment - 1e-12)
        return moment + (added[before] if before < len(added) else total)

    kernels, place = [], 0
    for kernel in iteration.kernels:
        if kernel.is_collective:
            start = moved(kernel.start_s)
        else:
            start, place = kernel.start_s + added[place], place + 1
        end = start + times(kernel) * kernel.seconds
        kernels.append(
            Kernel(
                kernel.kind,
                kernel.name,
                start,
                end,
                kernel.is_collective,
                kernel.size,
                kernel.ranks,
            )
        )
    last = max((k.end_s for k in kernels), default=0.0)
    return Iteration(max(iteration.seconds + total, last), tuple(kernels))


def write_kineto(
    path: Path,
    forecast: pc.Forecast,
    *,
    steps: int = 3,
    rank: int = 0,
    times: Callable[[Kernel], float] = lambda kernel: 1.0,
    says_sizes: bool = True,
) -> Path:
    """A trace of `steps` iterations (and the beginning of one more) of a run as forecast."""
    iteration = changed(forecast_iteration(forecast, rank), times)
    events: list[dict[str, Any]] = [
        {
            "name": "process_name",
            "ph": "M",
            "ts": 0.0,
            "pid": 0,
            "tid": 0,
            "args": {"name": "python"},
        },
    ]
    correlation = 0
    for step in range(steps + 1):
        offset = 1.0 + step * iteration.seconds
        events.append(
            _span(
                f"ProfilerStep#{7 + step}",
                "user_annotation",
                77,
                1,
                offset - 1e-4,
                iteration.seconds,
                {"External id": 9000 + step},
            )
        )
        for kernel in iteration.kernels:
            correlation += 1
            events.append(
                _span(
                    "cudaLaunchKernel",
                    "cuda_runtime",
                    77,
                    1,
                    offset - 5e-5 + 1e-9 * correlation,
                    1e-6,
                    {"External id": correlation, "correlation": correlation},
                )
            )
            args = {
                "External id": correlation,
                "device": 0,
                "context": 1,
                "correlation": correlation,
            }
            name = NAMES.get(kernel.kind, "")
            stream = 7
            if kernel.is_collective:
                name, said = COLLECTIVES[kernel.kind]
                stream = 23
                if says_sizes:
                    args |= {
                        "Collective name": said,
                        "In msg nelems": (kernel.size or 0) // 4,
                        "Out msg nelems": (kernel.size or 0) // 4 // max(kernel.ranks, 1),
                        "Group size": kernel.ranks,
                        "dtype": "Float",
                    }
            events.append(
                _span(
                    name,
                    "kernel",
                    0,
                    stream,
                    offset + kernel.start_s,
                    kernel.seconds,
                    {**args, "stream": stream},
                )
            )
    body = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": forecast.devices},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": events,
    }
    path.write_text(json.dumps(body))
    return path


def _span(
    name: str, category: str, pid: int, tid: int, start: float, seconds: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": round(start * US, 3),
        "dur": round(seconds * US, 3),
        "args": args,
    }
