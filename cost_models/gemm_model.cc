#include "cost_models/gemm_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// The main loop runs over blocks of this many k.
constexpr int64_t kKBlock = 32;
// Kernels much longer than this run at lower clocks. A round figure, assumed on 2026-11-21
// without a source: only `sustained_loss` is fitted, to each GPU's rows and with this value, so
// another one needs `plancast calibrate`.
constexpr double kSustainedSeconds = 1e-3;
// Products of more waves gain nothing from splitting k.
constexpr int64_t kFullWaves = 4;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Choice {
  double seconds = 0;  // without floor
  double blocks = 0;   // over SMs
};

// The best tile and split of k, as libraries choose.
Choice BestTile(const KernelSpec& kernel, const GemmCoefficients& c, double border_bytes,
                double operand_bytes, double flops_per_sm, int sms, double bytes_per_s) {
  Choice best;
  const double results = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                         static_cast<double>(kernel.n);
  const double bandwidth = bytes_per_s * c.memory_fraction;
  for (const GemmCoefficients::Tile& tile : c.tiles) {
    const int64_t tiles = kernel.batch * CeilDiv(kernel.m, tile.m) * CeilDiv(kernel.n, tile.n);
    const double slow = (1 + c.small_tile_cost * tile.slowdown) / c.mma_fraction;
    const double seconds_per_k = 2.0 * static_cast<double>(tile.m * tile.n) / flops_per_sm;
    // One SM alone does not reach its share of the bandwidth times many.
    const double panel_seconds_per_k =
        static_cast<double>(std::max(std::min(tile.m, kernel.m), std::min(tile.n, kernel.n))) *
        operand_bytes * c.saturating_sms * sms / bandwidth;
    for (int parts : c.splits) {
      // Splits serve to fill the SMs.
      if (parts > 1 && tiles >= kFullWaves * sms) break;
      const int64_t part_k = CeilDiv(CeilDiv(kernel.k, parts), kKBlock) * kKBlock;
      const int64_t blocks = tiles * parts;
      const double share = static_cast<double>(blocks) / sms;
      // Of all that run one behind another; each takes its part of them.
      const int64_t all = blocks * kernel.alike;
      const double waves =
          (c.wave_quantization * static_cast<double>(CeilDiv(all, sms)) +
           (1 - c.wave_quantization) * std::max(share * static_cast<double>(kernel.alike), 1.0)) /
          static_cast<double>(kernel.alike);
      const double compute =
          waves * seconds_per_k * (static_cast<double>(part_k) * slow + c.tile_overhead_k);
      // The parts are written, read and summed by another kernel.
      const double extra = parts > 1 ? c.split_floors * c.floor_s : 0;
      const double panel = panel_seconds_per_k * static_cast<double>(part_k);
      const double memory =
          std::max((border_bytes + (parts > 1 ? 8 * parts * results : 0)) / bandwidth, panel);
      if (best.seconds > 0 && std::max(compute, memory) + extra >= best.seconds) continue;
      const double seconds =
          std::cbrt(compute * compute * compute + memory * memory * memory) + extra;
      if (best.seconds == 0 || seconds < best.seconds) best = {seconds, share};
    }
  }
  return best;
}

double PassFactor(const GemmCoefficients& c, GemmPass pass) {
  switch (pass) {
    case GemmPass::kDgrad:
      return c.dgrad_factor;
    case GemmPass::kWgrad:
      return c.wgrad_factor;
    case GemmPass::kForward:
      break;
  }
  return c.forward_factor;
}

// Bytes that rows of so many elements are aligned to, at most those of the widest load.
int64_t AlignmentOf(int64_t elements, int64_t element_bytes) {
  constexpr int64_t kWidestLoad = 16;
  const int64_t bytes = elements * element_bytes;
  return std::min(bytes & -bytes, kWidestLoad);
}

