"""What kernels of a profiled run are, by their names."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from plancast import documents

# Of kernels that no word tells.
OTHER = "other"
_COLLECTIVES = (
    ("all_gather", r"all_?gather"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_reduce", r"all_?reduce"),
    ("all_to_all", r"all_?to_?all"),
    ("broadcast", r"broadcast"),
    ("send_recv", r"send|recv|isend|irecv|p2p"),
)


@cache
def _classes() -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    text = resources.files("plancast.run_traces").joinpath("kernels.yaml").read_text("utf-8")
    known = documents.parse_yaml(text, "kernels.yaml")
    return tuple(
        (name, tuple(tuple(word.split("+")) for word in words)) for name, words in known.items()
    )


@cache
def kernel_class(name: str) -> str:
    """The class of a kernel.

    >>> kernel_class("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN")
    'product'
    >>> kernel_class("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>")
    'attention.bwd'
    >>> kernel_class("triton_poi_fused_mul_silu_3"), kernel_class("my_kernel")
    ('elementwise', 'other')
    """
    lower = name.lower()
    for kind, words in _classes():
        if any(all(part in lower for part in parts) for parts in words):
            return kind
    return OTHER


@cache
def collective_of(name: str) -> str:
    """The collective that a kernel, or c10d's `Collective name`, is; empty: none that is known.

    >>> collective_of("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'all_gather'
    >>> collective_of("_reduce_scatter_base"), collective_of("ncclDevKernel_SendRecv")
    ('reduce_scatter', 'send_recv')
    """
    for kind, pattern in _COLLECTIVES:
        if re.search(pattern, name, re.IGNORECASE):
            return kind
    return ""
