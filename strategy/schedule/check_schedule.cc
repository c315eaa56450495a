#include "strategy/schedule/check_schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/int128.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

constexpr int64_t kMostPasses = int64_t{1} << 20;
constexpr int kPhases = 3;    // F, B, W
constexpr int kCrossing = 2;  // of them, those that hand on to another stage

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string At(int64_t stage, size_t position, const ScheduleStep& step) {
  return absl::StrCat("stage ", stage, ", position ", position, " (`", StepString(step), "`)");
}

// Where each step of each stage is.
class Positions {
 public:
  explicit Positions(const ScheduleShape& shape)
      : shape_(shape), of_(kPhases * shape.stages * shape.micro_batches * shape.chunks, -1) {}

  int32_t& Of(int64_t stage, const ScheduleStep& step) {
    const int64_t phase = static_cast<int64_t>(step.phase);
    return of_[((phase * shape_.stages + stage) * shape_.chunks + step.chunk) *
                   shape_.micro_batches +
               step.micro_batch];
  }

 private:
  const ScheduleShape& shape_;
  std::vector<int32_t> of_;  // -1: nowhere yet
};

bool ListsWeights(const ScheduleTable& table) {
  return std::any_of(table.stages.begin(), table.stages.end(), [](const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(),
                       [](const ScheduleStep& step) { return step.phase == Phase::kWeight; });
  });
}

