#include "compiler/lower/kernels/attention_kernel.h"

#include <cmath>
#include <cstddef>

#include "graph/dtype.h"

namespace plancast {
namespace {

// In 8 bits cuDNN's backward kernel computes all that the causal mask leaves, also outside of a
// window: with 4,096 to 32,768 positions and a window of 128 its time on a GB200 grows by four
// with each doubling, in 16 bits by two (cudnn-frontend's benchmarks, cuDNN 9.19 to 9.22).
bool ComputesWhole(const KernelSpec& kernel) {
  return kernel.pass != GemmPass::kForward &&
         ElementBytes(kernel.dtype) < ElementBytes(StorageType(kernel.dtype));
}

}  // namespace

int64_t ExtentOf(const OpRule& rule, const std::vector<int64_t>& extents, absl::string_view name,
                 int64_t absent) {
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f] == name) return extents[f];
  }
  return absent;
}

void FillAttention(const OpRule& rule, const std::vector<int64_t>& extents,
                   const Contraction& scores, bool diagonal, KernelSpec* kernel) {
  kernel->family = KernelFamily::kAttention;
  kernel->batch = ExtentOf(rule, extents, "b");
  kernel->kv_heads = ExtentOf(rule, extents, "g");
  kernel->heads = kernel->kv_heads * ExtentOf(rule, extents, "r");
  kernel->q_len = ExtentOf(rule, extents, "s");
  kernel->kv_len = ExtentOf(rule, extents, "t");
  kernel->head_dim = ExtentOf(rule, extents, "d") + ExtentOf(rule, extents, "f", 0);
  kernel->head_dim_v = ExtentOf(rule, extents, "e");
  bool window = false;
  for (const Statement& statement : rule.statements()) {
    for (const Condition& c : statement.where) (c.is_map() ? window : kernel->causal) = true;
  }
  kernel->causal &= diagonal && (!window || ComputesWhole(*kernel));
  if (kernel->causal) return;
  // As many keys as a query reads on average: a window, if a map says so.
  const double queries = static_cast<double>(kernel->batch * kernel->heads * kernel->q_len);
  kernel->kv_len = std::llround(scores.flops / (2 * queries * static_cast<double>(scores.k)));
}

}  // namespace plancast
