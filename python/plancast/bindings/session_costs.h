#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_SESSION_COSTS_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_SESSION_COSTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/records/record_store.h"

namespace plancast {

// What a session prices kernels with: the shipped models, behind measured records
// where it has some. Thread-safe.
class SessionCosts {
 public:
  SessionCosts() = default;
  SessionCosts(std::shared_ptr<const RecordStore> records, RecordFilter filter)
      : records_(std::move(records)), filter_(std::move(filter)) {}

  // For the devices of `machine`; reads their records when first asked, and again
  // once the store has more.
  absl::StatusOr<std::shared_ptr<const KernelCostModel>> For(const Machine& machine) const;

 private:
  absl::StatusOr<std::shared_ptr<const KernelCostModel>> ForDevice(const DeviceType& device) const;

  struct Loaded {
    int64_t generation = -1;
    std::shared_ptr<const KernelCostModel> model;
  };

  std::shared_ptr<const RecordStore> records_;  // may be null
  RecordFilter filter_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Loaded> by_machine_;  // under mutex_
};

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_SESSION_COSTS_H_