// How much longer a product in 16 bits takes whose rows do not begin at multiples of 16 bytes: with
// an odd vocabulary a head takes about three times as long on Hopper (Netflix, "Scaling LLM
// Post-Training at Netflix", 2026). Its kernels (wgmma) need aligned operands and results; those
// that remain (mma.sync) reach two thirds of the peak (FlashAttention-3). The rest are loads of
// single elements instead of eight; loads of two are taken to keep up (assumption). Other designs
// lose by loads alone: 1024 x 2145 x 1024 on an A100, whose results alone are off, takes 1.03 of
// what the model says (gemm_published.csv).
double UnalignedFactor(const KernelSpec& kernel, DType runs, const DeviceType& device,
                       absl::string_view vendor) {
  constexpr double kOldInstructions = 1.5, kSingleLoads = 2;
  constexpr double kWgmmaFlopsPerClock = 3000;  // of an SM; A100's has 2048, H100's 4096
  const auto element = static_cast<int64_t>(ElementBytes(runs));
  if (element != 2 || std::min(kernel.m, kernel.n) == 1) return 1;
  // Rows of the first operand and of the second, by which they are stored; the result's are n.
  const bool over_k = kernel.pass != GemmPass::kWgrad;
  const int64_t first = over_k ? kernel.k : kernel.m;
  const int64_t second = kernel.pass == GemmPass::kForward ? kernel.k : kernel.n;
  const int64_t loads = std::min(AlignmentOf(first, element), AlignmentOf(second, element));
  const bool aligned = std::min(loads, AlignmentOf(kernel.n, element)) == 16;
  const bool wgmma = vendor == "NVIDIA" && SpeedGrade(device) > kWgmmaFlopsPerClock;
  return (wgmma && !aligned ? kOldInstructions : 1) * (loads < 4 ? kSingleLoads : 1);
}

// The least time of batched products in 16 bits whose rows do not begin at multiples of 16 bytes:
// libraries leave the tensor cores alone. BLOOM's layers with heads of 108 and 150 elements beside
// those with 144 and 216 (eight pairs of runs on A100s, bigscience-workshop/bigscience,
// train/tr11-176B-ml/ chronicles-prequel.md) take 8.3 to 10.7 TFLOP/s for scores and context,
// forward and backward, 9.6 in the median: 0.49 of the fp32 units' 19.5. Of other GPUs and later
// libraries it is an assumption.
double UnalignedBatchSeconds(const KernelSpec& kernel, DType runs, const DeviceType& device) {
  constexpr double kShare = 0.49;
  if (kernel.batch <= 1 || kernel.row_multiple >= 8 || ElementBytes(runs) != 2) return 0;
  const double rate = kShare * MatmulUnitFor(device, DType::kFp32).peak_flops;
  return rate > 0 ? kernel.flops / rate : 0;
}

// How much longer a product takes whose operands have a scale for each 32 elements than one with a
// scale a tensor, on the same units. On a B300 all products of a layer, 15,872 tokens wide,
// take 7.16 ms and 6.81 (Transformer Engine, gemm_profiling.rst, operands quantised before, mean of
// 100 launches), where ordering the scales is 2.8 %; and 6.97 and 6.76 if what quantising moves is
// taken off the same page's other table: 1.022 and 1.031.
double BlockScaleFactor(DType runs) { return runs == DType::kMxfp8 ? 1.027 : 1; }

// Bytes that kernels before a product in 8 or 4 bits move to quantise its operands.
double QuantizeBytes(const KernelSpec& kernel, const GemmCoefficients& c, DType runs,
                     const DeviceType& device) {
  const double batch = static_cast<double>(kernel.batch), m = static_cast<double>(kernel.m),
               n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
  if (kernel.quantized_operand && c.quantize_bytes > 0) {
    // Weight gradients read both operands along the other dim. Units of 8 bits alone (Hopper's)
    // need copies for that; those that have 4 bits as well read either way. Types with scales of
    // blocks are quantised along both dims.
    const bool turned = runs == DType::kFp8 || runs == DType::kFp8Row;
    const bool copies = kernel.pass == GemmPass::kWgrad && device.fp4_flops <= 0 && turned;
    return copies ? ElementBytes(runs) * batch * (m + n) * k : 0;
  }
  const double one = c.quantize_bytes * batch * m * k;
  // Scales of rows belong to one of the three products only: both operands are cast anew.
  return runs == DType::kFp8Row ? one + c.quantize_bytes * batch * n * k : one;
}

}  // namespace

double ProductBytes(const KernelSpec& kernel, DType runs) {
  const double batch = static_cast<double>(kernel.batch), m = static_cast<double>(kernel.m),
               n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
  // Accumulating reads and writes the fp32 buffer instead of writing a result.
  const double per_result = kernel.accumulate_fp32 ? 8 : ElementBytes(StorageType(runs));
  return batch * (m * k + k * n) * ElementBytes(runs) + batch * m * n * per_result;
}

