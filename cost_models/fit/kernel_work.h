#ifndef PLANCAST_COST_MODELS_FIT_KERNEL_WORK_H_
#define PLANCAST_COST_MODELS_FIT_KERNEL_WORK_H_

#include "cluster/machine.h"
#include "graph/kernel_spec.h"

namespace plancast {

// The kernel with the FLOPs and bytes that the compiler would state for it, where it has none:
// of a product or of attention by its sizes (half the scores under a causal mask; each operand
// and result once). What a roofline needs of a measured kernel.
KernelSpec WithWork(KernelSpec kernel, const DeviceType& device);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_FIT_KERNEL_WORK_H_
