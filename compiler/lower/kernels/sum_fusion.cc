#include "compiler/lower/kernels/sum_fusion.h"

#include "graph/dtype.h"

namespace plancast {
namespace {

double ResultElements(const KernelSpec& kernel) {
  const bool product =
      kernel.family == KernelFamily::kGemm || kernel.family == KernelFamily::kConvolution;
  if (!product || kernel.pass != GemmPass::kWgrad) return 0;
  return static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
         static_cast<double>(kernel.n);
}

}  // namespace

SumFusion SumFusionOf(const LowerContext& context) {
  if (!context.profile->kernels.fuse_wgrad_accumulation) return SumFusion::kNone;
  const DType sum = context.profile->types.grad_dtype;
  if (sum == DType::kFp32) return SumFusion::kFp32;
  const bool own = sum == DType::kCompute || sum == StorageType(context.dtype);
  return own ? SumFusion::kOwnType : SumFusion::kNone;
}

void ReadSum(double element_bytes, KernelSpec* kernel) {
  kernel->read_bytes += element_bytes * ResultElements(*kernel);
}

bool CastsGradients(const SoftwareProfile& profile, DType dtype) {
  return profile.update.casts_gradients &&
         ElementBytes(StorageType(dtype)) != ElementBytes(profile.types.grad_dtype);
}

KernelSpec GradientAccumulation(const LowerContext& context, double elements) {
  const double sum = elements * ElementBytes(context.profile->types.grad_dtype);
  const double own = elements * context.Bytes(DType::kCompute);
  if (!CastsGradients(*context.profile, context.dtype)) {
    return MemoryKernel(context, "grad_accumulate", own + sum, sum);
  }
  // The cast one is written and read again.
  KernelSpec kernel = MemoryKernel(context, "grad_accumulate", own + 2 * sum, 2 * sum);
  kernel.launches = 2;
  return kernel;
}

void MakeAnew(double element_bytes, KernelSpec* kernel) {
  kernel->accumulate_fp32 = false;
  kernel->read_bytes -= element_bytes * ResultElements(*kernel);
}

}  // namespace plancast
