#include "cost_models/fit/kernel_work.h"

#include <algorithm>

#include "cost_models/attention_model.h"
#include "cost_models/gemm_model.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

void FillAttention(const DeviceType& device, KernelSpec* kernel) {
  const double queries = static_cast<double>(kernel->batch * kernel->heads * kernel->q_len);
  const double dim = static_cast<double>(kernel->head_dim);
  const double dim_v = kernel->head_dim_v > 0 ? static_cast<double>(kernel->head_dim_v) : dim;
  const double per_pair = kernel->backward ? 6 * dim + 4 * dim_v : 2 * dim + 2 * dim_v;
  kernel->flops = queries * static_cast<double>(kernel->kv_len) * per_pair;
  if (kernel->causal) {
    const double square = static_cast<double>(std::min(kernel->q_len, kernel->kv_len));
    kernel->flops *= 1 - square / (2 * static_cast<double>(kernel->kv_len));
  }
  const double element = ElementBytes(AttentionUnit(device, kernel->dtype).runs);
  const auto kv_heads = kernel->kv_heads > 0 ? kernel->kv_heads : kernel->heads;
  kernel->read_bytes = element * (dim + dim_v) *
                       (queries + static_cast<double>(kernel->batch * kv_heads * kernel->kv_len));
  if (kernel->backward) kernel->read_bytes *= 2;
}

}  // namespace

KernelSpec WithWork(KernelSpec kernel, const DeviceType& device) {
  const bool product =
      kernel.family == KernelFamily::kGemm || kernel.family == KernelFamily::kConvolution;
  if (kernel.flops == 0 && product) {
    kernel.flops = 2.0 * static_cast<double>(kernel.batch * kernel.m) *
                   static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  }
  if (kernel.family == KernelFamily::kGemm && kernel.read_bytes + kernel.write_bytes == 0) {
    kernel.read_bytes = ProductBytes(kernel, MatmulUnitFor(device, kernel.dtype).runs);
  }
  if (kernel.family == KernelFamily::kAttention && kernel.flops == 0) {
    FillAttention(device, &kernel);
  }
  return kernel;
}

}  // namespace plancast
