#include "cost_models/records/model_with_records.h"

#include <vector>

#include "base/status_macros.h"
#include "cost_models/records/interpolation_model.h"
#include "cost_models/records/record_model.h"
#include "cost_models/records/record_set.h"

namespace plancast {

absl::StatusOr<std::shared_ptr<const KernelCostModel>> KernelCostModelWith(
    const RecordStore& store, const RecordFilter& filter) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const RecordSet> records, RecordSet::Load(store, filter));
  const std::shared_ptr<const KernelCostModel> base = DefaultKernelCostModel();
  return std::make_shared<FirstMatchModel>(std::vector<std::shared_ptr<const KernelCostModel>>{
      std::make_shared<RecordModel>(records, base),
      std::make_shared<InterpolationModel>(records, base), base});
}

}  // namespace plancast
