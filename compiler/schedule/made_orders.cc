#include "compiler/schedule/made_orders.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace plancast {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int kPhases = 3;             // F, B, W
constexpr int64_t kLongestPeriod = 4;  // of micro-batches, that is looked for

int64_t MemoryOf(const std::vector<int64_t>& memory, int64_t stage) {
  return memory.empty() ? kNoLimit : memory[stage];
}

// Whether a W that ends at `end` may run where something else comes at `then`.
bool MayRun(Overrun overrun, int64_t takes, int64_t end, int64_t then) {
  if (overrun == Overrun::kAlways) return true;
  return end <= then || (overrun == Overrun::kByHalf && 2 * (end - then) <= takes);
}

// Rows of steps as they are made.
class Writer {
 public:
  Writer(const PipelineTimes& times, int64_t micro_batches, const std::vector<int64_t>& memory,
         bool splits)
      : clock(times, micro_batches, splits), memory_(memory), due_(times.stages()) {
    table.stages.resize(times.stages());
  }

  bool Fits(int64_t stage, const ScheduleStep& step) const {
    return clock.KeptDuring(stage, step) <= MemoryOf(memory_, stage);
  }
  void Do(int64_t stage, const ScheduleStep& step, int64_t from = 0) {
    clock.Do(stage, step, from);
    table.stages[stage].push_back(step);
    if (step.phase == Phase::kBackward) {
      due_[stage].push_back({Phase::kWeight, step.micro_batch, step.chunk});
    }
  }
  bool HasDue(int64_t stage) const { return !due_[stage].empty(); }
  const ScheduleStep& Due(int64_t stage) const { return due_[stage].front(); }
  void DoDue(int64_t stage, int64_t from = 0) {
    const ScheduleStep step = due_[stage].front();
    due_[stage].pop_front();
    Do(stage, step, from);
  }

  PipelineClock clock;
  ScheduleTable table;

 private:
  const std::vector<int64_t>& memory_;
  std::vector<std::deque<ScheduleStep>> due_;  // W of what went back
};

class Taking {
 public:
  Taking(int64_t micro_batches, const PipelineTimes& times, const std::vector<int64_t>& memory,
         const TakingRule& rule)
      : rule_(rule),
        micro_batches_(micro_batches),
        stages_(times.stages()),
        writer_(times, micro_batches, memory, rule.splits_backward),
        state_(times.stages()) {}

  std::optional<ScheduleTable> Run() {
    for (int64_t s = 0; s < stages_; ++s) Wake(s, 0);
    while (!wakes_.empty()) {
      const Wakeup wakeup = wakes_.top();
      wakes_.pop();
      if (wakeup.number != state_[wakeup.stage].wakeup) continue;
      Decide(wakeup.stage, wakeup.time);
    }
    for (int64_t s = 0; s < stages_; ++s) {
      if (state_[s].done[1] < micro_batches_) return std::nullopt;
      while (rule_.splits_backward && writer_.HasDue(s)) writer_.DoDue(s);
    }
    return std::move(writer_.table);
  }

 private:
  struct Wakeup {
    int64_t time = 0, stage = 0, number = 0;
    bool operator>(const Wakeup& other) const {
      return std::tie(time, stage, number) > std::tie(other.time, other.stage, other.number);
    }
  };
  struct State {
    std::array<int32_t, 2> done = {};  // F, B
    int64_t wakeup = 0;                // the one that counts
    bool idle = false;
    int64_t since = 0;
  };

  void Wake(int64_t stage, int64_t time) { wakes_.push({time, stage, ++state_[stage].wakeup}); }
  // What a neighbour does is known from when it begins.
  void Tell(int64_t stage, int64_t time) {
    if (stage < 0 || stage >= stages_ || !state_[stage].idle) return;
    Wake(stage, std::max(time, state_[stage].since));
  }

  void Do(int64_t stage, const ScheduleStep& step, int64_t now) {
    ++state_[stage].done[step.phase == Phase::kForward ? 0 : 1];
    writer_.Do(stage, step, now);
    Wake(stage, writer_.clock.FreeAt(stage));
    Tell(step.phase == Phase::kForward ? stage + 1 : stage - 1, now);
  }

  bool DoWeights(int64_t stage, int64_t now) {
    if (!rule_.splits_backward || !writer_.HasDue(stage)) return false;
    writer_.DoDue(stage, now);
    Wake(stage, writer_.clock.FreeAt(stage));
    return true;
  }

