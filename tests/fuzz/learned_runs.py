"""Learning from runs and going by it, for command lines that others never put together."""

from __future__ import annotations

import json

from plancast.learned import Evidence, Learned
from plancast.learned_memory import MemoryEvidence

# Of forecasts.
OPTIONS = {"--learned": ("ours.learned", "ours.learned", "kernels.db"), "--no-prior": ("",)}
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "learn": (
        ("truth.csv",),
        (),
        {
            "--merge": ("ours.learned", "kernels.db", "absent"),
            "-o": ("new.learned", "nowhere/new.learned", "/dev/full", ""),
            "--log": ("log.txt", "absent"),
            "--trace": ("run.json", "nccl.json", "kineto.json", "absent"),
            "-m": ("small.yaml",),
            "-c": ("dgx-h100:1x2",),
            "-s": ("mb=1", "dp=3"),
            "--json": ("",),
        },
    ),
}


def trace() -> str:
    """A trace of PyTorch's profiler, of two steps."""
    spans = [
        {"cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": 1e4 * i, "dur": 1e4}
        for i in range(3)
    ]
    spans += [
        {"cat": "kernel", "name": name, "ts": 1e4 * i + 10 * j, "dur": 9.5, "args": args}
        for i in range(3)
        for j, (name, args) in enumerate(
            (
                ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN", {"correlation": 5}),
                (
                    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                    {"Collective name": "allreduce", "In msg nelems": 64, "Group size": 2},
                ),
            )
        )
    ]
    events = [{"ph": "X", "pid": 0, "tid": 7, **span} for span in spans]
    return json.dumps({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": events})


def seed() -> str:
    """A file of `plancast learn`."""
    shares = {"H100-SXM-80GB/gemm/bf16": (0.6, 0.2), "software/megatron-core": (1.0, 0.06)}
    runs = [Evidence(f"run {i}", "H100-SXM-80GB", 0.02 * i, shares) for i in range(3)]
    memory = MemoryEvidence("run 3", "H100-SXM-80GB", "megatron-core", "ran out", 0.01, 8e10)
    return json.dumps(Learned(tuple(runs), memory=(memory,)).to_dict())
