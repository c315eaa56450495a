#include "compiler/lower/kernels/host_calls.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plancast {

void HostCalls::Note(const KernelPart& part, absl::string_view op,
                     const SoftwareProfile::ExtraKernels* extra) {
  bool begins = false;
  const bool captured = profile_.Captures(op, &begins);
  captured_ |= captured;
  if (captured && !begins) return;
  if (part.step->part == Part::kWeightGrad) return;
  if (part.loop != nullptr && part.piece > 0 && part.step->rule->fused().empty()) return;
  const bool forward = part.step->part != Part::kBackward;
  const int usual = forward ? profile_.forward : profile_.backward;
  if (extra == nullptr || captured) {
    calls_ = std::max(calls_, usual);
  } else {
    calls_ =
        std::max(calls_, (forward ? extra->forward_calls : extra->backward_calls).value_or(usual));
  }
}

namespace {

// Before products, where the profile says in how many launches it is done: an activation is
// quantised for its forward product and the weight gradient, a gradient for its two products; none
// before a weight gradient, and none for what comes quantised (docs/cost_models.md,
// *Quantisation*).
void AddQuantization(const SoftwareProfile::Calls& profile, std::vector<KernelSpec>* kernels) {
  std::vector<KernelSpec> all;
  std::pair<int64_t, int64_t> before;  // elements and rows of the operand quantised last
  for (KernelSpec& kernel : *kernels) {
    const auto how = kernel.family == KernelFamily::kGemm ? profile.quantize.find(kernel.dtype)
                                                          : profile.quantize.end();
    if (how != profile.quantize.end()) {
      const std::pair<int64_t, int64_t> operand(kernel.batch * kernel.m * kernel.k, kernel.m);
      const bool again = kernel.pass == GemmPass::kForward && operand == before;
      if (!kernel.quantized_operand && kernel.pass != GemmPass::kWgrad && !again) {
        // It reads 16 bits, once more where the largest magnitude is found first, and writes the
        // type: with scales of blocks along either dim.
        const auto elements = static_cast<double>(operand.first);
        const double wide = ElementBytes(StorageType(kernel.dtype)) * (how->second > 1 ? 2 : 1);
        const double narrow = ElementBytes(kernel.dtype) * (kernel.dtype == DType::kFp8 ? 1 : 2);
        KernelSpec quantize = CopyKernel("quantize_operand", elements * wide, elements * narrow);
        quantize.dtype = StorageType(kernel.dtype);
        quantize.launches = std::max(how->second, 1) * kernel.launches;
        all.push_back(std::move(quantize));
        before = operand;
      }
      kernel.quantized_operand = true;
    }
    all.push_back(std::move(kernel));
  }
  *kernels = std::move(all);
}

}  // namespace

void HostCalls::CountIn(std::vector<KernelSpec>* kernels) const {
  AddQuantization(profile_, kernels);
  for (KernelSpec& kernel : *kernels) {
    if (captured_) {
      kernel.calls = -kernel.launches;
      continue;
    }
    kernel.calls = 0;
  }
  if (!kernels->empty()) kernels->front().calls += calls_;
}

bool HostWaitsFor(const PlanStep& step, const SoftwareProfile::Calls& profile) {
  const bool makes = step.part == Part::kForward || step.part == Part::kRecompute;
  return makes && profile.waits.count(step.op.rule->name()) > 0;
}

}  // namespace plancast
