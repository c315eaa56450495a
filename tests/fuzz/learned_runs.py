"""Learning from runs and going by it, for command lines that others never put together."""

from __future__ import annotations

import json

from plancast.learned import Evidence, Learned

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
            "-m": ("small.yaml",),
            "-c": ("dgx-h100:1x2",),
            "-s": ("mb=1", "dp=3"),
            "--json": ("",),
        },
    ),
}


def seed() -> str:
    """A file of `plancast learn`."""
    shares = {"H100-SXM-80GB/gemm/bf16": (0.6, 0.2), "software/megatron-core": (1.0, 0.06)}
    runs = [Evidence(f"run {i}", "H100-SXM-80GB", 0.02 * i, shares) for i in range(3)]
    return json.dumps(Learned(tuple(runs)).to_dict())
