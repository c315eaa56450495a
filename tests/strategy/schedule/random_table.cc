#include "tests/strategy/schedule/random_table.h"

#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace plancast {
namespace {

// What a stage may do next. Results of one stage are taken by the next in the order in which
// they were made; a stage does as it likes between phases, and with what it makes itself.
class Stage {
 public:
  std::deque<ScheduleStep> come[2];  // by phase: from another stage, in order
  std::vector<ScheduleStep> free;    // that wait for nothing

  bool Idle() const { return come[0].empty() && come[1].empty() && free.empty(); }
  ScheduleStep Draw(std::mt19937& random) {
    const size_t queues[] = {come[0].empty() ? 0u : 1u, come[1].empty() ? 0u : 1u};
    size_t pick = random() % (free.size() + queues[0] + queues[1]);
    if (pick < free.size()) {
      const ScheduleStep step = free[pick];
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(pick));
      return step;
    }
    std::deque<ScheduleStep>& queue = come[pick == free.size() && queues[0] > 0 ? 0 : 1];
    const ScheduleStep step = queue.front();
    queue.pop_front();
    return step;
  }
};

}  // namespace

ScheduleTable RandomTable(const ScheduleShape& shape, std::mt19937& random, bool weights) {
  const int64_t last = shape.stages * shape.chunks - 1;
  std::vector<Stage> stages(shape.stages);
  ScheduleTable table;
  table.stages.resize(shape.stages);
  for (int32_t m = 0; m < shape.micro_batches; ++m) {
    stages[0].free.push_back({Phase::kForward, m, 0});
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
    const int64_t v = step.chunk * shape.stages + s;
    if (forward && v == last) {
      stages[s].free.push_back({Phase::kBackward, step.micro_batch, step.chunk});
    }
    const int64_t to = forward ? v + 1 : v - 1;
    if (to < 0 || to > last) continue;
    const ScheduleStep next{step.phase, step.micro_batch, static_cast<int32_t>(to / shape.stages)};
    const int64_t there = to % shape.stages;
    if (there == s) {
      stages[s].free.push_back(next);
    } else {
      stages[there].come[forward ? 0 : 1].push_back(next);
    }
  }
}

}  // namespace plancast
