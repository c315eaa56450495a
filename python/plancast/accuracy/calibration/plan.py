"""Which measured rows stand for which coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .attention_rows import CUDNN, CUDNN_SOURCE, cudnn_rows
from .rows import ALIASES, Gpu, Rows


@dataclass(frozen=True)
class Selection:
    """Rows of one source for one GPU."""

    gpu: Gpu
    dtype: str  # of the coefficients
    peak: float
    rows: Rows
    data: str  # for people: file and source
    kernel: str = ""  # of attention: whose the rows are

    @property
    def own_only(self) -> bool:
        """Whether the rows ran on other units than the type's own, or were all published."""
        return "pseudo" in self.data or self.data.startswith(CUDNN.name)


# GEMM: per coefficient type, the first (source, dtype of the rows) that a GPU
# has enough rows of.
GEMM_CHOICES = {
    "bf16": [
        ("aic", "bf16"),
        ("vidur", "fp16"),
        ("deepbench", "fp16(mixed fp32 acc)"),
        ("deepbench", "fp16(pseudo,fp32 math)"),
        ("llmservingsim", "fp16"),
        ("llmservingsim", "bf16"),
        # What a tuner found fastest for each shape: a library may choose slower ones.
        ("aiter", "bf16"),
    ],
    "fp8": [("aic", "fp8")],
    "fp8-block": [("aic", "fp8_block"), ("aiter", "fp8_block")],
    "nvfp4": [("aic", "nvfp4")],
    "fp32": [("neusight", "fp32"), ("deepbench", "fp32")],
}
# Products timed inside a training stack (Transformer Engine), by layout.
TRAINING_SOURCE = "simumax"
# Nominal 16-bit TFLOP/s per watt of a GPU whose products take no longer in steady loops than
# alone: A100 SXM, 10,000 launches before each timing, 1.00 to 1.01 of what the tables say of
# products of 4,096 and more (gemm_published.csv, azure).
STEADY_DENSITY = 0.78
# Accumulators of 8-bit products on Hopper keep 14 bits, and software that trains has those of
# gradients carried over to fp32 ones every 128 elements: Transformer Engine's split accumulators
# (common/recipe: of both gradients), torchao's use_fast_accum (float8/config.py: forward only).
# The rows are of inference, where none are. "1.1x to 1.2x" of a product on H100 (pytorch/ao issue
# 2377).
PROMOTION = {("H100-SXM-80GB", "fp8"): 1.15}
# Where an fp32 buffer is read and written behind a product that adds to it, not beside it: Hopper
# in 16 bits. 17 shapes of weight gradients on an H200 (Transformer Engine 2.13) were 4 to 17 % too
# fast without, -6 to +9 % with it; in 8 bits, and on Blackwell (simumax), they are not.
ACCUMULATION_BYTES = {("H100-SXM-80GB", "bf16"): 8}
# Boards with the chip of a measured one, told by CUDA's compute capability (10.3) or LLVM's name
# (gfx950).
SAME_CHIP = {"B300-SXM": ["GB300"], "GB300": ["B300-SXM"], "MI355X": ["MI350X"]}
# Sources with files of their own beside `gemm.csv` and `attention.csv`, in their columns.
OWN_FILES = {"gemm": ("aiter", "llmservingsim"), "attention": ("llmservingsim",)}
# Sources whose rows in 8 bits begin behind the quantisation of activations.
QUANTISED_BEFORE = {"aiter"}
PEAK = {"bf16": "fp16", "nvfp4": "fp4", "fp8": "fp8", "fp8-block": "fp8", "fp32": "fp32"}
# GPUs are compared by what they sustain of a peak that is well known; the data
# of these sources is not of that kind.
LEFT_OUT = {"Intel-Arc-B60"}
MIN_ROWS = 100
MIN_ATTENTION_ROWS = 20
# Coefficients are fitted to as many rows as a fit can use; more are thinned.
MAX_ROWS = 1500

