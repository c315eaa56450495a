#ifndef PLANCAST_COST_MODELS_MODEL_CHAIN_H_
#define PLANCAST_COST_MODELS_MODEL_CHAIN_H_

#include <memory>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// The chain of DefaultKernelCostModel over other coefficients, which must outlive it.
std::shared_ptr<const KernelCostModel> ModelChain(const CoefficientTables& tables);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_MODEL_CHAIN_H_
