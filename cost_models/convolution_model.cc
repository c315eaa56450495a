#include "cost_models/convolution_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_models/matmul_unit.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// Tensor cores read channels in vectors of 8 bytes at least (kernels for first layers
// take 4 channels of 16 bits, others 16 bytes).
constexpr int64_t kVectorBytes = 8;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Units other than tensor cores run fp32, and fp16 where that is no faster.
bool OnTensorCores(const DeviceType& device, const MatmulUnit& unit) {
  return unit.runs != DType::kFp32 && unit.peak_flops > 2.5 * device.fp32_flops;
}

ConvolutionCoefficients::Shape ShapeOf(const KernelSpec& kernel) {
  using Shape = ConvolutionCoefficients::Shape;
  if (kernel.window == 1) return kernel.stride == 1 ? Shape::kPointwise : Shape::kStridedPointwise;
  return kernel.window == 9 && kernel.stride == 1 ? Shape::kWindow3 : Shape::kOther;
}

// The dim of the product that counts window points and channels: k forward and for
// the gradient of the input, n for that of the weights.
int64_t* WindowDim(KernelSpec* kernel) {
  return kernel->pass == GemmPass::kWgrad ? &kernel->n : &kernel->k;
}

}  // namespace

KernelSpec ProductOfConvolution(const KernelSpec& kernel, const DeviceType& device) {
  const MatmulUnit unit = MatmulUnitFor(device, kernel.dtype);
  KernelSpec product = kernel;
  product.family = KernelFamily::kGemm;
  if (kernel.window > 0 && OnTensorCores(device, unit)) {
    const auto vector = kVectorBytes / static_cast<int64_t>(ElementBytes(unit.runs));
    int64_t* dim = WindowDim(&product);
    *dim = RoundUp(std::max<int64_t>(*dim / kernel.window, 1), vector) * kernel.window;
  }
  return product;
}

std::optional<KernelCost> ConvolutionModel::Estimate(const KernelSpec& kernel,
                                                     const DeviceType& device) const {
  if (kernel.family != KernelFamily::kConvolution) return std::nullopt;
  const MatmulUnit unit = MatmulUnitFor(device, kernel.dtype);
  const auto* entry = tables_.FindConvolution(unit.coefficients, device);
  if (entry == nullptr || kernel.window < 1) return std::nullopt;

  double copied_bytes = 0;
  // Read and written once more; the weights are small beside the images.
  if (OnTensorCores(device, unit) && !kernel.channels_last) {
    copied_bytes = 2 * (kernel.read_bytes + kernel.write_bytes);
  }
  std::optional<KernelCost> cost = gemm_.EstimateProduct(
      ProductOfConvolution(kernel, device), device, kernel.read_bytes + kernel.write_bytes);
  if (!cost.has_value()) return std::nullopt;

  cost->seconds_alone *= entry->coefficients.Factor(ShapeOf(kernel), kernel.pass);
  if (copied_bytes > 0) {
    const auto* memory = tables_.FindMemory(device);
    const double share = memory == nullptr ? 1.0 : memory->coefficients.memory_fraction;
    cost->seconds_alone += copied_bytes / (device.memory_bytes_per_s * share);
    cost->hbm_bytes += copied_bytes;
  }
  if (entry->provenance.knowledge == Knowledge::kExtrapolated) {
    cost->provenance.knowledge = Knowledge::kExtrapolated;
  }
  cost->provenance.source = absl::StrCat(entry->provenance.source, "; ", cost->provenance.source);
  cost->factor = absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/convolution/",
                              unit.coefficients);
  cost->factor_sigma = entry->factor_sigma;
  cost->sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
