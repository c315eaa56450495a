#ifndef PLANCAST_COMPILER_LOWER_KERNELS_SUM_FUSION_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_SUM_FUSION_H_

#include <cstdint>

#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/kernel_spec.h"

namespace plancast {

// How products of weight gradients add to the gradients of micro-batches before: not at all,
// by a pass of their own; to fp32, whose traffic cost models count
// (KernelSpec::accumulate_fp32); or to the model's own 16 bits. Megatron-Core's
// (gradient_accumulation_fusion) and Transformer Engine's do both.
enum class SumFusion : uint8_t { kNone, kFp32, kOwnType };
SumFusion SumFusionOf(const LowerContext& context);

// A product of a weight gradient also reads the sum that it writes, of so many bytes an
// element; other kernels stay as they are.
void ReadSum(double element_bytes, KernelSpec* kernel);
// Whether the gradients of a pass are cast before they are added up, of a model in `dtype`.
bool CastsGradients(const SoftwareProfile& profile, DType dtype);
// main_grad += grad, as a kernel of its own, or as two where it is cast first.
KernelSpec GradientAccumulation(const LowerContext& context, double elements);
// It writes its result alone: what ReadSum and accumulate_fp32 say is taken back.
void MakeAnew(double element_bytes, KernelSpec* kernel);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_SUM_FUSION_H_
