#include "strategy/schedule/check_schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/int128.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

constexpr int64_t kMostPasses = int64_t{1} << 20;
constexpr int kPhases = 3;  // F, B, W
constexpr int kQueues = 4;  // between stages: forward and back, to one further on or before

std::string At(int64_t stage, size_t position, const ScheduleStep& step) {
  return absl::StrCat("stage ", stage, ", position ", position, " (`", StepString(step), "`)");
}

// Where each step of each stage is.
class Positions {
 public:
  Positions(const StagePlacement& placement, int64_t micro_batches)
      : placement_(placement),
        micro_batches_(micro_batches),
        of_(kPhases * placement.virtual_stages() * micro_batches, -1) {}

  int32_t& Of(int64_t stage, const ScheduleStep& step) {
    const int64_t phase = static_cast<int64_t>(step.phase);
    return of_[(phase * placement_.virtual_stages() + placement_.At(stage, step.chunk)) *
                   micro_batches_ +
               step.micro_batch];
  }

 private:
  const StagePlacement& placement_;
  const int64_t micro_batches_;
  std::vector<int32_t> of_;  // -1: nowhere yet
};

// The copy of the model that a chunk is of.
int64_t CopyOf(const StagePlacement& placement, int64_t stage, int32_t chunk) {
  return placement.CopyOf(placement.At(stage, chunk));
}

// That a stage has such a step, by its numbers.
absl::Status CheckNumbers(const std::string& at, const ScheduleStep& step, int64_t stage,
                          const StagePlacement& placement, int64_t micro_batches) {
  if (step.micro_batch >= micro_batches) {
    return Wrong(at, ": there is no micro-batch ", step.micro_batch, "; the plan has ",
                 micro_batches, ", counted from 0.");
  }
  if (step.chunk >= placement.chunks()) {
    return Wrong(at, ": there is no chunk ", step.chunk, "; a stage has ", placement.chunks(),
                 placement.copies() > 1 ? " (vpp times copies)" : " (vpp)", ", counted from 0.");
  }
  const int64_t copy = CopyOf(placement, stage, step.chunk);
  if (step.micro_batch % placement.copies() != copy) {
    return Wrong(at, ": chunk ", step.chunk, " is of copy ", copy,
                 " of the model, and micro-batch ", step.micro_batch, " goes through copy ",
                 step.micro_batch % placement.copies(), " (in turn). Take a chunk of that copy.");
  }
  return absl::OkStatus();
}

// That two micro-batches pass each other there.
absl::Status CheckPair(const std::string& at, const Steps& steps, size_t i) {
  const bool behind = i + 1 < steps.size();
  if (behind && steps[i].phase == Phase::kForward && steps[i + 1].phase == Phase::kBackward &&
      steps[i].micro_batch != steps[i + 1].micro_batch) {
    return absl::OkStatus();
  }
  return Wrong(at, ": it is to run as a pair with ",
               behind ? absl::StrCat("`", StepString(steps[i + 1]), "`") : std::string("nothing"),
               ". A pair is F of one micro-batch and B of another, as in `F1.0&B0.0`; leave the "
               "`&` out.");
}

absl::StatusOr<int64_t> CheckStage(const Steps& steps, int64_t stage,
                                   const StagePlacement& placement, int64_t micro_batches,
                                   bool weights, Positions* positions) {
  int64_t in_flight = 0, most = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ScheduleStep& step = steps[i];
    RETURN_IF_ERROR(CheckNumbers(At(stage, i, step), step, stage, placement, micro_batches));
    int32_t& position = positions->Of(stage, step);
    if (position >= 0) {
      return Wrong(At(stage, i, step), ": the step is at position ", position,
                   " already. Every step is listed once; leave one of the two out.");
    }
    position = static_cast<int32_t>(i);
    if (step.phase != Phase::kForward) {
      const bool back = step.phase == Phase::kBackward;
      const ScheduleStep before{back ? Phase::kForward : Phase::kBackward, step.micro_batch,
                                step.chunk};
      if (positions->Of(stage, before) < 0) {
        return Wrong(At(stage, i, step),
                     back ? ": it goes back before it went forward. Put `"
                          : ": gradients of weights are made before those of what came in. Put `",
                     StepString(before), "` before it.");
      }
    }
    if (step.pairs) {
      RETURN_IF_ERROR(CheckPair(At(stage, i, step), steps, i));
    }
    if (step.phase == Phase::kForward) ++in_flight;
    if (step.phase == (weights ? Phase::kWeight : Phase::kBackward)) --in_flight;
    most = std::max(most, in_flight);
  }
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kWeight}) {
    if (phase == Phase::kWeight && !weights) continue;
    for (int32_t chunk = 0; chunk < placement.chunks(); ++chunk) {
      const auto first = static_cast<int32_t>(CopyOf(placement, stage, chunk));
      for (int32_t m = first; m < micro_batches; m += static_cast<int32_t>(placement.copies())) {
        const ScheduleStep step{phase, m, chunk};
        if (positions->Of(stage, step) >= 0) continue;
        return Wrong("stage ", stage, " ends at position ", steps.size(), " without `",
                     StepString(step), "`. It has ", micro_batches, " micro-batches through ",
                     placement.chunks() / placement.copies(),
                     placement.chunks() == placement.copies() ? " chunk" : " chunks",
                     weights ? ", each forward, back and its gradients of weights once; these are "
                               "listed for all or for none."
                             : ", each forward and back once.");
      }
    }
  }
  return most;
}

