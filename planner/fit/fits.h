#ifndef PLANCAST_PLANNER_FIT_FITS_H_
#define PLANCAST_PLANNER_FIT_FITS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/fit/stage_memory.h"
#include "planner/fit/stage_observer.h"
#include "planner/forecast/job.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/pricing.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Whether a plan fits, and what its fullest device takes of device memory: Forecast's
// `fits`, `peak_memory_bytes` and `memory_capacity_bytes`, byte for byte. The fullest is
// the one with least left.
struct FitVerdict {
  bool fits = false;
  int64_t device_bytes = 0;
  int64_t capacity_bytes = 0;
  int32_t stage = 0;  // the fullest, the first of equals
};

// Verdicts on many plans of one job without an execution graph: a stage is outlined with
// as few micro-batches as its memory needs to come into its period, and only where it is
// not like the stage before it, which has more in flight. Blocks are placed one by one
// where that decides. For one thread.
class FitCheck {
 public:
  // `job`: all but its strategy. `machine`, `session` and `pricing` must outlive this. `pricing`:
  // OrderPasses.
  FitCheck(Job job, const Machine& machine, Session& session, const Pricing* pricing = nullptr);

  // Errors: Predict's. `observer`, always the same one or null, sees the stages of a plan that
  // fits, or `of_unfit` of any.
  absl::StatusOr<FitVerdict> Verdict(const ShortForm& plan, StageObserver* observer = nullptr,
                                     bool of_unfit = false);

 private:
  const SoftwareProfile& ProfileFor(Schedule schedule);
  // `unlike`: stages that are looked at, for they may take more than those before them.
  FitVerdict FullestStage(const ProgramPlan& programs, std::vector<int32_t>* unlike);
  // That hosts hold what is offloaded to them.
  absl::Status CheckHosts(const ProgramPlan& programs);

  Job job_;
  const Machine& machine_;
  Session& session_;
  const Pricing* const pricing_;
  std::map<Schedule, SoftwareProfile> settled_;
  StageMemory memory_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_FITS_H_
