#include "compiler/lower/kernels/host_calls.h"

#include <algorithm>

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

void HostCalls::CountIn(std::vector<KernelSpec>* kernels) const {
  for (KernelSpec& kernel : *kernels) {
    if (captured_) {
      kernel.calls = -kernel.launches;
      continue;
    }
    const auto operand = profile_.quantize.find(kernel.dtype);
    const bool quantizes = kernel.family == KernelFamily::kGemm && !kernel.quantized_operand &&
                           kernel.pass != GemmPass::kWgrad && operand != profile_.quantize.end();
    kernel.calls = quantizes ? operand->second * kernel.launches : 0;
  }
  if (!kernels->empty()) kernels->front().calls += calls_;
}

bool HostWaitsFor(const PlanStep& step, const SoftwareProfile::Calls& profile) {
  const bool makes = step.part == Part::kForward || step.part == Part::kRecompute;
  return makes && profile.waits.count(step.op.rule->name()) > 0;
}

}  // namespace plancast
