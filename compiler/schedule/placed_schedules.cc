#include "compiler/schedule/placed_schedules.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/schedule/made_orders.h"
#include "compiler/schedule/schedule_run.h"
#include "compiler/schedule/unit_times.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;
using Orders = std::vector<Steps>;

// The steps of one stage: each the next of its phase through a chunk.
class StepWriter {
 public:
  void Forward(int32_t chunk) { Append(Phase::kForward, chunk, &forward_[chunk]); }
  void Backward(int32_t chunk) {
    Append(Phase::kBackward, chunk, &backward_[chunk]);
    due_.push_back(steps_.back());
  }
  // With its W at once.
  void WholeBackward(int32_t chunk) {
    Append(Phase::kBackward, chunk, &backward_[chunk]);
    AppendWeights(steps_.back());
  }
  // The oldest that is put off.
  void Weights() {
    AppendWeights(due_.front());
    due_.pop_front();
  }
  bool AnyDue() const { return !due_.empty(); }
  int32_t forward(int32_t chunk) const { return forward_[chunk]; }
  int32_t backward(int32_t chunk) const { return backward_[chunk]; }

  // Those of micro-batches that there are; copies of the model take turns.
  Steps Take(int64_t micro_batches, int64_t copies) && {
    for (ScheduleStep& step : steps_) {
      if (copies > 1) step.micro_batch = step.micro_batch * 2 + step.chunk;
    }
    const auto beyond = [&](const ScheduleStep& step) { return step.micro_batch >= micro_batches; };
    steps_.erase(std::remove_if(steps_.begin(), steps_.end(), beyond), steps_.end());
    return std::move(steps_);
  }

 private:
  void Append(Phase phase, int32_t chunk, int32_t* next) {
    steps_.push_back({phase, (*next)++, chunk});
  }
  void AppendWeights(const ScheduleStep& back) {
    steps_.push_back({Phase::kWeight, back.micro_batch, back.chunk});
  }

  Steps steps_;
  std::deque<ScheduleStep> due_;
  int32_t forward_[2] = {}, backward_[2] = {};
};

// Without W.
Steps ZbVSteps(int64_t stages, int64_t stage, int64_t micro_batches) {
  const int64_t all = std::max(micro_batches, 2 * stages);
  StepWriter writer;
  for (int64_t i = 0; i < 2 * (stages - stage) - 1; ++i) writer.Forward(0);
  for (int64_t i = 0; i < stage; ++i) {
    writer.Forward(1);
    writer.Forward(0);
  }
  for (int64_t i = 0; i < stages - stage; ++i) {
    writer.Forward(1);
    writer.Backward(1);
  }
  while (writer.backward(0) < all) {
    if (writer.forward(0) < all) writer.Forward(0);
    writer.Backward(0);
    if (writer.forward(1) < all) writer.Forward(1);
    if (writer.backward(1) < all) writer.Backward(1);
  }
  return std::move(writer).Take(micro_batches, /*copies=*/1);
}

// How a micro-batch goes through a V: passes from stage to stage down, up, back down and back up,
// and from the end of each way to the beginning of the next.
struct VBlock {
  int64_t down, up, back_down, back_up;
  int64_t turn, end, turn_back;
};

constexpr int64_t kVPeriod = 6;  // F, B and W of two chunks

// V-Half: half of what 1F1B has in flight. The gaps are the least with which no two passes fall
// together.
VBlock HalfBlock(int64_t stages) { return {1, 2, 1, 2, 1, 1, stages % 2 == 0 ? 5 : 2}; }
int64_t HalfRoom(int64_t stages) { return stages % 2 == 0 ? stages + 2 : stages + 1; }

// V-Min: a third.
VBlock MinBlock(int64_t stages) { return {1, 1, 1, 1, 1, stages % 3 == 0 ? 3 : 1, 1}; }
int64_t MinRoom(int64_t stages) { return 2 * ((stages + 1) / 3 + 1); }

Orders BlockSteps(const VBlock& block, int64_t stages, int64_t micro_batches) {
  const int64_t ways = stages - 1;
  const int64_t up = block.down * ways + block.turn;
  const int64_t back_down = up + block.up * ways + block.end;
  const int64_t back_up = back_down + block.back_down * ways + block.turn_back;
  TimedSteps one(stages);
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t from_end = ways - s;
    one[s] = {{block.down * s, {Phase::kForward, 0, 0}},
              {up + block.up * from_end, {Phase::kForward, 0, 1}},
              {back_down + block.back_down * s, {Phase::kBackward, 0, 1}},
              {back_up + block.back_up * from_end, {Phase::kBackward, 0, 0}}};
  }
  return Repeated(one, 1, kVPeriod, micro_batches);
}