ProductTime TimeOfProduct(const KernelSpec& kernel, const GemmCoefficients& c,
                          const MatmulUnit& unit, const DeviceType& device, double border_bytes) {
  // A cap on the board's power, known from steady loops, is part of what holds products back.
  const double slower = std::max(1.0, PassFactor(c, kernel.pass) * unit.held_to);
  // Other instructions, which draw power too: on top of what a cap takes (assumption).
  const double promoted = kernel.pass == GemmPass::kForward ? 1 : c.promotion_factor;
  const double behind = kernel.accumulate_fp32
                            ? c.accumulation_bytes * static_cast<double>(kernel.batch) *
                                  static_cast<double>(kernel.m) * static_cast<double>(kernel.n)
                            : 0;
  const Choice best = BestTile(
      kernel, c, std::max(0.0, border_bytes - behind), ElementBytes(unit.runs),
      unit.peak_flops / slower / promoted / device.sms, device.sms, device.memory_bytes_per_s);
  ProductTime time;
  time.blocks = best.blocks;
  time.quantize_bytes = QuantizeBytes(kernel, c, unit.runs, device);
  // Clocks drop in long kernels; those of a training stack have dropped already.
  const double sustained = std::max(
      1.0, (1 + c.sustained_loss * best.seconds / (best.seconds + kSustainedSeconds)) / slower);
  const double floor = c.floor_s / static_cast<double>(kernel.alike);  // others run meanwhile
  time.seconds = floor +
                 (time.quantize_bytes + behind) / (device.memory_bytes_per_s * c.memory_fraction) +
                 best.seconds * sustained;
  return time;
}

namespace {

// Products that the host launches one by one follow one another, and each fills the SMs by itself.
ProductTime TimeOfProducts(const KernelSpec& kernel, const GemmCoefficients& c,
                           const MatmulUnit& unit, const DeviceType& device, double border_bytes) {
  if (kernel.batch == 1 || kernel.launches != kernel.batch) {
    return TimeOfProduct(kernel, c, unit, device, border_bytes);
  }
  const auto count = static_cast<double>(kernel.batch);
  KernelSpec one = kernel;
  one.batch = 1;
  ProductTime time = TimeOfProduct(one, c, unit, device, border_bytes / count);
  time.seconds *= count;
  time.quantize_bytes *= count;
  return time;
}

}  // namespace

std::optional<KernelCost> GemmTileModel::Estimate(const KernelSpec& kernel,
                                                  const DeviceType& device) const {
  if (kernel.family != KernelFamily::kGemm) return std::nullopt;
  // A fused epilogue moves more than the product alone.
  return EstimateProduct(kernel, device,
                         std::max(ProductBytes(kernel, MatmulUnitFor(device, kernel.dtype).runs),
                                  kernel.read_bytes + kernel.write_bytes));
}

std::optional<KernelCost> GemmTileModel::EstimateProduct(const KernelSpec& kernel,
                                                         const DeviceType& device,
                                                         double border_bytes) const {
  if (kernel.batch < 1 || kernel.m < 1 || kernel.n < 1 || kernel.k < 1) return std::nullopt;
  MatmulUnit unit = MatmulUnitFor(device, kernel.dtype);
  if (unit.peak_flops <= 0 || device.sms < 1 || device.memory_bytes_per_s <= 0) {
    return std::nullopt;
  }
  const auto* entry = tables_.FindGemm(unit.coefficients, device);
  if (entry == nullptr) return std::nullopt;
  const double scale = tables_.PowerScale(*entry, unit.coefficients, device);
  unit.peak_flops *= scale;
  if (!entry->gpu.empty()) unit.held_to = std::min(scale, 1.0);
  unit.peak_flops /= BlockScaleFactor(unit.runs);
  if (kernel.family == KernelFamily::kGemm) {
    unit.peak_flops /= UnalignedFactor(kernel, unit.runs, device, entry->vendor);
  }
  const ProductTime time = TimeOfProducts(kernel, entry->coefficients, unit, device, border_bytes);

  KernelCost cost;
  cost.seconds_alone = std::max(time.seconds, UnalignedBatchSeconds(kernel, unit.runs, device));
  cost.sm_fraction = std::min(1.0, time.blocks);
  cost.hbm_bytes = border_bytes + time.quantize_bytes;
  cost.provenance = entry->provenance;
  if (unit.borrowed) cost.provenance.knowledge = Knowledge::kExtrapolated;
  cost.factor =
      absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/gemm/", unit.coefficients);
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
