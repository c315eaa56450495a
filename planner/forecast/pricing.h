#ifndef PLANCAST_PLANNER_FORECAST_PRICING_H_
#define PLANCAST_PLANNER_FORECAST_PRICING_H_

#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "executor/runtime.h"
#include "graph/model/model_graph.h"
#include "planner/uncertainty/learned.h"
#include "planner/uncertainty/uncertainty.h"
#include "strategy/software_profile.h"

namespace plancast {

// What a forecast prices with: models of kernels, the times that the host and
// collectives lose, and what runs take beyond all that.
class Pricing {
 public:
  // Calibrated, and nothing beyond what is simulated; `kernels` must outlive this.
  Pricing(const KernelCostModel& kernels) : kernels_(kernels) {}  // NOLINT: every model is one
  // With what measured runs of a software take beyond it (`levels.LevelOf`), and what the user's
  // own runs tell (`learned`, may be null); all must outlive this.
  Pricing(const KernelCostModel& kernels, const Uncertainty& levels, const Learned* learned)
      : kernels_(kernels), levels_(&levels), learned_(learned) {}
  // By data sheets alone: kernels at peaks (DatasheetModel), links at nominal rates, and
  // nothing of the host's times and of what collectives lose in training.
  static Pricing Datasheet();

  const KernelCostModel& kernels() const { return kernels_; }
  // How a plan of the profile runs on the devices of `machine`.
  RuntimeParams Runtime(const SoftwareProfile& profile, const Machine& machine) const;
  // What runs of the software take beyond what is simulated. Nothing is known of models without
  // sequences, nor of programs that train nothing.
  SoftwareLevel Level(const SoftwareProfile& profile, const ModelGraph& graph) const;
  const Learned* learned() const { return learned_; }

 private:
  Pricing(const KernelCostModel& kernels, bool nominal) : kernels_(kernels), nominal_(nominal) {}

  const KernelCostModel& kernels_;
  const bool nominal_ = false;
  const Uncertainty* const levels_ = nullptr;
  const Learned* const learned_ = nullptr;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_PRICING_H_
