#ifndef PLANCAST_COST_MODELS_ATTENTION_MODEL_H_
#define PLANCAST_COST_MODELS_ATTENTION_MODEL_H_

#include <optional>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/matmul_unit.h"

namespace plancast {

// The unit that runs attention of a type: fp8 and mxfp8, or the type that activations are kept in.
MatmulUnit AttentionUnit(const DeviceType& device, DType dtype);

// Whether all sizes that the formula needs are there.
bool IsAttention(const KernelSpec& kernel);

struct AttentionTime {
  double seconds = 0;
  double bytes = 0;   // of memory traffic
  double blocks = 0;  // thread blocks over SMs
};

// The formula of docs/cost_models.md. IsAttention(kernel), and the rates of `device` and `unit`
// are positive.
AttentionTime TimeOfAttention(const KernelSpec& kernel, const AttentionCoefficients& coefficients,
                              const MatmulUnit& unit, const DeviceType& device);

// Prices fused (flash) attention: the products at a rate that depends on the
// head dimension, as softmax costs time per score; blocks on the diagonal of a
// causal mask are computed whole; the longest thread block is a tail that small
// problems do not hide. docs/cost_models.md has the formula.
class AttentionModel : public KernelCostModel {
 public:
  // `tables` must outlive the model.
  explicit AttentionModel(const CoefficientTables& tables) : tables_(tables) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  const CoefficientTables& tables_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_ATTENTION_MODEL_H_
