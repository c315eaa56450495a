"""The tile/wave model of a GEMM and its fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .fit import Coefficients, Parameter, Statistics, fit, median_error, robust_sigma
from .rows import Gpu, Rows, folds

TILES = (
    (256, 128),
    (128, 256),
    (128, 128),
    (64, 256),
    (256, 64),
    (64, 128),
    (128, 64),
    (64, 64),
    (16, 64),
)
SPLITS = (1, 2, 3, 4, 6, 8, 16)
K_BLOCK = 32
LARGEST_TILE = 128 * 256
SUSTAINED_S = 1e-3
LARGE_S = 50e-6

PARAMETERS = [
    Parameter("mma_fraction", 0.85, 0.2, 0.99),
    Parameter("tile_overhead_s", 1.5e-6, 0.0, 2e-5),
    Parameter("wave_quantization", 0.5, 0.0, 1.0),
    Parameter("memory_fraction", 0.8, 0.3, 0.98),
    Parameter("small_tile_cost", 0.4, 0.0, 2.0),
    Parameter("floor_s", 2e-6, 2e-7, 2e-5),
    Parameter("sustained_loss", 0.08, 0.0, 0.3),
]
# Low-precision rows of inference stacks include the kernel that quantises the
# activations.
QUANTIZE = Parameter("quantize_bytes", 4.0, 0.0, 30.0)
# Both ends of how strongly waves are quantised; the fit goes from each.
STARTS = [{"wave_quantization": 0.95}, {"wave_quantization": 0.1}]

# Bytes of an operand and of a result element.
BYTES = {"bf16": (2, 2), "fp8": (1, 2), "nvfp4": (0.5625, 2), "fp32": (4, 4)}


@dataclass
class GemmShapes:
    """Shapes on one GPU with everything that does not depend on coefficients."""

    gpu: Gpu
    peak: float
    blocks: np.ndarray  # thread blocks over SMs, [candidate, row]
    tile_s: np.ndarray  # time of one block at peak, [candidate, row]
    penalty: np.ndarray  # exponent base of small_tile_cost, [candidate, 1]
    bytes_s: np.ndarray  # traffic at nominal bandwidth, [candidate, row]
    split: np.ndarray  # whether k is split, [candidate, 1]
    operand_s: np.ndarray  # one byte per element of the m x k operand, [row]

    @classmethod
    def create(cls, rows: Rows, gpu: Gpu, peak: float, dtype: str) -> GemmShapes:
        m, n, k, batch = (rows[name] for name in ("m", "n", "k", "batch"))
        operand, result = BYTES[dtype]
        border = batch * ((m * k + k * n) * operand + m * n * result)
        blocks, tile_s, penalty, bytes_s, split = [], [], [], [], []
        for tile_m, tile_n in TILES:
            tiles = np.ceil(m / tile_m) * np.ceil(n / tile_n) * batch
            for parts in SPLITS:
                part_k = np.ceil(k / parts / K_BLOCK) * K_BLOCK
                blocks.append(tiles * parts / gpu.sms)
                tile_s.append(2 * tile_m * tile_n * part_k / (peak / gpu.sms))
                penalty.append(np.sqrt(LARGEST_TILE / (tile_m * tile_n)) - 1)
                partial = 8 * parts * batch * m * n if parts > 1 else 0 * m
                bytes_s.append((border + partial) / gpu.bytes_per_s)
                split.append(float(parts > 1))
        column = (-1, 1)
        return cls(
            gpu,
            peak,
            np.array(blocks),
            np.array(tile_s),
            np.array(penalty).reshape(column),
            np.array(bytes_s),
            np.array(split).reshape(column),
            batch * m * k / gpu.bytes_per_s,
        )

    def select(self, mask: np.ndarray) -> GemmShapes:
        return GemmShapes(
            self.gpu,
            self.peak,
            self.blocks[:, mask],
            self.tile_s[:, mask],
            self.penalty,
            self.bytes_s[:, mask],
            self.split,
            self.operand_s[mask],
        )

    def seconds(self, c: Coefficients) -> np.ndarray:
        """Time of each shape with coefficients `c`: that of the best candidate."""
        quantised = c["wave_quantization"]
        waves = quantised * np.ceil(self.blocks) + (1 - quantised) * np.maximum(self.blocks, 1)
        slow = (1 + c["small_tile_cost"] * self.penalty) / c["mma_fraction"]
        compute = waves * (self.tile_s * slow + c["tile_overhead_s"])
        memory = self.bytes_s / c["memory_fraction"]
        both = np.cbrt(compute**3 + memory**3) + 0.5 * c["floor_s"] * self.split
        best = both.min(axis=0)
        quantize = self.operand_s * c.get("quantize_bytes", 0.0) / c["memory_fraction"]
        sustained = 1 + c["sustained_loss"] * best / (best + SUSTAINED_S)
        return np.asarray(c["floor_s"] + quantize + best * sustained)


def weights(seconds: np.ndarray) -> np.ndarray:
    """Large kernels carry training time, so they carry the fit."""
    return np.where(seconds > LARGE_S, 2.0, np.where(seconds > 20e-6, 1.0, 0.5))


def fit_gemm(rows: Rows, gpu: Gpu, peak: float, dtype: str) -> tuple[Coefficients, Statistics]:
    """Coefficients, and statistics over five folds of left-out (n, k)."""
    shapes = GemmShapes.create(rows, gpu, peak, dtype)
    seconds = rows["time_us"] * 1e-6
    weight = weights(seconds)
    parameters = PARAMETERS + ([QUANTIZE] if dtype in ("fp8", "nvfp4") else [])
    best = fit(parameters, shapes.seconds, seconds, weight, STARTS)
    fold = folds(rows, ("n", "k"), 5)
    left_out = np.empty(len(rows))
    for held in range(5):
        train, test = fold != held, fold == held
        if not test.any():
            continue
        chosen = fit(
            parameters,
            shapes.select(train).seconds,
            seconds[train],
            weight[train],
            [best],
            evaluations=300,
            restarts=1,
        )
        left_out[test] = np.log(shapes.select(test).seconds(chosen) / seconds[test])
    large = seconds > LARGE_S
    stats = {
        "rows": len(rows),
        "held_out_error": median_error(left_out),
        "held_out_error_large": median_error(left_out[large]),
        "sigma": robust_sigma(left_out[seconds > 20e-6]),
    }
    return best, stats


def median_ratio(rows: Rows, gpu: Gpu, peak: float, dtype: str, c: Coefficients) -> float:
    """Measured over modelled time of large kernels, from another source."""
    seconds = rows["time_us"] * 1e-6
    ratio = seconds / GemmShapes.create(rows, gpu, peak, dtype).seconds(c)
    return float(np.median(ratio[seconds > LARGE_S]))
