#include "tests/executor/simulate/layer/plain_layer.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;
constexpr int64_t kEternity = 100'000;

}  // namespace

struct PlainLayer::State {
  struct Stream {
    int32_t rank = 0;
    int32_t before = -1;  // the task that it is still at before the layer
    bool runs = false;
    int64_t since = 0, left = 0, launched = 0;
    int128 work_left = 0;
    bool slow = false;
  };
  int64_t now = 0;
  Stream streams[kNumStreams];
  std::vector<bool> over;
  PlainTimes times;
};

PlainTimes PlainLayer::Run() const {
  State state;
  const auto size = static_cast<size_t>(index_.size);
  state.over.resize(size);
  state.times = {std::vector<int64_t>(size, -1), std::vector<int64_t>(size + 1, -1)};
  for (const LayerConditions::Ahead& ahead : conditions_.ahead) {
    State::Stream& stream = state.streams[ahead.stream];
    const int32_t* const order = index_.order.data() + index_.order_begin[ahead.stream];
    const bool behind = ahead.rank == LayerConditions::kBehind;
    stream.rank = behind ? 0 : ahead.rank;
    if (behind) stream.before = ahead.task;
    for (int32_t r = 0; r < ahead.rank; ++r) {
      state.times.start[order[r]] = state.times.end[order[r]] = 0;
    }
    if (!ahead.runs) continue;
    stream.runs = true;
    stream.since = ahead.since;
    stream.work_left = ahead.work_left;
    if (!behind) state.times.start[order[ahead.rank]] = 0;
  }
  return Go(std::move(state));
}

PlainTimes PlainLayer::GoOn(int64_t time, const LayerStop& stop) const {
  State state;
  state.now = time;
  const auto size = static_cast<size_t>(index_.size);
  state.over.resize(size);
  state.times = {std::vector<int64_t>(size, -1), std::vector<int64_t>(size + 1, -1)};
  for (int s = 0; s < kNumStreams; ++s) {
    const LayerStop::Stream& from = stop.streams[s];
    State::Stream& stream = state.streams[s];
    const bool behind = from.rank == LayerConditions::kBehind;
    if (behind) stream.before = conditions_.Behind()->task;
    stream.rank = behind ? 0 : from.rank;
    stream.runs = from.runs;
    if (!from.runs) continue;
    const int32_t task = behind ? stream.before : index_.order[index_.order_begin[s] + from.rank];
    const LayerCosts::Task& cost = costs_.tasks[task];
    if (!behind) state.times.start[task] = from.start;
    stream.since = from.since;
    stream.left = from.left;
    stream.slow = from.slow;
    stream.work_left = from.work_left;
    if (costs_.hosted && !behind) {
      stream.launched = conditions_.host + costs_.launch_ps * index_.launches[task + 1];
    }
    if (!behind && block_.kind[task] == TaskKind::kKernel) continue;
    const int64_t past = std::max<int64_t>(time - from.since, 0);
    stream.work_left -= int128{from.slow ? cost.slow_rate_q16 : cost.rate_q16} * past;
    stream.since += past;
  }
  return Go(std::move(state));
}

