#ifndef PLANCAST_PLANNER_FITS_H_
#define PLANCAST_PLANNER_FITS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/block_catalogue.h"
#include "compiler/graph_workspace.h"
#include "compiler/program_plan.h"
#include "compiler/session.h"
#include "executor/memory/block_profile.h"
#include "executor/memory/replay.h"
#include "planner/plan_graph.h"
#include "planner/predict.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Whether a plan fits, and what its fullest device takes of device memory: Forecast's
// `fits` and `peak_memory_bytes`, byte for byte.
struct FitVerdict {
  bool fits = false;
  int64_t device_bytes = 0;
  int64_t capacity_bytes = 0;
  int32_t stage = 0;  // the fullest, the first of equals
};

// Verdicts on many plans of one job without an execution graph: a stage is drafted with
// as few micro-batches as its memory needs to come into its period, and only where it is
// not like the stage before it, which has more in flight. Plans so near the capacity that
// the places of blocks decide are compiled. For one thread.
class FitCheck {
 public:
  // `job`: all but its strategy. `machine` and `session` must outlive this.
  FitCheck(Job job, const Machine& machine, Session& session);

  // Errors: Predict's.
  absl::StatusOr<FitVerdict> Verdict(const ShortForm& plan);

 private:
  // Of the whole graph of the job.
  absl::StatusOr<FitVerdict> Compiled();
  const SoftwareProfile& ProfileFor(Schedule schedule);
  // Keeps the bodies and profiles of their blocks.
  void Know(const std::shared_ptr<const PlanBodies>& bodies);
  // Profiles of the blocks in the catalogue that have none yet.
  void ProfileNew();
  // Of the communicators of the draft.
  int64_t BufferBytes(const DeviceMesh& mesh);

  Job job_;
  const Machine& machine_;
  Session& session_;
  MemoryOverhead overhead_;
  std::map<Schedule, SoftwareProfile> settled_;
  GraphWorkspace workspace_;
  BlockCatalogue catalogue_;
  Program draft_;
  std::vector<const BlockProfile*> profiles_;  // per block of the catalogue
  std::deque<BlockProfile> own_;               // of blocks of one plan alone
  // Of blocks that plans share; `kept_` keeps them where they are.
  std::vector<std::shared_ptr<const PlanBodies>> kept_;
  absl::flat_hash_set<const PlanBodies*> seen_;
  absl::flat_hash_map<const BlockTemplate*, const BlockProfile*> known_;
  std::deque<BlockProfile> of_bodies_;
  std::vector<bool> runs_;  // per block of the catalogue
  std::vector<const CommSpec*> comms_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FITS_H_
