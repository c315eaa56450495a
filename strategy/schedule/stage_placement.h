#ifndef PLANCAST_STRATEGY_SCHEDULE_STAGE_PLACEMENT_H_
#define PLANCAST_STRATEGY_SCHEDULE_STAGE_PLACEMENT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/execution/execution_graph.h"
#include "strategy/plan_options.h"
#include "strategy/schedule/schedule.h"

namespace plancast {

// Where the virtual stages of a pipeline run: each on a stage, as one of its chunks. A pipeline may
// hold several copies of the model, each with all virtual stages; micro-batch i goes through copy
// i % copies. Virtual stages are numbered copy after copy, chunks of a stage in that order.
class StagePlacement {
 public:
  StagePlacement() : StagePlacement(1, 1, true, {0}) {}  // without a pipeline
  // Virtual stage v on stage v % stages.
  static StagePlacement Loop(int64_t stages, int64_t chunks);
  // Down the stages and up again, `chunks` times in all: a V for two.
  static StagePlacement Waves(int64_t stages, int64_t chunks);
  // Two copies, one down and one up.
  static StagePlacement BothWays(int64_t stages);
  // These, and `chunks` chunks more of every stage, behind them in order.
  StagePlacement AndOnAll(int64_t chunks) const;
  // `loop` (or nothing), `v`, `both-ways`, or the stage of each virtual stage, `0 1 1 0`, with `+`
  // between copies, `0 1 + 1 0`. A copy has `chunks` virtual stages for each stage. Errors: other
  // words; more or fewer; a stage with another number of chunks than the others, or with one part
  // of the model twice.
  static absl::StatusOr<StagePlacement> Parse(absl::string_view text, int64_t stages,
                                              int64_t chunks);

  // As Parse reads it: a name where it has one, nothing for a loop.
  std::string Text() const;

  int64_t stages() const { return stages_; }
  int64_t copies() const { return copies_; }
  // Of all copies: virtual stages, and chunks of a stage.
  int64_t virtual_stages() const { return static_cast<int64_t>(stage_.size()); }
  int64_t chunks() const { return virtual_stages() / stages_; }
  // Virtual stages of one copy.
  int64_t depth() const { return virtual_stages() / copies_; }
  bool Loops() const { return loops_; }

  int64_t StageOf(int64_t v) const { return stage_[v]; }
  int32_t ChunkOf(int64_t v) const { return chunk_[v]; }
  int64_t At(int64_t stage, int64_t chunk) const { return at_[stage * chunks() + chunk]; }
  int64_t CopyOf(int64_t v) const { return v / depth(); }
  // Which part of the model it holds: the same in all copies.
  int64_t PartOf(int64_t v) const { return v % depth(); }
  // Where a micro-batch comes from, and goes to, in a phase (forward or backward); -1: it begins
  // or ends here.
  int64_t Before(int64_t v, Phase phase) const {
    return phase == Phase::kForward ? Up(v) : Down(v);
  }
  int64_t After(int64_t v, Phase phase) const { return phase == Phase::kForward ? Down(v) : Up(v); }
  // Whether a micro-batch changes stages between two virtual stages; not where there is none.
  bool Crosses(int64_t from, int64_t to) const {
    return from >= 0 && to >= 0 && stage_[from] != stage_[to];
  }
  // Whether layers then go on round the stages, by half of them at most; else they turn back. The
  // two have queues of their own. Of neighbours, in whatever order.
  bool Onward(int64_t one, int64_t other) const {
    const int64_t v = std::min(one, other);
    return 2 * ((stage_[v + 1] - stage_[v] + stages_) % stages_) <= stages_;
  }

 private:
  StagePlacement(int64_t stages, int64_t copies, bool loops, std::vector<int32_t> stage);

  int64_t Up(int64_t v) const { return v % depth() == 0 ? -1 : v - 1; }
  int64_t Down(int64_t v) const { return (v + 1) % depth() == 0 ? -1 : v + 1; }

  int64_t stages_, copies_;
  bool loops_;
  std::vector<int32_t> stage_, chunk_;  // of each virtual stage
  std::vector<int32_t> at_;             // virtual stage of each chunk of each stage
};

// That of a plan's schedule.
StagePlacement PlacementOf(const PlanOptions& options);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_STAGE_PLACEMENT_H_
