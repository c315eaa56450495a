#include "executor/breakdown.h"

#include <algorithm>

namespace plancast {
namespace {

class Accounts {
 public:
  Accounts(const SimInput& in, const SimTrace& trace, int32_t entity)
      : in_(in),
        table_(in.tables[in.sim.entities[entity].program]),
        host_(in.HostOf(entity)),
        entity_(entity),
        start_(&trace.start[trace.begin[entity]]),
        end_(&trace.end[trace.begin[entity]]),
        cause_(&trace.cause[trace.begin[entity]]),
        makespan_(trace.makespan_ps) {}

  Breakdown Settle() && {
    // What comes before the first launch is fixed work of the iteration.
    sum_.other += host_.start_ps;
    int64_t at = host_.start_ps;
    const int compute = static_cast<int>(StreamKind::kCompute);
    for (int32_t t = table_.stream_begin[compute]; t < table_.stream_begin[compute + 1]; ++t) {
      if (start_[t] > at) Wait(at, t);
      Busy(t);
      at = end_[t];
    }
    Tail(at);
    return sum_;
  }

 private:
  bool IsComm(int32_t task) const { return (table_.flags[task] & TaskTable::kIsComm) != 0; }

  // A task of the compute stream.
  void Busy(int32_t task) {
    int64_t tail = 0;
    if (!IsComm(task)) {
      const int32_t kernel = table_.spec[task];
      tail = LaunchTail(host_, table_, start_, end_, task, in_.graph.kernels[kernel].launches,
                        in_.DurationOf(entity_, table_, task));
    }
    PartFor(sum_, table_.purpose[task], IsComm(task)) += end_[task] - start_[task] - tail;
    sum_.launch += tail;
  }

  // Nothing ran in [from, start of `task`).
  void Wait(int64_t from, int32_t task) {
    while (start_[task] > from) {
      const int32_t cause = cause_[task];
      if (cause == SimTrace::kHost) {
        const int32_t sync = SyncBefore(task);
        const int64_t on = sync < 0 ? from : std::max(from, end_[sync]);
        sum_.launch += start_[task] - on;
        if (on == from) return;
        // The host itself waited for a task.
        task = Charge(from, sync);
      } else if (cause >= 0) {
        task = Charge(from, cause);
      } else {
        sum_.bubble += start_[task] - from;
        return;
      }
    }
  }

  // The part of a task after `from` counts for it; what came before, for what it
  // waited for.
  int32_t Charge(int64_t from, int32_t task) {
    PartFor(sum_, table_.purpose[task], IsComm(task)) +=
        std::max<int64_t>(end_[task] - std::max(from, start_[task]), 0);
    return task;
  }

  int32_t SyncBefore(int32_t task) const {
    if (table_.syncs_before.empty() || table_.syncs_before[task] == 0) return -1;
    return table_.sync_tasks[table_.syncs_before[task] - 1];
  }

  // Nothing is computed after `from`.
  void Tail(int64_t from) {
    struct Span {
      int64_t start, end;
      int32_t task;
      bool operator<(const Span& o) const {
        return start != o.start ? start < o.start : task < o.task;
      }
    };
    std::vector<Span> running;
    for (int s = 1; s < kNumStreams; ++s) {
      for (int32_t t = table_.stream_begin[s + 1] - 1; t >= table_.stream_begin[s]; --t) {
        if (end_[t] <= from) break;
        running.push_back({start_[t], end_[t], t});
      }
    }
    std::sort(running.begin(), running.end());
    for (const Span& span : running) {
      if (span.end <= from) continue;
      sum_.bubble += std::max<int64_t>(span.start - from, 0);
      from = std::max(from, span.start);
      PartFor(sum_, table_.purpose[span.task], IsComm(span.task)) += span.end - from;
      from = span.end;
    }
    sum_.bubble += makespan_ - from;
  }

  const SimInput& in_;
  const TaskTable& table_;
  const HostParams& host_;
  const int32_t entity_;
  const int64_t* start_;
  const int64_t* end_;
  const int32_t* cause_;
  const int64_t makespan_;
  Breakdown sum_;
};

}  // namespace

int64_t& PartFor(Breakdown& breakdown, Purpose purpose, bool is_comm) {
  switch (purpose) {
    case Purpose::kForward:
    case Purpose::kBackward:
      return is_comm ? breakdown.other : breakdown.compute;
    case Purpose::kRecompute:
      return breakdown.recompute;
    case Purpose::kTp:
      return breakdown.exposed_tp;
    case Purpose::kDp:
      return breakdown.exposed_dp;
    case Purpose::kPp:
      return breakdown.exposed_pp;
    case Purpose::kCp:
      return breakdown.exposed_cp;
    case Purpose::kEp:
      return breakdown.exposed_ep;
    case Purpose::kOptimizer:
      return breakdown.optimizer;
    case Purpose::kOther:
      break;
  }
  return breakdown.other;
}

Breakdown BreakdownOf(const SimInput& input, const SimTrace& trace, int32_t entity) {
  return Accounts(input, trace, entity).Settle();
}

int64_t Breakdown::total() const {
  return compute + recompute + exposed_tp + exposed_dp + exposed_pp + exposed_cp + exposed_ep +
         bubble + launch + optimizer + other;
}

}  // namespace plancast
