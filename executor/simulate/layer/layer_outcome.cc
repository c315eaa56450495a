#include "executor/simulate/layer/layer_outcome.h"

#include <algorithm>

#include "executor/sharing/activity_kinds.h"
#include "executor/simulate/layer/slowed_work.h"

namespace plancast {
namespace {

constexpr int64_t kUnknown = -1;
constexpr int kCompute = static_cast<int>(StreamKind::kCompute);

}  // namespace

LayerStop LayerRunner::RunUntil(int64_t time, const int64_t* known, const Block& block,
                                const BlockIndex& index, const LayerCosts& costs,
                                const LayerConditions& conditions) {
  scratch_.resize(2 * index.size + 1);
  int64_t* const start = scratch_.data();
  int64_t* const end = start + index.size;
  if (known == nullptr || !GoBack(time, known, index, conditions, start, end)) {
    Begin(index, costs, conditions, start, end);
  }
  Go(block, index, costs, conditions, /*tails=*/{}, time, start, end);
  LayerStop stop;
  for (int i = 0; i < num_streams_; ++i) {
    const Stream& own = streams_[i];
    LayerStop::Stream& stream = stop.streams[own.index];
    stream.rank = own.rank;
    stream.runs = own.runs;
    if (!own.runs) continue;
    if (own.rank >= 0) stream.start = scratch_[own.order[own.rank]];
    stream.since = own.since;
    stream.left = own.left;
    stream.slow = own.slow;
    stream.work_left = own.work_left;
    if (!own.flows()) continue;
    stream.work_left =
        std::max<int128>(own.work_left - int128{own.rate_q16} * (time - own.since), 0);
    stream.since = time;
  }
  return stop;
}

void LayerRunner::Prepare(const BlockIndex& index) {
  num_streams_ = 0;
  compute_ = nullptr;
  for (int s = kNumStreams - 1; s >= 0; --s) {
    if ((index.streams >> s & 1) == 0) continue;
    Stream& stream = streams_[num_streams_++];
    stream = Stream();
    stream.index = s;
    stream.order = index.order.data() + index.order_begin[s];
    stream.count = index.Count(s);
    if (s == kCompute) compute_ = &stream;
  }
  comms_ = 0;
  now_ = 0;
}

void LayerRunner::Begin(const BlockIndex& index, const LayerCosts& costs,
                        const LayerConditions& conditions, int64_t* start, int64_t* end) {
  Prepare(index);
  std::fill_n(end, index.size, kUnknown);
  for (const LayerConditions::Ahead& ahead : conditions.ahead) {
    for (int i = 0; i < num_streams_; ++i) {
      if (streams_[i].index == ahead.stream) BeginAhead(costs, ahead, start, end, streams_[i]);
    }
  }
}

int64_t LayerRunner::Run(const Block& block, const BlockIndex& index, const LayerCosts& costs,
                         const LayerConditions& conditions, int64_t* start, int64_t* end,
                         const LayerTails& tails) {
  Begin(index, costs, conditions, start, end);
  Go(block, index, costs, conditions, tails, kNever, start, end);
  return now_;
}

LayerTails LayerRunner::TailsOf(const Block& block, const BlockIndex& index,
                                const LayerCosts& costs) {
  LayerTails tails(costs.interferes ? 2 : 1);
  for (LayerTail& tail : tails) {
    LayerConditions conditions;
    conditions.host = -costs.launch_ps * index.launches.back();
    if (&tail != tails.data()) conditions.toggles.push_back(0);
    tail.times.resize(2 * index.size);
    tail.begins.assign(index.Count(kCompute), kUnknown);
    found_ = &tail;
    tail.end =
        Run(block, index, costs, conditions, tail.times.data(), tail.times.data() + index.size);
    found_ = nullptr;
  }
  return tails;
}

bool LayerRunner::IsAt(const LayerTail& tail) const {
  for (int i = 0; i < num_streams_; ++i) {
    if (streams_[i].runs || streams_[i].next != kNever) return false;
  }
  const int32_t rank = compute_->rank;
  if (rank == compute_->count || tail.begins[rank] == kUnknown) return false;
  const int32_t* const ranks = tail.ranks.data() + rank * num_streams_;
  for (int i = 0; i < num_streams_; ++i) {
    if (streams_[i].rank != ranks[i]) return false;
  }
  return true;
}

void LayerRunner::Take(const LayerTail& tail, int32_t tasks, int64_t* start, int64_t* end) {
  const int64_t later = now_ - tail.begins[compute_->rank];
  for (int i = 0; i < num_streams_; ++i) {
    const Stream& stream = streams_[i];
    for (int32_t r = stream.rank; r < stream.count; ++r) {
      const int32_t task = stream.order[r];
      start[task] = tail.times[task] + later;
      end[task] = tail.times[tasks + task] + later;
    }
  }
  now_ = tail.end + later;
}

void LayerRunner::Record(LayerTail& tail) const {
  for (int i = 0; i < num_streams_; ++i) {
    if (streams_[i].runs || streams_[i].next != kNever) return;
  }
  if (compute_->rank == compute_->count) return;
  tail.begins[compute_->rank] = now_;
  tail.ranks.resize(static_cast<size_t>(compute_->count) * num_streams_);
  int32_t* const ranks = tail.ranks.data() + compute_->rank * num_streams_;
  for (int i = 0; i < num_streams_; ++i) ranks[i] = streams_[i].rank;
}

bool LayerRunner::GoBack(int64_t changed, const int64_t* known, const BlockIndex& index,
                         const LayerConditions& conditions, int64_t* start, int64_t* end) {
  const int64_t* const known_end = known + index.size;
  Prepare(index);
  int64_t from = changed;
  for (int i = 0; i < num_streams_; ++i) {
    Stream& stream = streams_[i];
    const int32_t* const over =
        std::partition_point(stream.order, stream.order + stream.count,
                             [&](int32_t task) { return known_end[task] <= from; });
    stream.rank = static_cast<int32_t>(over - stream.order);
  }
  for (bool again = true; again && from > 0;) {
    again = false;
    for (int i = 0; i < num_streams_; ++i) {
      Stream& stream = streams_[i];
      while (stream.rank > 0 && known_end[stream.order[stream.rank - 1]] > from) --stream.rank;
      if (stream.rank == stream.count || known[stream.order[stream.rank]] >= from) continue;
      from = known[stream.order[stream.rank]];
      again = true;
    }
  }
  const bool behind = conditions.Behind() != nullptr;
  if (from <= 0 || (behind && known_end[index.size] > from)) return false;
  std::copy_n(known, index.size, start);
  std::fill_n(end, index.size, kUnknown);
  if (behind) end[index.size] = known_end[index.size];
  for (int k = 0; k < num_streams_; ++k) {
    for (int32_t r = 0; r < streams_[k].rank; ++r) {
      const int32_t task = streams_[k].order[r];
      end[task] = known_end[task];
    }
  }
  now_ = from;
  return true;
}

int64_t LayerRunner::RunFrom(int64_t changed, const int64_t* known, const Block& block,
                             const BlockIndex& index, const LayerCosts& costs,
                             const LayerConditions& conditions, int64_t* start, int64_t* end,
                             const LayerTails& tails) {
  if (!GoBack(changed, known, index, conditions, start, end)) {
    return Run(block, index, costs, conditions, start, end, tails);
  }
  Go(block, index, costs, conditions, tails, kNever, start, end);
  return now_;
}

// What every step asks for is inlined.

inline bool LayerRunner::Begin(const Block& block, const BlockIndex& index, const LayerCosts& costs,
                               int64_t host, int64_t* start, int64_t* end, Stream& stream) {
  const int32_t t = stream.order[stream.rank];
  for (int32_t d = index.dep_begin[t]; d < index.dep_begin[t + 1]; ++d) {
    if (end[index.deps[d]] == kUnknown) return false;
  }
  stream.launched = 0;
  if (costs.hosted) {
    const int64_t first = host + costs.launch_ps * index.FirstLaunch(t);
    if (first > now_) {
      stream.next = first;
      return false;
    }
    stream.launched = host + costs.launch_ps * index.launches[t + 1];
  }
  const LayerCosts::Task& task = costs.tasks[t];
  start[t] = now_;
  stream.is_comm = block.kind[t] == TaskKind::kComm;
  stream.next = now_ + task.alone;
  if (!stream.is_comm) stream.next = std::max(stream.next, stream.launched);
  if (stream.next == now_) {
    end[t] = now_;
    ++stream.rank;
    stream.next = kNever;
    return true;
  }
  stream.runs = true;
  stream.slow = false;
  if (stream.is_comm) {
    stream.uses_no_sms = task.uses_no_sms;
    if (!stream.uses_no_sms) ++comms_;
    stream.since = now_ + task.delay;
    stream.work_left = task.work;
    stream.comm = &task;
    if (task.sharer >= 0) BeginShared(stream);
  } else {
    stream.since = now_;
    stream.left = task.alone;
    stream.slow = slow_;
    timed_ = !slow_;
  }
  return false;
}

// Rounds what is left whenever that changes.
inline void LayerRunner::SlowKernel(const LayerCosts& costs, bool slow) {
  slow_ = slow;
  if (!RunsKernel()) return;
  Stream& kernel = *compute_;
  kernel.left = WorkAfter(kernel.left, now_ - kernel.since, kernel.slow,
                          costs.tasks[kernel.order[kernel.rank]].slowdown_q20);
  kernel.since = now_;
  kernel.slow = slow;
  timed_ = false;
}

inline void LayerRunner::TimeKernel(const LayerCosts& costs) {
  Stream& kernel = *compute_;
  timed_ = true;
  const int64_t slowdown = costs.tasks[kernel.order[kernel.rank]].slowdown_q20;
  kernel.next =
      std::max(kernel.since + TimeOfWork(kernel.left, kernel.slow, slowdown), kernel.launched);
}

inline void LayerRunner::TimeComms(bool busy) {
  for (int i = 0; i < num_streams_; ++i) {
    Stream& comm = streams_[i];
    if (!comm.runs || !comm.is_comm || comm.uses_no_sms || comm.slow == busy) continue;
    const LayerCosts::Task& task = *comm.comm;
    if (task.sharer >= 0 || task.work == 0 || task.rate_q16 == task.slow_rate_q16) continue;
    if (now_ > comm.since) {
      const int64_t rate = comm.slow ? task.slow_rate_q16 : task.rate_q16;
      comm.work_left -= int128{rate} * (now_ - comm.since);
      comm.work_left = std::max<int128>(comm.work_left, 0);
      comm.since = now_;
    }
    comm.slow = busy;
    comm.next = comm.since +
                ActivityKinds::Duration(comm.work_left, busy ? task.slow_rate_q16 : task.rate_q16);
  }
}

void LayerRunner::BeginShared(Stream& stream) {
  stream.delayed = stream.since > now_;
  stream.rate_q16 = 0;
  stream.next = stream.delayed ? stream.since : kNever;
}

void LayerRunner::TimeShared(const LayerCosts& costs, bool busy) {
  Stream* flows[kMostSharing];
  int32_t rows[kMostSharing];
  int count = 0;
  for (int i = 0; i < num_streams_; ++i) {
    if (!streams_[i].flows()) continue;
    flows[count] = &streams_[i];
    rows[count++] = streams_[i].comm->sharer;
  }
  for (int i = 0; i < count; ++i) {
    Stream& own = *flows[i];
    int64_t rate = busy ? own.comm->slow_rate_q16 : own.comm->rate_q16;
    if (count == 2) rate = costs.RateBeside(rows[i], rows[1 - i], busy);
    if (count == 3) rate = costs.rate_of_three(rows[i], rows[(i + 1) % 3], rows[(i + 2) % 3], busy);
    if (rate == own.rate_q16 && own.next != kNever) continue;
    own.work_left = std::max<int128>(own.work_left - int128{own.rate_q16} * (now_ - own.since), 0);
    own.since = now_;
    own.rate_q16 = rate;
    const int64_t takes = ActivityKinds::Duration(own.work_left, rate);
    own.next = takes > kNever - now_ ? kNever : now_ + takes;
  }
}

inline bool LayerRunner::GoOnWithKernels(const Block& block, const BlockIndex& index,
                                         const LayerCosts& costs, int64_t host, int64_t limit,
                                         const LayerTail* alone, int64_t* start, int64_t* end) {
  Stream& kernel = *compute_;
  while (kernel.next < limit) {
    const int32_t over = kernel.order[kernel.rank];
    if (index.awaited[over] != 0) return false;
    now_ = kernel.next;
    end[over] = now_;
    kernel.runs = false;
    kernel.next = kNever;
    if (++kernel.rank == kernel.count) return true;
    const int32_t t = kernel.order[kernel.rank];
    if (block.kind[t] == TaskKind::kComm) return true;
    if (alone != nullptr && (found_ != nullptr || IsAt(*alone))) return true;
    if (Begin(block, index, costs, host, start, end, kernel) || !kernel.runs) return true;
    if (!timed_) TimeKernel(costs);
  }
  return false;
}

void LayerRunner::Go(const Block& block, const BlockIndex& index, const LayerCosts& costs,
                     const LayerConditions& conditions, const LayerTails& tails, int64_t stop,
                     int64_t* start, int64_t* end) {
  // From when on launches are ahead of all; if a tail may be of use.
  int64_t launched = costs.hosted ? conditions.host + costs.launch_ps * index.launches.back() : 0;
  if ((tails.empty() && found_ == nullptr) || compute_ == nullptr || stop != kNever) {
    launched = kNever;
  }
  bool foreign = false;
  const int64_t* toggle = conditions.toggles.data();
  const int64_t* const toggles_end = toggle + conditions.toggles.size();
  for (; toggle != toggles_end && *toggle < now_; ++toggle) foreign = !foreign;
  slow_ = foreign;
  while (true) {
    // What ends now goes before what begins now.
    if (toggle != toggles_end && *toggle <= now_ && foreign) {
      foreign = false;
      ++toggle;
    }
    for (int i = 0; i < num_streams_; ++i) {
      Stream& stream = streams_[i];
      if (!stream.runs || stream.next > now_) continue;
      if (stream.delayed) {
        stream.delayed = false;
        stream.next = kNever;
        continue;
      }
      end[stream.rank < 0 ? index.size : stream.order[stream.rank]] = now_;
      ++stream.rank;
      stream.runs = false;
      stream.next = kNever;
      comms_ -= stream.is_comm && !stream.uses_no_sms ? 1 : 0;
    }
    if (now_ >= stop) return;
    if (slow_ && !foreign && comms_ == 0) SlowKernel(costs, false);
    if (toggle != toggles_end && *toggle <= now_ && !foreign) {
      foreign = true;
      ++toggle;
    }
    const LayerTail* tail = nullptr;  // once nothing more comes between
    if (toggle == toggles_end && now_ >= launched && slow_ == foreign) {
      if (found_ != nullptr) {
        Record(*found_);
        tail = found_;
      } else if (static_cast<size_t>(foreign) < tails.size()) {
        tail = &tails[static_cast<size_t>(foreign)];
        if (IsAt(*tail)) return Take(*tail, index.size, start, end);
      }
    }
    for (bool again = true; again;) {
      again = false;
      for (int i = 0; i < num_streams_; ++i) {
        Stream& stream = streams_[i];
        while (!stream.runs && stream.rank < stream.count &&
               Begin(block, index, costs, conditions.host, start, end, stream)) {
          again = true;
        }
      }
    }
    if (costs.interferes && slow_ != (foreign || comms_ > 0)) SlowKernel(costs, !slow_);
    if (RunsKernel() && !timed_) TimeKernel(costs);
    if (comms_ > 0) TimeComms(RunsKernel());
    if (costs.sharers > 0) TimeShared(costs, RunsKernel());
    int64_t next = kNever;  // of all but kernels
    for (int i = 0; i < num_streams_; ++i) {
      if (&streams_[i] != compute_) next = std::min(next, streams_[i].next);
    }
    if (RunsKernel()) {
      const int64_t until = toggle != toggles_end ? std::min(*toggle, stop) : stop;
      const LayerTail* const alone = next == kNever ? tail : nullptr;
      if (GoOnWithKernels(block, index, costs, conditions.host, std::min(next, until), alone, start,
                          end)) {
        continue;
      }
    }
    if (compute_ != nullptr) next = std::min(next, compute_->next);
    if (next == kNever && stop == kNever) return;
    if (toggle != toggles_end) next = std::min(next, *toggle);
    now_ = std::min(next, stop);
  }
}

void LayerRunner::BeginAhead(const LayerCosts& costs, const LayerConditions::Ahead& ahead,
                             int64_t* start, int64_t* end, Stream& stream) {
  stream.rank = ahead.rank;
  for (int32_t r = 0; r < ahead.rank; ++r) start[stream.order[r]] = end[stream.order[r]] = 0;
  if (!ahead.runs) return;
  const bool behind = ahead.rank == LayerConditions::kBehind;
  const int32_t task = behind ? ahead.task : stream.order[ahead.rank];
  if (!behind) start[task] = 0;
  stream.runs = stream.is_comm = true;
  stream.comm = &costs.tasks[task];
  stream.uses_no_sms = stream.comm->uses_no_sms;
  stream.slow = false;
  stream.since = ahead.since;
  stream.work_left = ahead.work_left;
  stream.next = ahead.since + ActivityKinds::Duration(ahead.work_left, stream.comm->rate_q16);
  if (stream.comm->sharer >= 0) BeginShared(stream);
  if (!stream.uses_no_sms) ++comms_;
}

}  // namespace plancast
