#ifndef PLANCAST_COST_MODELS_RECORDS_MODEL_WITH_RECORDS_H_
#define PLANCAST_COST_MODELS_RECORDS_MODEL_WITH_RECORDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/records/record_store.h"

namespace plancast {

// The whole chain: a record of exactly that kernel, interpolation between near
// ones, then DefaultKernelCostModel(). Reads the store once; what is added to it
// later is not seen. Errors are those of reading it.
absl::StatusOr<std::shared_ptr<const KernelCostModel>> KernelCostModelWith(
    const RecordStore& store, const RecordFilter& filter = {});

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_MODEL_WITH_RECORDS_H_
