#ifndef PLANCAST_COST_MODELS_ATTENTION_MODEL_H_
#define PLANCAST_COST_MODELS_ATTENTION_MODEL_H_

#include <optional>

#include "cost_models/coefficient_tables.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

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
