#include "cost_models/attention_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// Queries (forward) or keys (backward) of one thread block.
constexpr double kBlock = 128;

// Pairs of query and key that one head computes, masked ones of the blocks on
// the diagonal included.
double Pairs(double q, double kv, bool causal) {
  if (!causal) return q * kv;
  double square = std::min(q, kv);
  return std::min(q * (kv - square) + square * (square + kBlock) / 2, q * kv);
}

}  // namespace

std::optional<KernelCost> AttentionModel::Estimate(const KernelSpec& kernel,
                                                   const DeviceType& device) const {
  if (kernel.family != KernelFamily::kAttention || kernel.batch < 1 || kernel.heads < 1 ||
      kernel.q_len < 1 || kernel.kv_len < 1 || kernel.head_dim < 1) {
    return std::nullopt;
  }
  // Attention runs in the type that activations are kept in, also where other
  // products run in 8 or 4 bits.
  MatmulUnit unit = MatmulUnitFor(device, StorageType(kernel.dtype));
  if (kernel.dtype == DType::kTf32) unit = MatmulUnitFor(device, DType::kTf32);
  if (unit.peak_flops <= 0 || device.sms < 1 || device.memory_bytes_per_s <= 0) {
    return std::nullopt;
  }
  const auto* entry = tables_.FindAttention(unit.coefficients, device);
  if (entry == nullptr) return std::nullopt;
  const AttentionCoefficients& c = entry->coefficients;

  double batch = static_cast<double>(kernel.batch), heads = static_cast<double>(kernel.heads);
  double kv_heads = static_cast<double>(kernel.kv_heads > 0 ? kernel.kv_heads : kernel.heads);
  double q = static_cast<double>(kernel.q_len), kv = static_cast<double>(kernel.kv_len);
  double dim = static_cast<double>(kernel.head_dim);
  double dim_v = static_cast<double>(kernel.head_dim_v > 0 ? kernel.head_dim_v : kernel.head_dim);
  // Forward: scores and output. Backward recomputes the scores: five products.
  double per_pair = kernel.backward ? 6 * dim + 4 * dim_v : 2 * dim + 2 * dim_v;
  double mean_dim = (dim + dim_v) / 2;
  double rate = unit.peak_flops * c.mma_fraction * mean_dim / (mean_dim + c.softmax_dim);
  if (kernel.backward) rate /= c.backward_factor;
  double flops = batch * heads * Pairs(q, kv, kernel.causal) * per_pair;
  double longest = kBlock * (kernel.backward ? q : kv) * per_pair;
  double compute =
      (flops * (kernel.causal ? 1 + c.causal_loss : 1) + c.tail * longest * device.sms) / rate;

  double element = ElementBytes(StorageType(unit.runs));
  double bytes = batch * element * (dim + dim_v) * (q * heads + kv * kv_heads);
  if (kernel.backward) bytes = 2 * bytes + 8 * batch * q * heads * dim;  // fp32 sums of dq
  double memory = bytes / (device.memory_bytes_per_s * c.memory_fraction);

  KernelCost cost;
  cost.seconds_alone = (kernel.backward ? c.backward_floor_s : c.floor_s) +
                       std::cbrt(compute * compute * compute + memory * memory * memory);
  cost.sm_fraction =
      std::min(1.0, batch * heads * std::ceil((kernel.backward ? kv : q) / kBlock) / device.sms);
  cost.hbm_bytes = bytes;
  cost.provenance = entry->provenance;
  cost.factor = absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/attention",
                             kernel.backward ? ".bwd" : "");
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  if (kernel.backward) {
    if (!c.backward_measured) {
      cost.provenance.knowledge = Knowledge::kExtrapolated;
      cost.provenance.source += ", backward per FLOP as on other GPUs";
    }
    cost.factor_sigma = std::max(cost.factor_sigma, c.backward_factor_sigma);
    cost.sigma = std::max(cost.sigma, c.backward_sigma);
  }
  return cost;
}

}  // namespace plancast
