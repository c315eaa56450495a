#ifndef PLANCAST_COMPILER_LOWER_KERNELS_HOST_CALLS_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_HOST_CALLS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/dtype.h"
#include "graph/kernel_spec.h"
#include "strategy/software_profile.h"

namespace plancast {

// What the host does for the ops of one launch group beside launching their kernels
// (docs/host_time.md): it calls an op once forward and once for its gradients together, and once
// for all parts of a product; kernels of CUDA graphs of parts of layers take none of its time.
class HostCalls {
 public:
  explicit HostCalls(const SoftwareProfile::Calls& profile) : profile_(profile) {}

  // `extra`: what the profile says of the op's rule; nullptr: nothing.
  void Note(const KernelPart& part, absl::string_view op,
            const SoftwareProfile::ExtraKernels* extra);
  // Writes `KernelSpec::calls` of the kernels of all that were noted.
  void CountIn(std::vector<KernelSpec>* kernels) const;

 private:
  const SoftwareProfile::Calls& profile_;
  int calls_ = 0;          // before the first kernel
  bool captured_ = false;  // by a CUDA graph of a part of the layer
};

// How often an operand is read by software that quantises it in `launches`: a second time where its
// largest magnitude is found first.
int QuantizationReads(int launches);
// The sides along which it is written for products of `type`: one where a scale is of the whole
// tensor, else both, of which its two products read one each.
int QuantizedSides(DType type);

// Whether the host waits for what the step makes.
bool HostWaitsFor(const PlanStep& step, const SoftwareProfile::Calls& profile);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_HOST_CALLS_H_
