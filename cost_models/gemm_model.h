#ifndef PLANCAST_COST_MODELS_GEMM_MODEL_H_
#define PLANCAST_COST_MODELS_GEMM_MODEL_H_

#include <optional>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/matmul_unit.h"

namespace plancast {

// Both operands once and the result, which fp32 accumulation reads as well.
double ProductBytes(const KernelSpec& kernel, DType runs);

struct ProductTime {
  double seconds = 0;
  double blocks = 0;          // thread blocks over SMs
  double quantize_bytes = 0;  // moved before the product
};

// The formula of docs/cost_models.md: the product of `kernel`, whatever its family, with
// `border_bytes` of memory traffic. All of its sizes are positive, and so are the rates of
// `device` and `unit`.
ProductTime TimeOfProduct(const KernelSpec& kernel, const GemmCoefficients& coefficients,
                          const MatmulUnit& unit, const DeviceType& device, double border_bytes);

// Prices GEMMs by tiles and waves: thread blocks of one output tile each are
// dealt to the SMs in waves; the library chooses the tile and how many parts k
// is split into; compute overlaps memory traffic. docs/cost_models.md has the
// formula.
class GemmTileModel : public KernelCostModel {
 public:
  // `tables` must outlive the model.
  explicit GemmTileModel(const CoefficientTables& tables) : tables_(tables) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;
  // The product alone, whatever the family, with `border_bytes` of memory traffic.
  std::optional<KernelCost> EstimateProduct(const KernelSpec& kernel, const DeviceType& device,
                                            double border_bytes) const;

 private:
  const CoefficientTables& tables_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_GEMM_MODEL_H_