# Attention, forward: per GPU the kernels that training would run, best first.
# Beside each, whose kernels they are (cost_models/data/attention_kernels.textproto).
ATTENTION_CHOICES = {
    ("cudnn",): "cudnn-2026",
    ("te/flash",): "cudnn-2025",
    ("sglang 0.5.14 fa3", "sglang 0.5.14 flash_attention_v3"): "flash-attention-3-serving",
    ("sglang 0.5.14 trtllm_mha",): "trtllm-serving",
    ("sglang 0.5.10 flash_attention",): "flash-attention-2-serving",
    ("sglang 0.5.14 flashinfer", "vllm 0.24.0 vllm_flash_attn_fa2"): "flash-attention-2-serving",
    ("flash_attn_varlen (FA2)",): "flash-attention-2",
}
# Chips on which libraries have kernels of their own, which the same file compares.
ARCHITECTURES = {
    "H100-SXM-80GB": "hopper",
    **dict.fromkeys(("B200-SXM", "B300-SXM", "GB200", "GB300"), "blackwell"),
}


def file_of(family: str, source: str = "") -> str:
    """The file that rows of a family and source are in.

    >>> file_of("gemm", "aiter"), file_of("gemm", "aic")
    ('gemm_aiter.csv', 'gemm.csv')
    """
    if source == CUDNN_SOURCE:
        return CUDNN.name
    return f"{family}_{source}.csv" if source in OWN_FILES[family] else f"{family}.csv"


def _gpu_names(rows: Rows) -> list[str]:
    return sorted(set(rows["gpu"]) - LEFT_OUT)


def names_of(gpu: str) -> set[str]:
    """What sources call a GPU."""
    return {gpu} | {alias for alias, name in ALIASES.items() if name == gpu}


def _without_launch_floor(rows: Rows) -> Rows:
    """Eager timings below three times their floor measure the host, not the GPU."""
    eager: np.ndarray = np.char.startswith(rows["timing"].astype(str), "event_eager")
    if not eager.any():
        return rows
    floor = float(np.quantile(rows["time_us"][eager], 0.02))
    return rows[~eager | (rows["time_us"] > 3 * floor)]