  void Decide(int64_t s, int64_t now) {
    State& state = state_[s];
    state.idle = false;
    const PipelineClock& clock = writer_.clock;
    const ScheduleStep forward{Phase::kForward, state.done[0], 0};
    const ScheduleStep backward{Phase::kBackward, state.done[1], 0};
    // When each can run, as far as it is known.
    int64_t gradient = kNoLimit, input = kNoLimit;
    if (state.done[1] < micro_batches_) {
      gradient = clock.Ready(s, backward).value_or(kNoLimit);
    }
    if (state.done[0] < micro_batches_ && state.done[0] - state.done[1] < rule_.most_ahead[s]) {
      input = clock.Ready(s, forward).value_or(kNoLimit);
    }
    if (gradient <= now) {
      if (writer_.Fits(s, backward)) return Do(s, backward, now);
      if (DoWeights(s, now)) return;
      gradient = kNoLimit;  // never
    }
    if (input != kNoLimit && !writer_.Fits(s, forward)) {
      if (DoWeights(s, now)) return;
      input = kNoLimit;
    }
    int64_t next = std::min(gradient, input);
    if (input <= now) {
      const bool late = gradient < now + clock.Takes(s, forward);
      if (!rule_.waits_for_backward || !late) return Do(s, forward, now);
      next = gradient;
    }
    if (rule_.splits_backward && writer_.HasDue(s)) {
      const int64_t takes = clock.Takes(s, writer_.Due(s));
      if (MayRun(rule_.overrun, takes, now + takes, next)) {
        DoWeights(s, now);
        return;
      }
    }
    state.idle = true;
    state.since = now;
    if (next != kNoLimit) Wake(s, next);
  }

  const TakingRule& rule_;
  const int64_t micro_batches_, stages_;
  Writer writer_;
  std::vector<State> state_;
  std::priority_queue<Wakeup, std::vector<Wakeup>, std::greater<Wakeup>> wakes_;
};

// Where each backward pass of a row's first chunk ends, and how often there is each phase of each
// chunk up to there.
struct Row {
  std::vector<size_t> behind;  // backward pass i
  std::vector<std::vector<int64_t>> count;
};

size_t KindOf(const ScheduleStep& step) {
  return static_cast<size_t>(step.chunk) * kPhases + static_cast<size_t>(step.phase);
}

Row RowOf(const std::vector<ScheduleStep>& steps, int64_t chunks) {
  Row row;
  std::vector<int64_t> count(kPhases * chunks, 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    ++count[KindOf(steps[i])];
    if (steps[i].phase != Phase::kBackward || steps[i].chunk != 0) continue;
    row.behind.push_back(i + 1);
    row.count.push_back(count);
  }
  return row;
}

// Whether a row does the same between backward passes k, k + period and k + 2 period: one period's
// passes of every phase that there is, through every chunk.
bool Repeats(const std::vector<ScheduleStep>& steps, const Row& row, bool splits, size_t k,
             int64_t period) {
  const size_t begin = row.behind[k], middle = row.behind[k + period],
               end = row.behind[k + 2 * period];
  if (middle - begin != end - middle) return false;
  for (size_t kind = 0; kind < row.count[k].size(); ++kind) {
    const int64_t more = row.count[k + period][kind] - row.count[k][kind];
    const bool any = static_cast<Phase>(kind % kPhases) != Phase::kWeight || splits;
    if (more != (any ? period : 0)) return false;
  }
  for (size_t i = begin; i < middle; ++i) {
    if (KindOf(steps[i]) != KindOf(steps[i + middle - begin])) return false;
  }
  return true;
}

}  // namespace

std::optional<ScheduleTable> PutOffWeights(const ScheduleTable& whole, int64_t micro_batches,
                                           const PipelineTimes& times,
                                           const std::vector<int64_t>& memory, Overrun overrun) {
  Writer writer(times, micro_batches, memory, /*splits=*/true);
  writer.table.placement = whole.placement;
  const PipelineClock& clock = writer.clock;
  std::vector<size_t> next(times.stages(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t s = 0; s < times.stages(); ++s) {
      const std::vector<ScheduleStep>& steps = whole.stages[s];
      for (; next[s] < steps.size(); ++next[s]) {
        const ScheduleStep& step = steps[next[s]];
        const std::optional<int64_t> ready = clock.Ready(s, step);
        if (!ready.has_value()) break;
        moved = true;
        while (writer.HasDue(s) && clock.FreeAt(s) < *ready) {
          const int64_t takes = clock.Takes(s, writer.Due(s));
          if (!MayRun(overrun, takes, clock.FreeAt(s) + takes, *ready)) break;
          writer.DoDue(s);
        }
        while (!writer.Fits(s, step) && writer.HasDue(s)) writer.DoDue(s);
        if (!writer.Fits(s, step)) return std::nullopt;
        writer.Do(s, step);
      }
    }
  }
  for (int64_t s = 0; s < times.stages(); ++s) {
    if (next[s] < whole.stages[s].size()) return std::nullopt;
    while (writer.HasDue(s)) writer.DoDue(s);
  }
  return std::move(writer.table);
}