// All stages together, each as far as it gets.
class Run {
 public:
  Run(const ScheduleTable& table, const StagePlacement& placement, Positions* positions)
      : table_(table), placement_(placement), positions_(*positions), stages_(placement.stages()) {
    for (int64_t s = 0; s < placement.stages(); ++s) {
      for (size_t i = 0; i < table.stages[s].size(); ++i) {
        const ScheduleStep& step = table.stages[s][i];
        if (step.phase == Phase::kWeight) continue;
        Stage& stage = stages_[s];
        const int64_t v = VirtualOf(s, step);
        const int64_t before = placement.Before(v, step.phase);
        const int64_t after = placement.After(v, step.phase);
        if (placement.Crosses(before, v)) stage.takes[Queue(step, before, v)].push_back(i);
        if (placement.Crosses(v, after)) stage.gives[Queue(step, v, after)].push_back(i);
      }
    }
  }

  absl::Status Finish() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t s = 0; s < placement_.stages(); ++s) moved = Move(s) || moved;
    }
    for (int64_t s = 0; s < placement_.stages(); ++s) {
      if (stages_[s].next < table_.stages[s].size()) return Stuck(s);
    }
    return absl::OkStatus();
  }

 private:
  struct Stage {
    size_t next = 0;  // step
    // Per queue the steps that take from, or give to, another stage, and how many have.
    std::array<std::vector<size_t>, kQueues> takes, gives;
    std::array<size_t, kQueues> taken = {}, given = {};
  };

  int64_t VirtualOf(int64_t stage, const ScheduleStep& step) const {
    return placement_.At(stage, step.chunk);
  }
  size_t Queue(const ScheduleStep& step, int64_t from, int64_t to) const {
    return 2 * static_cast<size_t>(step.phase) + (placement_.Onward(from, to) ? 0 : 1);
  }
  // Of a step that takes from another stage.
  size_t QueueOf(int64_t s, const ScheduleStep& step) const {
    const int64_t v = VirtualOf(s, step);
    return Queue(step, placement_.Before(v, step.phase), v);
  }

  // The step that makes what a step of stage `s` takes; its stage and position.
  struct Place {
    int64_t stage = 0;
    size_t position = 0;
  };
  Place Maker(int64_t s, const ScheduleStep& step) {
    const int64_t v = placement_.Before(VirtualOf(s, step), step.phase);
    const int64_t stage = placement_.StageOf(v);
    const ScheduleStep maker{step.phase, step.micro_batch, placement_.ChunkOf(v)};
    return {stage, static_cast<size_t>(positions_.Of(stage, maker))};
  }

  // Takes what has come, then does what is ready.
  bool Move(int64_t s) {
    bool moved = false;
    for (bool more = true; more;) {
      more = false;
      for (size_t queue = 0; queue < kQueues; ++queue) more = Take(s, queue) || more;
      more = Do(s) || more;
      moved = moved || more;
    }
    return moved;
  }

  bool Take(int64_t s, size_t queue) {
    Stage& stage = stages_[s];
    if (stage.taken[queue] == stage.takes[queue].size()) return false;
    const size_t taker = stage.takes[queue][stage.taken[queue]];
    const Place maker = Maker(s, table_.stages[s][taker]);
    Stage& giver = stages_[maker.stage];
    if (giver.next <= maker.position) return false;
    if (giver.gives[queue][giver.given[queue]] != maker.position) return false;
    ++giver.given[queue];
    ++stage.taken[queue];
    return true;
  }

  // Whether the input of a step is there.
  bool Ready(int64_t s, size_t position) {
    const ScheduleStep& step = table_.stages[s][position];
    if (step.phase == Phase::kWeight) return true;
    const int64_t v = VirtualOf(s, step), before = placement_.Before(v, step.phase);
    if (placement_.Crosses(before, v)) {
      const size_t queue = Queue(step, before, v);
      const std::vector<size_t>& takes = stages_[s].takes[queue];
      const size_t taken = stages_[s].taken[queue];
      return taken == takes.size() || takes[taken] > position;
    }
    return before < 0 || stages_[s].next > Maker(s, step).position;
  }

  // The steps of a pair end together, so both wait for what either needs.
  bool Do(int64_t s) {
    size_t& next = stages_[s].next;
    if (next == table_.stages[s].size() || !Ready(s, next)) return false;
    const bool pairs = table_.stages[s][next].pairs;
    if (pairs && !Ready(s, next + 1)) return false;
    next += pairs ? 2 : 1;
    return true;
  }

  // Of a stage that does not go on, the step that waits.
  size_t Waits(int64_t s) {
    const size_t next = stages_[s].next;
    return table_.stages[s][next].pairs && Ready(s, next) ? next + 1 : next;
  }

  const ScheduleStep& StepAt(const Place& place) const {
    return table_.stages[place.stage][place.position];
  }
  std::string At(const Place& place) const {
    return plancast::At(place.stage, place.position, StepAt(place));
  }

  // Of stages that wait for each other, one that is given things in another order than it takes
  // them, if there is one, is what holds all of them up.
  absl::Status Stuck(int64_t s) {
    int64_t at = s;
    for (int64_t i = 0; i < placement_.stages(); ++i) {
      const Place maker = Maker(at, StepAt({at, Waits(at)}));
      if (stages_[maker.stage].next > maker.position) return OutOfOrder(at, maker);
      if (maker.stage == at) return BeforeItsInput(at, maker);
      at = maker.stage;
    }
    const Place here{s, Waits(s)}, maker = Maker(s, StepAt(here));
    const Place there{maker.stage, Waits(maker.stage)};
    return Wrong("the stages wait for each other: ", At(here), " needs ", At(maker),
                 ", which never runs: that stage is held up at ",
                 there.position == maker.position ? "it" : At(there),
                 ". Put steps behind all that they need: `", StepString(StepAt(here)),
                 "` further back, or what holds stage ", maker.stage, " up.");
  }

  // Of a stage that waits for itself.
  absl::Status BeforeItsInput(int64_t s, const Place& maker) {
    const Place here{s, Waits(s)};
    return Wrong("the stages wait for each other: ", At(here), " needs ", At(maker),
                 ", which comes behind it. Put `", StepString(StepAt(here)), "` further back.");
  }

  // Of a stage that waits for what is made already.
  absl::Status OutOfOrder(int64_t s, const Place& maker) {
    const Place here{s, Waits(s)};
    const size_t queue = QueueOf(s, StepAt(here));
    const Stage &own = stages_[s], &other = stages_[maker.stage];
    const Place first_given{maker.stage, other.gives[queue][other.given[queue]]};
    if (first_given.position != maker.position) {
      return Wrong("the stages wait for each other: ", At(here), " needs ", At(maker),
                   ", which that stage hands on only behind ", At(first_given),
                   ". A stage hands results on in the order of its steps: list them there in the "
                   "order in which they are taken.");
    }
    const Place first_taken{s, own.takes[queue][own.taken[queue]]};
    return Wrong("the stages wait for each other: ", At(here), " comes behind ", At(first_taken),
                 " in what the stage takes, but its input comes first. Take inputs in the order in "
                 "which stage ",
                 maker.stage, " hands them on.");
  }

  const ScheduleTable& table_;
  const StagePlacement& placement_;
  Positions& positions_;
  std::vector<Stage> stages_;
};

}  // namespace