PlainTimes PlainLayer::Go(State state) const {
  const auto task_of = [&](int s) {
    const State::Stream& stream = state.streams[s];
    if (stream.before >= 0) return stream.before;
    return index_.order[index_.order_begin[s] + stream.rank];
  };
  const auto is_kernel = [&](int s) {
    const State::Stream& stream = state.streams[s];
    return stream.runs && stream.before < 0 && block_.kind[task_of(s)] == TaskKind::kKernel;
  };
  const auto count = [&](bool kernels) {
    int running = 0;
    for (int s = 0; s < kNumStreams; ++s)
      running += state.streams[s].runs && is_kernel(s) == kernels;
    return running;
  };
  // Whether others communicate: `begun` counts what begins at this time.
  const auto others = [&](bool begun) {
    bool on = false;
    for (size_t i = 0; i < conditions_.toggles.size(); ++i) {
      const int64_t at = conditions_.toggles[i];
      const bool begins = i % 2 == 0;
      if (at < state.now || (at == state.now && (!begins || begun))) on = begins;
    }
    return on;
  };
  const auto slow_kernels = [&](bool slow) {
    for (int s = 0; s < kNumStreams; ++s) {
      State::Stream& stream = state.streams[s];
      if (!is_kernel(s) || stream.slow == slow) continue;
      const int64_t past = state.now - stream.since;
      const int64_t slowdown = costs_.tasks[task_of(s)].slowdown_q20;
      stream.left =
          std::max<int64_t>(stream.left - (stream.slow ? past * kOne / slowdown : past), 0);
      stream.since = state.now;
      stream.slow = slow;
    }
  };
  const auto is_over = [&](int s) {
    const State::Stream& stream = state.streams[s];
    const LayerCosts::Task& cost = costs_.tasks[task_of(s)];
    if (!is_kernel(s)) return stream.work_left <= 0 && state.now >= stream.since;
    // Rounded up.
    const int64_t past = state.now - stream.since;
    const bool through =
        stream.slow ? past * kOne >= stream.left * cost.slowdown_q20 : past >= stream.left;
    return through && state.now >= stream.launched;
  };
  const auto begin = [&](int s) {
    State::Stream& stream = state.streams[s];
    const int32_t task = task_of(s);
    for (int32_t d = block_.dep_begin[task]; d < block_.dep_begin[task + 1]; ++d) {
      if (!state.over[block_.deps[d]]) return false;
    }
    stream.launched = 0;
    if (costs_.hosted) {
      const int32_t with = index_.launches[task + 1];
      if (state.now < conditions_.host + costs_.launch_ps * index_.first_launch[task]) {
        return false;
      }
      stream.launched = conditions_.host + costs_.launch_ps * with;
    }
    const LayerCosts::Task& cost = costs_.tasks[task];
    state.times.start[task] = state.now;
    stream.runs = true;
    stream.slow = false;
    stream.since = state.now + cost.delay;
    stream.left = cost.alone;
    stream.work_left = cost.work;
    return true;
  };
  const auto finish = [&](int s) {
    State::Stream& stream = state.streams[s];
    stream.runs = false;
    if (stream.before >= 0) {
      state.times.end.back() = state.now;
      stream.before = -1;
      return;
    }
    const int32_t task = task_of(s);
    state.times.end[task] = state.now;
    state.over[task] = true;
    ++stream.rank;
  };
  // What a transfer does in a picosecond.
  const auto rate_of = [&](int s) {
    const LayerCosts::Task& cost = costs_.tasks[task_of(s)];
    std::vector<int32_t> rows;  // of others on its links
    for (int other = 0; other < kNumStreams && cost.sharer >= 0; ++other) {
      const State::Stream& stream = state.streams[other];
      if (other == s || !stream.runs || is_kernel(other) || state.now < stream.since) continue;
      const int32_t row = costs_.tasks[task_of(other)].sharer;
      if (row >= 0) rows.push_back(row);
    }
    const bool busy = count(true) > 0;
    if (rows.size() == 1) return costs_.RateBeside(cost.sharer, rows[0], busy);
    if (rows.size() == 2) return costs_.rate_of_three(cost.sharer, rows[0], rows[1], busy);
    return busy ? cost.slow_rate_q16 : cost.rate_q16;
  };
  for (int s = 0; s < kNumStreams; ++s) {
    for (int32_t r = 0; r < state.streams[s].rank; ++r) {
      state.over[index_.order[index_.order_begin[s] + r]] = true;
    }
  }
  for (; state.now < kEternity; ++state.now) {
    for (int s = 0; s < kNumStreams; ++s) {
      if (state.streams[s].runs && is_over(s)) finish(s);
    }
    if (!costs_.interferes || (!others(false) && count(false) == 0)) slow_kernels(false);
    bool done = true;
    for (bool again = true; again;) {
      again = false;
      for (int s = 0; s < kNumStreams; ++s) {
        if (state.streams[s].runs || state.streams[s].rank == index_.Count(s) || !begin(s)) {
          continue;
        }
        again = true;
        if (is_over(s)) finish(s);
      }
    }
    if (costs_.interferes && (others(true) || count(false) > 0)) slow_kernels(true);
    // To the next picosecond.
    for (int s = 0; s < kNumStreams; ++s) {
      State::Stream& stream = state.streams[s];
      done = done && stream.before < 0 && stream.rank == index_.Count(s);
      if (!stream.runs || is_kernel(s) || state.now < stream.since) continue;
      stream.work_left -= rate_of(s);
    }
    if (done) return std::move(state.times);
  }
  PLANCAST_CHECK(false) << "a layer does not end";
  return {};
}

}  // namespace plancast
