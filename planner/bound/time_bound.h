#ifndef PLANCAST_PLANNER_BOUND_TIME_BOUND_H_
#define PLANCAST_PLANNER_BOUND_TIME_BOUND_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "cluster/machine.h"
#include "executor/runtime.h"
#include "planner/bound/block_times.h"
#include "planner/fit/stage_observer.h"
#include "planner/forecast/pricing.h"
#include "strategy/software_profile.h"

namespace plancast {

// A time that no simulation of a plan can go below, from the outlines by which FitCheck finds
// that it fits: what each stage computes at least, with what its kernels wait for inside of
// layers, after the first passes of the stages before it and before the last ones of those
// again, with the gradients that are reduced behind its last pass and the parameters that are
// gathered behind its update; what each stream communicates; and what its host launches. For one
// thread.
class TimeBound : public StageObserver {
 public:
  // All must outlive this.
  TimeBound(const SoftwareProfile& profile, const Machine& machine, const Pricing& pricing);

  // Of the last plan that FitCheck found to fit, picoseconds; 0: nothing is known.
  int64_t Picoseconds() const;

  void Begin(const ProgramPlan& plan) override;
  void See(int64_t stage, const ProgramOutline& outline, const BlockCatalogue& catalogue) override;
  void Forget() override { timer_.Forget(); }

 private:
  // Of a stage, what each of its passes of one phase takes at least.
  struct Pass {
    bool runs = false;
    Phase phase = Phase::kForward;
    int64_t takes = 0;
    int64_t before_ports = 0;  // of it, before it waits for what comes from another stage
    int64_t before_end = 0;    // what may go to another stage does so before its end
  };
  struct Stage {
    int64_t passes = 0, all = 0;  // computes, and with what is not part of a pass
    int64_t after = 0;            // of that, what comes after the last pass
    int64_t exposed = 0;          // gradients and parameters on the wire after it, beside no kernel
    std::array<int64_t, kNumStreams> comms = {};
    int64_t launching = 0;  // the host, until all but the last instance are launched
    Pass forward, backward;
    bool ends_backward = false;  // its last pass is a backward one
  };

  const BlockTimes& TimesOf(const BlockCatalogue& catalogue, int32_t block);
  static void Note(const Pass& pass, Stage* stage);

  const RuntimeParams runtime_;
  const HostParams host_;
  BlockTimer timer_;
  // Of the plan:
  int64_t pp_ = 1, micro_batches_ = 1;
  bool there_and_back_ = false;  // passes go from the first stage to the last and back
  bool steps_alone_ = false;     // nothing of a step is put off to the next
  bool updates_at_end_ = false;  // one update waits for all gradients, and all gathers for it
  std::vector<Stage> stages_;
  std::vector<const BlockTimes*> blocks_;  // by number in the catalogue; null: not looked at
  std::deque<BlockTimes> own_;             // of blocks of this plan alone
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_BOUND_TIME_BOUND_H_
