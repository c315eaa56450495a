#include "cost_models/attention_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "cost_models/attention_kernels.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// Queries (forward) or keys (backward) of one thread block.
constexpr double kBlock = 128;
// What a kernel draws over the fastest one, by their rates: FlashAttention-2 on an H100 of Meta's,
// taken to be capped at 500 W, 335 TFLOP/s of the 373 without a cap (docs/cost_models.md).
constexpr double kDrawExponent = 1.0 / 3;

// Pairs of query and key that one head computes, masked ones of the blocks on
// the diagonal included.
double Pairs(double q, double kv, bool causal) {
  if (!causal) return q * kv;
  double square = std::min(q, kv);
  return std::min(q * (kv - square) + square * (square + kBlock) / 2, q * kv);
}

}  // namespace

MatmulUnit AttentionUnit(const DeviceType& device, DType dtype) {
  const bool own = dtype == DType::kTf32 || dtype == DType::kFp8 || dtype == DType::kMxfp8;
  return MatmulUnitFor(device, own ? dtype : StorageType(dtype));
}

bool IsAttention(const KernelSpec& kernel) {
  return kernel.family == KernelFamily::kAttention && kernel.batch > 0 && kernel.heads > 0 &&
         kernel.q_len > 0 && kernel.kv_len > 0 && kernel.head_dim > 0;
}

AttentionTime TimeOfAttention(const KernelSpec& kernel, const AttentionCoefficients& c,
                              const MatmulUnit& unit, const DeviceType& device) {
  const double batch = static_cast<double>(kernel.batch);
  const double heads = static_cast<double>(kernel.heads);
  const double kv_heads = static_cast<double>(kernel.kv_heads > 0 ? kernel.kv_heads : kernel.heads);
  const double q = static_cast<double>(kernel.q_len), kv = static_cast<double>(kernel.kv_len);
  const double dim = static_cast<double>(kernel.head_dim);
  const double dim_v =
      static_cast<double>(kernel.head_dim_v > 0 ? kernel.head_dim_v : kernel.head_dim);
  // Forward: scores and output. Backward recomputes the scores: five products.
  const double per_pair = kernel.backward ? 6 * dim + 4 * dim_v : 2 * dim + 2 * dim_v;
  const double mean_dim = (dim + dim_v) / 2;
  double rate = unit.peak_flops * c.mma_fraction * mean_dim / (mean_dim + c.softmax_dim);
  if (kernel.backward) rate /= c.backward_factor * (dim == dim_v ? 1 : c.latent_backward_factor);
  const double flops = batch * heads * Pairs(q, kv, kernel.causal) * per_pair;
  const double longest = kBlock * (kernel.backward ? q : kv) * per_pair;
  const double compute =
      (flops * (kernel.causal ? 1 + c.causal_loss : 1) + c.tail * longest * device.sms) / rate;

  AttentionTime time;
  const double element = ElementBytes(unit.runs);
  time.bytes = batch * element * (dim + dim_v) * (q * heads + kv * kv_heads);
  if (kernel.backward) time.bytes = 2 * time.bytes + 8 * batch * q * heads * dim;  // fp32 dq
  const double memory = time.bytes / (device.memory_bytes_per_s * c.memory_fraction);
  time.seconds = (kernel.backward ? c.backward_floor_s : c.floor_s) +
                 std::cbrt(compute * compute * compute + memory * memory * memory);
  time.blocks = batch * heads * std::ceil((kernel.backward ? kv : q) / kBlock) / device.sms;
  return time;
}

std::optional<KernelCost> AttentionModel::Estimate(const KernelSpec& kernel,
                                                   const DeviceType& device) const {
  if (!IsAttention(kernel)) return std::nullopt;
  MatmulUnit unit = AttentionUnit(device, kernel.dtype);
  if (unit.peak_flops <= 0 || device.sms < 1 || device.memory_bytes_per_s <= 0) {
    return std::nullopt;
  }
  // Blocks of mxfp8 have figures of their own.
  const CoefficientEntry<AttentionCoefficients>* entry =
      tables_.FindAttention(DTypeName(unit.runs), device);
  if (entry == nullptr) entry = tables_.FindAttention(unit.coefficients, device);
  if (entry == nullptr) return std::nullopt;
  const AttentionCoefficients& c = entry->coefficients;
  // Its products are held back by a chip's power as others are.
  const auto* products = tables_.FindGemm(unit.coefficients, device);
  const AttentionKernels& kernels = AttentionKernels::Shipped();
  const double slower = kernels.Slowdown(kernel.library, c.kernel, c.architecture, kernel.backward);
  if (products != nullptr) {
    // One that takes longer than the fastest for the same work draws less, but needs more for it.
    const double fastest = kernels.Slowdown("", c.kernel, c.architecture, kernel.backward);
    const double draw = std::pow(fastest / slower, kDrawExponent);
    unit.peak_flops *= tables_.PowerScale(*products, unit.coefficients, device, draw);
  }
  const AttentionTime time = TimeOfAttention(kernel, c, unit, device);

  KernelCost cost;
  cost.seconds_alone = time.seconds * slower;
  cost.sm_fraction = std::min(1.0, time.blocks);
  cost.hbm_bytes = time.bytes;
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
