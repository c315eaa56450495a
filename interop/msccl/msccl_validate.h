#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_VALIDATE_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_VALIDATE_H_

#include "absl/status/status.h"
#include "interop/msccl/msccl_xml.h"

namespace plancast {

// "gpu 0, thread block 3, step 5", and its line where it was read.
std::string MscclPlace(const MscclAlgorithm& algorithm, int32_t rank, int32_t block, int32_t step);

// Sizes of the buffers follow from the collective; spans lie inside them; steps
// that send or receive have a peer; dependencies lead to other blocks' steps.
absl::Status ValidateSteps(const MscclAlgorithm& algorithm);

// Thread blocks, channels and steps as the runtimes have room for; adds to the
// warnings what only MSCCL refuses.
absl::Status ValidateLimits(MscclAlgorithm& algorithm);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_VALIDATE_H_
