#include "compiler/schedule/varuna_order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace plancast {
namespace {

using Step = VarunaStep;
using Kind = VarunaStep::Kind;
constexpr Kind kB = VarunaStep::kBackward, kR = VarunaStep::kRecompute, kF = VarunaStep::kForward;
constexpr int kKinds = 3;
using Orders = std::vector<std::vector<Step>>;

// Stages that take steps from queues, or one after another from a list, as they come.
class Stages {
 public:
  // `lists`: what each does, less forward passes that it does earlier; null: what comes, and no
  // transfer takes any time.
  Stages(int64_t micro_batches, const PipelineTimes& times, const std::vector<int64_t>& most,
         const Orders* lists)
      : times_(times), most_(most), stages_(times.stages()) {
    if (lists != nullptr) {
      listed_ = true;
      for (size_t s = 0; s < lists->size(); ++s) stages_[s].list = (*lists)[s];
    }
    for (int32_t m = 0; m < micro_batches; ++m) Add(0, 0, {kF, m}, /*done=*/false);
  }

  Orders Run() {
    while (!events_.empty()) {
      const int64_t now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.done) {
          Finish(event);
        } else {
          stages_[event.stage].come[event.step.kind].push(event.step.micro_batch);
        }
      }
      for (int64_t s = 0; s < times_.stages(); ++s) Begin(now, s);
    }
    Orders orders;
    for (Stage& stage : stages_) orders.push_back(std::move(stage.did));
    return orders;
  }

 private:
  struct Event {
    int64_t time = 0, number = 0;
    int64_t stage = 0;
    Step step;
    bool done = false;  // else: its input is there
    bool operator>(const Event& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  struct Stage {
    bool busy = false;
    std::array<std::queue<int32_t>, kKinds> come;
    std::vector<Step> list, did;
    int64_t in_flight = 0;    // forward, and not yet back
    size_t next_forward = 0;  // no place of `list` before it is a forward pass that is not done
  };

  void Add(int64_t time, int64_t stage, Step step, bool done) {
    events_.push({time, ++number_, stage, step, done});
  }
  int64_t Transfer(int64_t from) const { return listed_ ? times_.transfer[from] : 0; }
  bool IsLast(int64_t s) const { return s + 1 == times_.stages(); }
  int64_t Takes(int64_t s, Kind kind) const {
    const PassTime& pass = times_.passes[s];
    if (kind == kF) return pass.forward;
    if (kind == kR) return pass.recompute;
    return pass.WholeBackward() + (IsLast(s) ? pass.recompute : 0);
  }

  void Finish(const Event& event) {
    const int64_t s = event.stage;
    const int32_t m = event.step.micro_batch;
    stages_[s].busy = false;
    if (event.step.kind == kR || (event.step.kind == kF && IsLast(s))) {
      Add(event.time, s, {kB, m}, false);
    } else if (event.step.kind == kF) {
      Add(event.time + Transfer(s), s + 1, {kF, m}, false);
    } else if (s > 0 && listed_) {
      Add(event.time + Transfer(s - 1), s - 1, {kR, m}, false);
    }
  }

  void Begin(int64_t now, int64_t s) {
    Stage& stage = stages_[s];
    if (stage.busy) return;
    const bool full = !most_.empty() && stage.in_flight >= most_[s];
    const std::optional<Kind> kind = listed_ ? Listed(&stage, full) : First(stage, full);
    if (!kind.has_value() || stage.come[*kind].empty()) return;
    const Step step{*kind, stage.come[*kind].front()};
    stage.come[*kind].pop();
    stage.did.push_back(step);
    stage.in_flight += *kind == kF ? 1 : *kind == kB ? -1 : 0;
    stage.busy = true;
    const int64_t end = now + Takes(s, *kind);
    Add(end, s, step, true);
    if (!listed_ && *kind == kB && s > 0) {
      Add(std::max(now, end - Takes(s - 1, kR)), s - 1, {kR, step.micro_batch}, false);
    }
  }

  static std::optional<Kind> First(const Stage& stage, bool full) {
    for (const Kind kind : {kB, kR, kF}) {
      if (!stage.come[kind].empty() && !(kind == kF && full)) return kind;
    }
    return std::nullopt;
  }

  // The next of the list; a forward pass goes before an R whose gradient has not come.
  static std::optional<Kind> Listed(Stage* stage, bool full) {
    const size_t at = stage->did.size();
    std::vector<Step>& list = stage->list;
    if (at == list.size()) return std::nullopt;
    const bool forward_waits = !stage->come[kF].empty() && !full;
    if (list[at].kind == kR && stage->come[kR].empty() && forward_waits) {
      size_t& forward = stage->next_forward;
      forward = std::max(forward, at);
      while (forward < list.size() && list[forward].kind != kF) ++forward;
      if (forward < list.size()) {
        std::rotate(list.begin() + at, list.begin() + forward, list.begin() + forward + 1);
      }
    }
    return list[at].kind;
  }

  const PipelineTimes& times_;
  const std::vector<int64_t>& most_;
  bool listed_ = false;
  std::vector<Stage> stages_;
  int64_t number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
};

}  // namespace

Orders StepsByVarunasRule(int64_t micro_batches, const PipelineTimes& times,
                          const std::vector<int64_t>& most) {
  const Orders first = Stages(micro_batches, times, most, /*lists=*/nullptr).Run();
  return Stages(micro_batches, times, most, &first).Run();
}

ScheduleTable OrderByVarunasRule(int64_t micro_batches, const PipelineTimes& times,
                                 const std::vector<int64_t>& most) {
  ScheduleTable table;
  for (const std::vector<Step>& steps : StepsByVarunasRule(micro_batches, times, most)) {
    std::vector<ScheduleStep>& row = table.stages.emplace_back();
    for (const Step& step : steps) {
      if (step.kind == kR) continue;
      row.push_back({step.kind == kF ? Phase::kForward : Phase::kBackward, step.micro_batch, 0});
    }
  }
  return table;
}

}  // namespace plancast