// Stage `stage` of `stages` before the middle, where both ways meet; `near` is the chunk whose
// micro-batches come from the outer side. `each`: micro-batches of each chunk.
void WriteDual(int64_t stages, int64_t stage, int64_t each, int32_t near, StepWriter* writer) {
  const int32_t far = 1 - near;
  const int64_t inner = stages - stage - 1, outer = stage + 1;
  for (int64_t i = 0; i < 2 * inner; ++i) writer->Forward(near);
  for (int64_t i = 0; i < outer; ++i) {
    writer->Forward(near);
    writer->Forward(far);
  }
  for (int64_t i = 0; i < inner; ++i) {
    writer->Backward(far);
    writer->Weights();
    writer->Forward(far);
  }
  for (int64_t i = 0; i < each - 2 * stages + outer; ++i) {
    writer->Forward(near);
    writer->WholeBackward(far);
    writer->Forward(far);
    writer->WholeBackward(near);
  }
  for (int64_t i = 0; i < inner; ++i) {
    writer->WholeBackward(far);
    writer->Forward(far);
    writer->WholeBackward(near);
  }
  for (int64_t i = 0; i < 2 * outer; ++i) {
    const int32_t chunk = i % 2 == 0 ? far : near;
    i < outer ? writer->WholeBackward(chunk) : writer->Backward(chunk);
  }
  for (int64_t i = 0; i < inner; ++i) {
    writer->Weights();
    writer->Backward(near);
  }
  while (writer->AnyDue()) writer->Weights();
}

Orders DualSteps(const StagePlacement& placement, int64_t micro_batches) {
  const int64_t stages = placement.stages(), copies = placement.copies();
  // Stages on one side of the middle: with one copy, the other side is each stage's second chunk.
  const int64_t side = stages / copies;
  const int64_t each = std::max((micro_batches + copies - 1) / copies, 2 * side);
  Orders orders;
  for (int64_t s = 0; s < stages; ++s) {
    StepWriter writer;
    const bool before = s < side;
    WriteDual(side, before ? s : stages - 1 - s, each, before ? 0 : 1, &writer);
    orders.push_back(std::move(writer).Take(micro_batches, copies));
  }
  return orders;
}

// As many micro-batches at a time as there are stages.
Orders GroupedSteps(const StagePlacement& placement, int64_t micro_batches) {
  const int64_t group = placement.stages();
  const int64_t period = 2 * placement.depth();  // F and B of the group on a stage
  return Repeated(PackedChains(placement, std::min(group, micro_batches), period), group, period,
                  micro_batches);
}

// With W of each B, oldest first, where a stage would wait, or has `room` chunks in flight and is
// to go forward.
Orders WithWeights(Orders orders, const StagePlacement& placement, int64_t micro_batches,
                   int64_t room) {
  const std::vector<int64_t> most(placement.stages(), room);
  std::optional<ScheduleTable> table =
      PutOffWeights({std::move(orders)}, micro_batches, PipelineTimes::Equal(placement, PassTime()),
                    most, Overrun::kNever);
  PLANCAST_CHECK(table.has_value()) << "more in flight than there is room for";
  return std::move(table->stages);
}

Orders OrdersOf(Schedule schedule, const StagePlacement& placement, int64_t micro_batches) {
  const int64_t p = placement.stages();
  const auto with_weights = [&](Orders orders, int64_t room) {
    return WithWeights(std::move(orders), placement, micro_batches, room);
  };
  switch (schedule) {
    case Schedule::kZbV: {
      Orders orders;
      for (int64_t s = 0; s < p; ++s) orders.push_back(ZbVSteps(p, s, micro_batches));
      return with_weights(std::move(orders), 2 * p);
    }
    case Schedule::kZbVHalf:
    case Schedule::kZbVMin:
      return TableOfVBlock(schedule, p, micro_batches, 0).stages;
    case Schedule::kDualPipe:
    case Schedule::kDualPipeV:
      return DualSteps(placement, micro_batches);
    default:
      PLANCAST_CHECK(schedule == Schedule::kHanayo || schedule == Schedule::kChimera);
      return GroupedSteps(placement, micro_batches);
  }
}

}  // namespace

ScheduleTable TableOfVBlock(Schedule schedule, int64_t stages, int64_t micro_batches,
                            int64_t periods_later) {
  const bool half = schedule == Schedule::kZbVHalf;
  VBlock block = half ? HalfBlock(stages) : MinBlock(stages);
  block.end += kVPeriod * periods_later;
  const int64_t room = (half ? HalfRoom(stages) : MinRoom(stages)) + 2 * periods_later;
  ScheduleTable table;
  table.stages = WithWeights(BlockSteps(block, stages, micro_batches),
                             StagePlacement::Waves(stages, 2), micro_batches, room);
  return table;
}

ScheduleTable TableOfRule(Schedule schedule, const StagePlacement& placement,
                          int64_t micro_batches) {
  ScheduleTable table;
  table.stages = OrdersOf(schedule, placement, micro_batches);
  table.placement = Turns(schedule) ? "v" : "both-ways";
  return table;
}

}  // namespace plancast