def select_gemm(rows: Rows, gpus: dict[str, Gpu]) -> list[Selection]:
    result = []
    done = set()
    for dtype, choices in GEMM_CHOICES.items():
        for source, row_dtype in choices:
            of_source = rows[(rows["source"] == source) & (rows["dtype"] == row_dtype)]
            # Weights in an order of the kernel's own are another family of kernels.
            if "op" in of_source.columns:
                other = np.char.find(of_source["op"].astype(str), "bpreshuffle") >= 0
                of_source = of_source[~other]
            for name in _gpu_names(of_source):
                gpu = gpus[ALIASES.get(name, name)]
                peak = gpu.peaks[PEAK[dtype]]
                chosen = _without_launch_floor(of_source[of_source["gpu"] == name])
                if (gpu.name, dtype) in done or not peak or len(chosen) < MIN_ROWS:
                    continue
                every = -(-len(chosen) // MAX_ROWS)
                done.add((gpu.name, dtype))
                result.append(
                    Selection(
                        gpu,
                        dtype,
                        peak,
                        chosen[np.arange(0, len(chosen), every)],
                        f"{file_of('gemm', source)} ({source} {row_dtype})",
                    )
                )
    return result


def other_gemm_sources(rows: Rows, selection: Selection) -> list[tuple[str, str, Rows]]:
    """(source, layout, rows) of other measurements of the same GPU and type,
    timed on the GPU."""
    same = names_of(selection.gpu.name)
    kinds = {"bf16": ("bf16", "fp16")}.get(selection.dtype, (selection.dtype,))
    found = rows[rows.is_in("gpu", same) & rows.is_in("dtype", kinds)]
    result = []
    for source in sorted(set(found["source"])):
        of_source = found[found["source"] == source]
        if f"({source} " in selection.data or of_source["timing"][0] in ("event_eager", "best"):
            continue
        for layout in sorted(set(of_source["layout"])):
            result.append((source, layout, of_source[of_source["layout"] == layout]))
    return result


def _with_published(rows: Rows, gpus: dict[str, Gpu]) -> Rows:
    published = cudnn_rows()
    return rows.followed_by(published[published.is_in("gpu", gpus)])


def _data(chosen: Rows, what: str) -> str:
    """The files that rows of attention are from, and what they are of."""
    sources = np.unique(chosen["source"].astype(str)) if "source" in chosen.columns else [""]
    names = sorted({file_of("attention", source) for source in sources})
    return f"{' and '.join(names)} ({what})"


def select_attention(rows: Rows, gpus: dict[str, Gpu]) -> list[Selection]:
    """Forward and backward rows together, one selection a GPU, 16-bit; among them what is
    published of cuDNN (attention_rows.py)."""
    rows = _with_published(rows, gpus)
    usable = rows[
        (rows["window"] == 0)
        & rows.is_in("dtype", ("bf16", "fp16"))
        & (rows["phase"] != "decode_fwd")
    ]
    result = []
    for name in _gpu_names(usable):
        of_gpu = usable[usable["gpu"] == name]
        for choice, kernel in ATTENTION_CHOICES.items():
            mask = np.array(
                [
                    any(impl == c or (c == "te/flash" and impl.startswith(c)) for c in choice)
                    for impl in of_gpu["impl"]
                ],
                dtype=bool,
            )
            if mask.sum() < MIN_ATTENTION_ROWS:
                continue
            chosen = of_gpu[mask]
            if "te/flash" in choice:  # timed eagerly, see _without_launch_floor
                forward = chosen["phase"] == "train_fwd"
                floor = chosen["time_us"][forward].min()
                chosen = chosen[~forward | (chosen["time_us"] > 2 * floor)]
            gpu = gpus[name]
            data = _data(chosen, ", ".join(choice))
            result.append(Selection(gpu, "bf16", gpu.peaks["bf16"], chosen, data, kernel))
            break
    return result


# Fused attention in 8 bits.
QUANTIZED_ATTENTION = ("fp8", "mxfp8")


def select_quantized_attention(rows: Rows, gpus: dict[str, Gpu], dtype: str) -> list[Selection]:
    """Training rows in 8 bits, what is published of cuDNN among them. Backward computes all keys
    before a query, whatever the window (compiler/lower/kernels/attention_kernel.cc); forward rows
    with a window are left out."""
    impl = "cudnn"
    rows = _with_published(rows, gpus)
    forward = (rows["phase"] == "train_fwd") & (rows["window"] == 0)
    usable = rows[
        (rows["impl"] == impl)
        & (rows["dtype"] == dtype)
        & (forward | (rows["phase"] == "train_bwd"))
    ]
    return [
        Selection(
            gpus[name],
            dtype,
            gpus[name].peaks["fp8"],
            chosen,
            _data(chosen, f"{impl} {dtype}"),
            "cudnn-2026",
        )
        for name in _gpu_names(usable)
        if len(chosen := usable[usable["gpu"] == name]) >= MIN_ATTENTION_ROWS
    ]


# Convolutions, all passes: the dtype of the rows for each type of coefficients.
CONVOLUTION_DTYPES = {"bf16": "fp16(mixed fp32 acc)", "fp32": "fp32"}
CONVOLUTION_SOURCE = "deepbench"


def select_convolution(rows: Rows, gpus: dict[str, Gpu], shortest_s: float) -> list[Selection]:
    """Rows with channels in vectors, long enough to be no launch, by GPU and type."""
    usable = rows[
        (rows["source"] == CONVOLUTION_SOURCE)
        & (rows["in_c"] % 8 == 0)
        & (rows["out_c"] % 8 == 0)
        & (rows["time_us"] > shortest_s * 1e6)
    ]
    result = []
    for dtype, row_dtype in CONVOLUTION_DTYPES.items():
        of_type = usable[usable["dtype"] == row_dtype]
        for name in _gpu_names(of_type):
            gpu = gpus[ALIASES.get(name, name)]
            chosen = of_type[of_type["gpu"] == name]
            if len(chosen) < MIN_ROWS or not gpu.peaks[PEAK[dtype]]:
                continue
            data = f"conv.csv ({CONVOLUTION_SOURCE} {row_dtype})"
            result.append(Selection(gpu, dtype, gpu.peaks[PEAK[dtype]], chosen, data))
    return result
