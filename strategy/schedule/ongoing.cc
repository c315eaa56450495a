#include "strategy/schedule/ongoing.h"

#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace plancast {
namespace {

constexpr int64_t kMostOngoing = 1'000'000;

}  // namespace

std::string PrintOngoing(const std::vector<int64_t>& most) {
  return absl::StrCat(kOngoingPrefix, absl::StrJoin(most, "-"));
}

std::optional<std::vector<int64_t>> ReadOngoing(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kOngoingPrefix)) return std::nullopt;
  std::vector<int64_t> most;
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1 || number > kMostOngoing) {
      return std::nullopt;
    }
    most.push_back(number);
  }
  return most;
}

ScheduleTable TableOfOngoing(const std::vector<int64_t>& most, int64_t stages,
                             int64_t micro_batches) {
  constexpr int64_t kForwardTakes = 1, kBackwardTakes = 2;
  constexpr int64_t kNotYet = std::numeric_limits<int64_t>::max();
  struct Stage {
    int32_t forward = 0, back = 0;  // passes that it has begun
    int64_t free_at = 0;
    std::vector<int64_t> input, gradient;  // when each is there
  };
  const auto all = static_cast<size_t>(micro_batches);
  std::vector<Stage> at(stages);
  ScheduleTable table;
  table.stages.resize(stages);
  std::set<std::pair<int64_t, int64_t>> wakes;  // time, stage
  for (int64_t s = 0; s < stages; ++s) {
    at[s].input.assign(all, s == 0 ? 0 : kNotYet);
    at[s].gradient.assign(all, kNotYet);
    wakes.insert({0, s});
  }
  while (!wakes.empty()) {
    const auto [now, s] = *wakes.begin();
    wakes.erase(wakes.begin());
    Stage& stage = at[s];
    if (stage.free_at > now) continue;
    const int64_t bound = most.size() == 1 ? most[0] : most[s];
    const auto there = [&](const std::vector<int64_t>& of, int32_t number) {
      return number < micro_batches && of[number] <= now;
    };
    int64_t to = s;
    if (there(stage.gradient, stage.back)) {
      table.stages[s].push_back({Phase::kBackward, stage.back, 0});
      stage.free_at = now + kBackwardTakes;
      to = s > 0 ? s - 1 : s;
      if (s > 0) at[to].gradient[stage.back] = stage.free_at;
      ++stage.back;
    } else if (stage.forward - stage.back < bound && there(stage.input, stage.forward)) {
      table.stages[s].push_back({Phase::kForward, stage.forward, 0});
      stage.free_at = now + kForwardTakes;
      to = s + 1 < stages ? s + 1 : s;
      (to > s ? at[to].input : stage.gradient)[stage.forward] = stage.free_at;
      ++stage.forward;
    } else {
      continue;
    }
    wakes.insert({stage.free_at, s});
    wakes.insert({stage.free_at, to});
  }
  return table;
}

}  // namespace plancast
