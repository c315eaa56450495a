#include "tests/strategy/schedule/random_table.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

// Forward and back, to a later stage and to one before.
constexpr size_t kQueues = 4;

// What a stage may do next. Results of one stage are taken by the next in the order in which
// they were made; a stage does as it likes between queues, and with what it makes itself.
class Stage {
 public:
  std::deque<ScheduleStep> come[kQueues];  // from other stages, in order
  std::vector<ScheduleStep> free;          // that wait for nothing

  bool Idle() const {
    return free.empty() &&
           std::all_of(come, come + kQueues, [](const auto& q) { return q.empty(); });
  }
  ScheduleStep Draw(std::mt19937& random) {
    std::vector<std::deque<ScheduleStep>*> queues;
    for (std::deque<ScheduleStep>& queue : come) {
      if (!queue.empty()) queues.push_back(&queue);
    }
    const size_t pick = random() % (free.size() + queues.size());
    if (pick < free.size()) {
      const ScheduleStep step = free[pick];
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(pick));
      return step;
    }
    std::deque<ScheduleStep>& queue = *queues[pick - free.size()];
    const ScheduleStep step = queue.front();
    queue.pop_front();
    return step;
  }
};

}  // namespace

ScheduleTable RandomTable(const ScheduleShape& shape, std::mt19937& random, bool weights,
                          const std::string& placement) {
  const auto placed = StagePlacement::Parse(placement, shape.stages, shape.chunks);
  PLANCAST_CHECK_OK(placed.status());
  std::vector<Stage> stages(shape.stages);
  ScheduleTable table;
  table.stages.resize(shape.stages);
  table.placement = placement;
  for (int32_t m = 0; m < shape.micro_batches; ++m) {
    const int64_t v = m % placed->copies() * placed->depth();
    stages[placed->StageOf(v)].free.push_back({Phase::kForward, m, placed->ChunkOf(v)});
  }
  for (;;) {
    std::vector<int64_t> ready;
    for (int64_t s = 0; s < shape.stages; ++s) {
      if (!stages[s].Idle()) ready.push_back(s);
    }
    if (ready.empty()) return table;
    const int64_t s = ready[random() % ready.size()];
    const ScheduleStep step = stages[s].Draw(random);
    table.stages[s].push_back(step);
    if (step.phase == Phase::kWeight) continue;
    const bool forward = step.phase == Phase::kForward;
    if (!forward && weights) {
      stages[s].free.push_back({Phase::kWeight, step.micro_batch, step.chunk});
    }
    const int64_t v = placed->At(s, step.chunk), to = placed->After(v, step.phase);
    if (to < 0) {
      if (forward) stages[s].free.push_back({Phase::kBackward, step.micro_batch, step.chunk});
      continue;
    }
    const ScheduleStep next{step.phase, step.micro_batch, placed->ChunkOf(to)};
    const int64_t there = placed->StageOf(to);
    if (there == s) {
      stages[s].free.push_back(next);
    } else {
      const size_t queue = (forward ? 0 : 2) + (placed->Onward(v, to) ? 0 : 1);
      stages[there].come[queue].push_back(next);
    }
  }
}

std::string RandomPlacement(const ScheduleShape& shape, std::mt19937& random) {
  const auto lists = [&] {
    std::vector<int64_t> stages;
    for (int64_t v = 0; v < shape.stages * shape.chunks; ++v) stages.push_back(v % shape.stages);
    std::shuffle(stages.begin(), stages.end(), random);
    return stages;
  };
  std::vector<int64_t> first = lists();
  if (shape.chunks > 1 || shape.micro_batches < 2 || random() % 2 == 0)
    return absl::StrJoin(first, " ");
  // Another copy, each part elsewhere.
  std::vector<int64_t> second;
  const int64_t on = 1 + static_cast<int64_t>(random() % (shape.stages - 1));
  for (const int64_t stage : first) second.push_back((stage + on) % shape.stages);
  return absl::StrCat(absl::StrJoin(first, " "), " + ", absl::StrJoin(second, " "));
}

}  // namespace plancast
