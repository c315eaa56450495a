#include "compiler/schedule/repeated_steps.h"

#include <algorithm>
#include <utility>

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

// Turns that there have to be for it to pay.
constexpr size_t kFewestTurns = 4;
// Those that are left before turns are left out.
constexpr size_t kFirstTurns = 2;

bool IsLike(const ScheduleStep& a, const ScheduleStep& b, int32_t later) {
  return a.micro_batch + later == b.micro_batch && a.chunk == b.chunk && a.phase == b.phase &&
         a.pairs == b.pairs;
}

std::optional<RepeatedSteps> Find(const Steps& steps, size_t length, int32_t micro_batches) {
  const auto goes_on = [&](size_t i) { return IsLike(steps[i], steps[i + length], micro_batches); };
  const size_t middle = (steps.size() - length) / 2;
  size_t begin = middle, end = middle;
  while (end < middle + length / 2 && goes_on(end)) ++end;
  if (end < middle + length / 2) return std::nullopt;
  while (begin > 0 && goes_on(begin - 1)) --begin;
  while (end + length < steps.size() && goes_on(end)) ++end;
  return RepeatedSteps{begin, end + length, length, micro_batches};
}

// Whether all micro-batches have as many steps, each of another kind.
bool IsComplete(const Steps& steps) {
  int32_t micro_batches = 0, chunks = 0;
  for (const ScheduleStep& step : steps) {
    if (step.micro_batch < 0) return false;
    micro_batches = std::max(micro_batches, step.micro_batch + 1);
    chunks = std::max(chunks, step.chunk + 1);
  }
  constexpr size_t kPhases = static_cast<size_t>(Phase::kWeight) + 1;
  std::vector<bool> there(kPhases * chunks * micro_batches, false);
  std::vector<size_t> of(micro_batches, 0);
  for (const ScheduleStep& step : steps) {
    const size_t kind = static_cast<size_t>(step.phase) * chunks + step.chunk;
    if (there[kind * micro_batches + step.micro_batch]) return false;
    there[kind * micro_batches + step.micro_batch] = true;
    ++of[step.micro_batch];
  }
  return std::all_of(of.begin(), of.end(), [&](size_t n) { return n == of[0]; });
}

}  // namespace

std::optional<RepeatedSteps> FindRepeatedSteps(const Steps& steps, size_t until,
                                               int64_t most_micro_batches) {
  if (steps.empty()) return std::nullopt;
  const int32_t middle = steps[steps.size() / 2].micro_batch;
  const auto each = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(),
                    [middle](const ScheduleStep& step) { return step.micro_batch == middle; }));
  for (int32_t m = 1; m <= most_micro_batches && kFewestTurns * each * m <= until; ++m) {
    const std::optional<RepeatedSteps> found = Find(steps, each * m, m);
    if (found.has_value()) return found;
  }
  return std::nullopt;
}

ShortOrder Shortened(Steps steps, size_t first, int64_t most_micro_batches) {
  const std::optional<RepeatedSteps> repeated =
      FindRepeatedSteps(steps, steps.size(), most_micro_batches);
  ShortOrder order{std::move(steps)};
  if (!repeated.has_value()) return order;
  const size_t length = repeated->length;
  size_t keep = kFirstTurns;  // turns of the stretch before what is left out
  if (first > repeated->begin + keep * length) {
    keep = (first - repeated->begin + length - 1) / length;
  }
  if (keep + 1 >= repeated->turns()) return order;
  const size_t out = repeated->turns() - keep - 1;
  const size_t cut = repeated->begin + keep * length;
  const auto earlier = static_cast<int32_t>(out) * repeated->micro_batches;
  Steps left(order.steps.begin(), order.steps.begin() + static_cast<std::ptrdiff_t>(cut));
  left.reserve(order.steps.size() - out * length);
  for (size_t i = cut + out * length; i < order.steps.size(); ++i) {
    left.push_back(order.steps[i]);
    left.back().micro_batch -= earlier;
  }
  if (!IsComplete(left)) return order;
  return {std::move(left), cut - length, cut, repeated->micro_batches};
}

}  // namespace plancast
