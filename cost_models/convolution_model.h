#ifndef PLANCAST_COST_MODELS_CONVOLUTION_MODEL_H_
#define PLANCAST_COST_MODELS_CONVOLUTION_MODEL_H_

#include <optional>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/gemm_model.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// The product that a convolution is on `device`: on tensor cores channels are padded to
// vectors.
KernelSpec ProductOfConvolution(const KernelSpec& kernel, const DeviceType& device);

// Prices convolutions as the products they are (implicit GEMM): the tile model's time
// with the traffic of the images themselves, not of their windows, times a measured
// factor for the shape of the window and the pass (Winograd's algorithm makes 3x3
// windows cheaper in fp32; weight gradients are dearer). On tensor cores channels are
// padded to vectors, and images with channels first are copied on the way in and out.
class ConvolutionModel : public KernelCostModel {
 public:
  // `tables` must outlive the model.
  explicit ConvolutionModel(const CoefficientTables& tables) : tables_(tables), gemm_(tables) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  const CoefficientTables& tables_;
  GemmTileModel gemm_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_CONVOLUTION_MODEL_H_