std::optional<ScheduleTable> TakeWhatIsThere(int64_t micro_batches, const PipelineTimes& times,
                                             const std::vector<int64_t>& memory,
                                             const TakingRule& rule) {
  return Taking(micro_batches, times, memory, rule).Run();
}

ScheduleTable TableOfOngoing(const std::vector<int64_t>& most, int64_t micro_batches) {
  PassTime pass;
  pass.whole = 2;
  TakingRule rule;
  rule.most_ahead = most;
  rule.splits_backward = false;
  const auto stages = static_cast<int64_t>(most.size());
  return *TakeWhatIsThere(micro_batches, PipelineTimes::Equal(stages, 1, pass), {}, rule);
}

std::vector<int64_t> WarmUpsByTime(int64_t micro_batches, const PipelineTimes& times, bool waits) {
  const int64_t p = times.stages();
  std::vector<int64_t> warm_ups(p, 0), first(p, 0);  // first: when the first F ends
  for (int64_t s = 0; s < p; ++s) {
    const int64_t before = s == 0 ? 0 : first[s - 1] + times.transfer[s - 1];
    first[s] = before + times.passes[s].forward;
  }
  int64_t gradient = first[p - 1];
  for (int64_t s = p - 1; s >= 0; --s) {
    const PassTime& pass = times.passes[s];
    if (s + 1 < p) {
      gradient += times.transfer[s];
      const int64_t room = std::max<int64_t>(gradient - first[s], 0);
      const int64_t forward = std::max<int64_t>(pass.forward, 1);
      const int64_t more = waits ? room / forward : (room + forward - 1) / forward;
      // Those ahead of the first backward pass but its own F.
      warm_ups[s] = std::max(more, warm_ups[s + 1] + 1);
      gradient = std::max(gradient, first[s] + more * pass.forward);
    }
    warm_ups[s] = std::min(warm_ups[s], std::max<int64_t>(micro_batches - 1, 0));
    gradient += pass.recompute + pass.backward;
  }
  return warm_ups;
}

std::optional<ScheduleTable> Prolonged(const ScheduleTable& table, const StagePlacement& placement,
                                       int64_t micro_batches) {
  const int64_t copies = placement.copies();
  std::vector<Row> rows;
  for (const std::vector<ScheduleStep>& steps : table.stages) {
    rows.push_back(RowOf(steps, placement.chunks()));
  }
  const bool splits = ListsWeights(table);
  const auto steps_of_each = (splits ? 3 : 2) * placement.chunks() / copies;
  const auto few = static_cast<int64_t>(table.stages[0].size()) / steps_of_each;
  // Of each copy.
  int64_t has = micro_batches;
  for (const Row& row : rows) has = std::min(has, static_cast<int64_t>(row.behind.size()));
  const int64_t longest = std::max(kLongestPeriod, placement.Loops() ? 0 : placement.stages());
  for (int64_t period = 1; period <= longest; ++period) {
    if ((micro_batches - few) % (period * copies) != 0) continue;
    for (int64_t k = 0; k + 2 * period < has; ++k) {
      bool all = true;
      for (size_t s = 0; s < rows.size() && all; ++s) {
        all = Repeats(table.stages[s], rows[s], splits, k, period);
      }
      if (!all) continue;
      ScheduleTable longer;
      longer.placement = table.placement;
      for (size_t s = 0; s < rows.size(); ++s) {
        const std::vector<ScheduleStep>& steps = table.stages[s];
        std::vector<ScheduleStep>& row = longer.stages.emplace_back();
        std::vector<int64_t> next(kPhases * placement.chunks(), 0);
        const auto add = [&](size_t from, size_t to) {
          for (size_t i = from; i < to; ++i) {
            const int32_t chunk = steps[i].chunk;
            const int64_t copy = placement.CopyOf(placement.At(static_cast<int64_t>(s), chunk));
            const int64_t micro_batch = next[KindOf(steps[i])]++ * copies + copy;
            row.push_back({steps[i].phase, static_cast<int32_t>(micro_batch), chunk});
          }
        };
        const size_t begin = rows[s].behind[k], end = rows[s].behind[k + period];
        add(0, begin);
        for (int64_t i = 0; i < (micro_batches - few) / (period * copies); ++i) add(begin, end);
        add(begin, steps.size());
      }
      return longer;
    }
  }
  return std::nullopt;
}

}  // namespace plancast
