#include "cost_models/gemm_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// The main loop runs over blocks of this many k.
constexpr int64_t kKBlock = 32;
// Kernels much longer than this feel the power limit.
constexpr double kSustainedSeconds = 1e-3;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Traffic {
  double operand_bytes = 0;  // both operands
  double result_bytes = 0;
};

Traffic TrafficOf(const KernelSpec& kernel, DType runs) {
  double batch = static_cast<double>(kernel.batch), m = static_cast<double>(kernel.m),
         n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
  // Accumulating reads and writes the fp32 buffer instead of writing a result.
  double per_result = kernel.accumulate_fp32 ? 8 : ElementBytes(StorageType(runs));
  return {batch * (m * k + k * n) * ElementBytes(runs), batch * m * n * per_result};
}

struct Choice {
  double seconds = 0;  // without floor
  double blocks = 0;   // over SMs
};

Choice BestTile(const KernelSpec& kernel, const GemmCoefficients& c, double border_bytes,
                double flops_per_sm, int sms, double bytes_per_s) {
  Choice best;
  double results = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                   static_cast<double>(kernel.n);
  double bandwidth = bytes_per_s * c.memory_fraction;
  for (const GemmCoefficients::Tile& tile : c.tiles) {
    int64_t tiles = kernel.batch * CeilDiv(kernel.m, tile.m) * CeilDiv(kernel.n, tile.n);
    double slow = (1 + c.small_tile_cost * tile.slowdown) / c.mma_fraction;
    double seconds_per_k = 2.0 * static_cast<double>(tile.m * tile.n) * slow / flops_per_sm;
    for (int parts : c.splits) {
      int64_t part_k = CeilDiv(CeilDiv(kernel.k, parts), kKBlock) * kKBlock;
      int64_t blocks = tiles * parts;
      double share = static_cast<double>(blocks) / sms;
      double waves = c.wave_quantization * static_cast<double>(CeilDiv(blocks, sms)) +
                     (1 - c.wave_quantization) * std::max(share, 1.0);
      double compute = waves * (static_cast<double>(part_k) * seconds_per_k + c.tile_overhead_s);
      double extra = parts > 1 ? 0.5 * c.floor_s : 0;  // the kernel that sums the parts
      double memory = (border_bytes + (parts > 1 ? 8 * parts * results : 0)) / bandwidth;
      if (best.seconds > 0 && std::max(compute, memory) + extra >= best.seconds) continue;
      double seconds = std::cbrt(compute * compute * compute + memory * memory * memory) + extra;
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

}  // namespace

std::optional<KernelCost> GemmTileModel::Estimate(const KernelSpec& kernel,
                                                  const DeviceType& device) const {
  if (kernel.family != KernelFamily::kGemm) return std::nullopt;
  const MatmulUnit unit = MatmulUnitFor(device, kernel.dtype);
  const Traffic traffic = TrafficOf(kernel, unit.runs);
  // A fused epilogue moves more than the product alone.
  return EstimateProduct(kernel, device,
                         std::max(traffic.operand_bytes + traffic.result_bytes,
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
  const GemmCoefficients& c = entry->coefficients;

  Choice best = BestTile(kernel, c, border_bytes, unit.peak_flops / device.sms, device.sms,
                         device.memory_bytes_per_s);
  double quantize_bytes = c.quantize_bytes * static_cast<double>(kernel.batch) *
                          static_cast<double>(kernel.m) * static_cast<double>(kernel.k);
  double sustained = 1 + c.sustained_loss * best.seconds / (best.seconds + kSustainedSeconds);

  KernelCost cost;
  cost.seconds_alone =
      (c.floor_s + quantize_bytes / (device.memory_bytes_per_s * c.memory_fraction) +
       best.seconds * sustained) *
      PassFactor(c, kernel.pass);
  cost.sm_fraction = std::min(1.0, best.blocks);
  cost.hbm_bytes = border_bytes + quantize_bytes;
  cost.provenance = entry->provenance;
  if (unit.borrowed) cost.provenance.knowledge = Knowledge::kExtrapolated;
  cost.factor =
      absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/gemm/", unit.coefficients);
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