absl::StatusOr<std::vector<int64_t>> CheckSchedule(const ScheduleTable& table,
                                                   const ScheduleShape& shape) {
  const auto listed = static_cast<int64_t>(table.stages.size());
  if (listed != shape.stages) {
    return Wrong("the table lists ", listed, listed == 1 ? " stage" : " stages",
                 ", and the plan has pp=", shape.stages, ". List one row for each stage.");
  }
  const int128 passes = int128{shape.stages} * shape.micro_batches * shape.chunks;
  if (passes > kMostPasses) {
    return Wrong("the plan has ", shape.micro_batches, " micro-batches through ", shape.chunks,
                 shape.chunks == 1 ? " chunk" : " chunks", " on ", shape.stages,
                 " stages; stages times chunks times micro-batches of a table can be ", kMostPasses,
                 " at most. Take a larger mb, more dp or a smaller batch.");
  }
  ASSIGN_OR_RETURN(const StagePlacement placement,
                   StagePlacement::Parse(table.placement, shape.stages, shape.chunks));
  if (shape.micro_batches < placement.copies()) {
    return Wrong("the placement has ", placement.copies(), " copies of the model, and the plan ",
                 shape.micro_batches, shape.micro_batches == 1 ? " micro-batch" : " micro-batches",
                 ". Take as many, for micro-batches go through copies in turn.");
  }
  Positions positions(placement, shape.micro_batches);
  std::vector<int64_t> in_flight;
  const bool weights = ListsWeights(table);
  for (int64_t s = 0; s < shape.stages; ++s) {
    ASSIGN_OR_RETURN(const int64_t most, CheckStage(table.stages[s], s, placement,
                                                    shape.micro_batches, weights, &positions));
    in_flight.push_back(most);
  }
  RETURN_IF_ERROR(Run(table, placement, &positions).Finish());
  return in_flight;
}

}  // namespace plancast
