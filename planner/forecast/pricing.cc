#include "planner/forecast/pricing.h"

#include "cost_models/datasheet_model.h"
#include "planner/forecast/run_parameters.h"

namespace plancast {

Pricing Pricing::Datasheet() {
  static const auto* const kernels = new DatasheetModel;
  return Pricing(*kernels, /*nominal=*/true);
}

RuntimeParams Pricing::Runtime(const SoftwareProfile& profile, const Machine& machine) const {
  RuntimeParams runtime = RuntimeOf(profile, machine);
  runtime.memory = OverheadOn(profile, machine);
  if (!nominal_) return runtime;
  runtime.nominal_links = true;
  runtime.comm_scale = 1;
  runtime.launch_s = runtime.graph_launch_s = runtime.host_sync_s = runtime.iteration_s = 0;
  runtime.interference = runtime.comm_interference = 0;
  runtime.gather_skew = 0;
  return runtime;
}

SoftwareLevel Pricing::Level(const SoftwareProfile& profile, const ModelGraph& graph) const {
  if (levels_ == nullptr || graph.seq <= 0 || graph.TrainedParameterCount() == 0) return {};
  return levels_->LevelOf(profile);
}

}  // namespace plancast