absl::StatusOr<int64_t> CheckStage(const Steps& steps, int64_t stage, const ScheduleShape& shape,
                                   bool weights, Positions* positions) {
  int64_t in_flight = 0, most = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ScheduleStep& step = steps[i];
    if (step.micro_batch >= shape.micro_batches) {
      return Wrong(At(stage, i, step), ": there is no micro-batch ", step.micro_batch,
                   "; the plan has ", shape.micro_batches, ", counted from 0.");
    }
    if (step.chunk >= shape.chunks) {
      return Wrong(At(stage, i, step), ": there is no chunk ", step.chunk, "; a stage has ",
                   shape.chunks, " (vpp), counted from 0.");
    }
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
    if (step.phase == Phase::kForward) ++in_flight;
    if (step.phase == (weights ? Phase::kWeight : Phase::kBackward)) --in_flight;
    most = std::max(most, in_flight);
  }
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kWeight}) {
    if (phase == Phase::kWeight && !weights) continue;
    for (int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int32_t m = 0; m < shape.micro_batches; ++m) {
        const ScheduleStep step{phase, m, chunk};
        if (positions->Of(stage, step) >= 0) continue;
        return Wrong("stage ", stage, " ends at position ", steps.size(), " without `",
                     StepString(step), "`. It has ", shape.micro_batches, " micro-batches through ",
                     shape.chunks, shape.chunks == 1 ? " chunk" : " chunks",
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
  Run(const ScheduleTable& table, const ScheduleShape& shape, Positions* positions)
      : table_(table), shape_(shape), positions_(*positions), stages_(shape.stages) {
    for (int64_t s = 0; s < shape.stages; ++s) {
      for (size_t i = 0; i < table.stages[s].size(); ++i) {
        const ScheduleStep& step = table.stages[s][i];
        if (step.phase == Phase::kWeight) continue;
        Stage& stage = stages_[s];
        if (Crosses(Before(VirtualOf(s, step), step.phase), VirtualOf(s, step))) {
          stage.takes[PhaseIndex(step)].push_back(i);
        }
        if (Crosses(VirtualOf(s, step), After(VirtualOf(s, step), step.phase))) {
          stage.gives[PhaseIndex(step)].push_back(i);
        }
      }
    }
  }

  absl::Status Finish() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t s = 0; s < shape_.stages; ++s) moved = Move(s) || moved;
    }
    for (int64_t s = 0; s < shape_.stages; ++s) {
      if (stages_[s].next < table_.stages[s].size()) return Stuck(s);
    }
    return absl::OkStatus();
  }

 private:
  struct Stage {
    size_t next = 0;  // step
    // Per phase the steps that take from, or give to, another stage, and how many have.
    std::array<std::vector<size_t>, kCrossing> takes, gives;
    std::array<size_t, kCrossing> taken = {}, given = {};
  };

  static size_t PhaseIndex(const ScheduleStep& step) { return static_cast<size_t>(step.phase); }
  int64_t VirtualOf(int64_t stage, const ScheduleStep& step) const {
    return step.chunk * shape_.stages + stage;
  }
  int64_t StageOf(int64_t v) const { return v % shape_.stages; }
  int32_t ChunkOf(int64_t v) const { return static_cast<int32_t>(v / shape_.stages); }
  static int64_t Before(int64_t v, Phase phase) { return phase == Phase::kForward ? v - 1 : v + 1; }
  static int64_t After(int64_t v, Phase phase) { return phase == Phase::kForward ? v + 1 : v - 1; }
  bool Exists(int64_t v) const { return v >= 0 && v < shape_.stages * shape_.chunks; }
  bool Crosses(int64_t from, int64_t to) const {
    return Exists(from) && Exists(to) && StageOf(from) != StageOf(to);
  }

  // The step that makes what a step of stage `s` takes; its stage and position.
  struct Place {
    int64_t stage = 0;
    size_t position = 0;
  };
  Place Maker(int64_t s, const ScheduleStep& step) {
    const int64_t v = Before(VirtualOf(s, step), step.phase);
    const Place place{StageOf(v), 0};
    const ScheduleStep maker{step.phase, step.micro_batch, ChunkOf(v)};
    return {place.stage, static_cast<size_t>(positions_.Of(place.stage, maker))};
  }

  // Takes what has come, then does what is ready.
  bool Move(int64_t s) {
    bool moved = false;
    for (bool more = true; more;) {
      more = false;
      for (size_t phase = 0; phase < kCrossing; ++phase) more = Take(s, phase) || more;
      more = Do(s) || more;
      moved = moved || more;
    }
    return moved;
  }

  bool Take(int64_t s, size_t phase) {
    Stage& stage = stages_[s];
    if (stage.taken[phase] == stage.takes[phase].size()) return false;
    const size_t taker = stage.takes[phase][stage.taken[phase]];
    const Place maker = Maker(s, table_.stages[s][taker]);
    Stage& giver = stages_[maker.stage];
    if (giver.next <= maker.position) return false;
    if (giver.gives[phase][giver.given[phase]] != maker.position) return false;
    ++giver.given[phase];
    ++stage.taken[phase];
    return true;
  }

  bool Do(int64_t s) {
    Stage& stage = stages_[s];
    if (stage.next == table_.stages[s].size()) return false;
    const ScheduleStep& step = table_.stages[s][stage.next];
    if (step.phase == Phase::kWeight) {
      ++stage.next;
      return true;
    }
    const int64_t v = VirtualOf(s, step), before = Before(v, step.phase);
    const size_t phase = PhaseIndex(step);
    if (Crosses(before, v)) {
      const std::vector<size_t>& takes = stage.takes[phase];
      const bool there =
          stage.taken[phase] == takes.size() || takes[stage.taken[phase]] > stage.next;
      if (!there) return false;
    } else if (Exists(before) && stages_[s].next <= Maker(s, step).position) {
      return false;
    }
    ++stage.next;
    return true;
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
    for (int64_t i = 0; i < shape_.stages; ++i) {
      const Place maker = Maker(at, StepAt({at, stages_[at].next}));
      if (stages_[maker.stage].next > maker.position) return OutOfOrder(at, maker);
      at = maker.stage;
    }
    const Place here{s, stages_[s].next}, maker = Maker(s, StepAt(here));
    const Place there{maker.stage, stages_[maker.stage].next};
    return Wrong("the stages wait for each other: ", At(here), " needs ", At(maker),
                 ", which never runs: that stage is held up at ",
                 there.position == maker.position ? "it" : At(there),
                 ". Put steps behind all that they need: `", StepString(StepAt(here)),
                 "` further back, or what holds stage ", maker.stage, " up.");
  }

  // Of a stage that waits for what is made already.
  absl::Status OutOfOrder(int64_t s, const Place& maker) {
    const Place here{s, stages_[s].next};
    const size_t phase = PhaseIndex(StepAt(here));
    const Stage &own = stages_[s], &other = stages_[maker.stage];
    const Place first_given{maker.stage, other.gives[phase][other.given[phase]]};
    if (first_given.position != maker.position) {
      return Wrong("the stages wait for each other: ", At(here), " needs ", At(maker),
                   ", which that stage hands on only behind ", At(first_given),
                   ". A stage hands results on in the order of its steps: list them there in the "
                   "order in which they are taken.");
    }
    const Place first_taken{s, own.takes[phase][own.taken[phase]]};
    return Wrong("the stages wait for each other: ", At(here), " comes behind ", At(first_taken),
                 " in what the stage takes, but its input comes first. Take inputs in the order in "
                 "which stage ",
                 maker.stage, " hands them on.");
  }

  const ScheduleTable& table_;
  const ScheduleShape& shape_;
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
  Positions positions(shape);
  std::vector<int64_t> in_flight;
  const bool weights = ListsWeights(table);
  for (int64_t s = 0; s < shape.stages; ++s) {
    ASSIGN_OR_RETURN(const int64_t most,
                     CheckStage(table.stages[s], s, shape, weights, &positions));
    in_flight.push_back(most);
  }
  RETURN_IF_ERROR(Run(table, shape, &positions).Finish());
  return in_flight;
}

}  // namespace plancast
