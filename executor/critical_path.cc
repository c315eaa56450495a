#include "executor/critical_path.h"

#include <algorithm>
#include <vector>

#include "executor/breakdown.h"

namespace plancast {
namespace {

class Walk {
 public:
  // Among the entities [begin, end).
  Walk(const SimInput& in, const SimTrace& trace, int32_t begin, int32_t end)
      : in_(in),
        trace_(trace),
        begin_(begin),
        end_(end),
        kernel_ps_(in.graph.kernels.size()),
        comm_ps_(in.realised.size()) {}

  void Run() {
    if (!FindLast()) {
      path_.other += trace_.makespan_ps;
      return;
    }
    path_.other += trace_.makespan_ps - At(trace_.end, task_);
    while (true) {
      Charge();
      int32_t cause = CauseOfTask();
      if (cause <= SimTrace::PeerCause(0)) {
        GoToPeer(SimTrace::PeerOf(cause));
        cause = CauseOfTask();
      }
      if (cause == SimTrace::kHost) {
        const TaskTable& table = Table();
        const int32_t syncs = table.syncs_before.empty() ? 0 : table.syncs_before[task_];
        const int32_t sync = syncs > 0 ? table.sync_tasks[syncs - 1] : SimTrace::kBeginning;
        path_.launch += Start() - (sync < 0 ? in_.HostOf(entity_).start_ps : At(trace_.end, sync));
        cause = sync;
      }
      if (cause < 0) break;
      task_ = cause;
    }
    path_.other += in_.HostOf(entity_).start_ps;
  }

  void AddTo(SimResult& result) const {
    result.critical_path = path_;
    constexpr const char* kKnowledge[] = {"measured", "interpolated", "calibrated", "analytic",
                                          "extrapolated"};
    for (size_t k = 0; k < kernel_ps_.size(); ++k) {
      if (kernel_ps_[k] == 0) continue;
      const KernelCost& cost = in_.prices.costs[k];
      const double seconds = static_cast<double>(kernel_ps_[k]) * 1e-12;
      result.provenance_seconds[kKnowledge[static_cast<int>(cost.provenance.knowledge)]] += seconds;
      result.own_variance_s2 += seconds * cost.sigma * seconds * cost.sigma;
      AddFactor(cost.factor, seconds, cost.factor_sigma, result);
    }
    for (size_t c = 0; c < comm_ps_.size(); ++c) {
      if (comm_ps_[c] == 0) continue;
      AddFactor(in_.realised[c].factor, static_cast<double>(comm_ps_[c]) * 1e-12,
                in_.realised[c].factor_sigma, result);
    }
  }

 private:
  static void AddFactor(const std::string& factor, double seconds, double sigma,
                        SimResult& result) {
    if (factor.empty()) return;
    FactorShare& share = result.factors[factor];
    share.seconds += seconds;
    share.sigma = std::max(share.sigma, sigma);
  }

  const TaskTable& Table() const { return in_.tables[in_.sim.entities[entity_].program]; }
  int64_t At(const std::vector<int64_t>& column, int32_t task) const {
    return column[trace_.begin[entity_] + task];
  }
  int64_t Start() const { return At(trace_.start, task_); }
  int32_t CauseOfTask() const { return trace_.cause[trace_.begin[entity_] + task_]; }

  // The task that ends last; of several, that of the first entity and stream.
  bool FindLast() {
    int64_t latest = -1;
    for (int32_t e = begin_; e < end_; ++e) {
      const TaskTable& table = in_.tables[in_.sim.entities[e].program];
      for (int s = 0; s < kNumStreams; ++s) {
        if (table.stream_begin[s] == table.stream_begin[s + 1]) continue;
        const int32_t task = table.stream_begin[s + 1] - 1;
        const int64_t end = trace_.end[trace_.begin[e] + task];
        if (end <= latest) continue;
        latest = end;
        entity_ = e;
        task_ = task;
      }
    }
    return latest >= 0;
  }

  void Charge() {
    const TaskTable& table = Table();
    const bool is_comm = (table.flags[task_] & TaskTable::kIsComm) != 0;
    const int64_t whole = At(trace_.end, task_) - Start();
    int64_t tail = 0;
    if (is_comm) {
      comm_ps_[in_.sim.groups[GroupOfTask()].realised] += whole;
    } else {
      const int32_t kernel = table.spec[task_];
      const int64_t begin = trace_.begin[entity_];
      tail = LaunchTail(in_.HostOf(entity_), table, &trace_.start[begin], &trace_.end[begin], task_,
                        in_.graph.kernels[kernel].launches, in_.DurationOf(entity_, table, task_));
      kernel_ps_[kernel] += whole - tail;
    }
    PartFor(path_, table.purpose[task_], is_comm) += whole - tail;
    path_.launch += tail;
  }

  int32_t GroupOfTask() const {
    const TaskTable& table = Table();
    const int32_t spec = table.spec[task_];
    const bool meets = (table.flags[task_] & TaskTable::kMeets) != 0;
    return in_.sim.GroupOf(meets ? in_.uses.of_rendezvous[spec] : spec, entity_);
  }

  // The same communication on the member that came last.
  void GoToPeer(int32_t peer) {
    const TaskTable& table = Table();
    if ((table.flags[task_] & TaskTable::kMeets) != 0) {
      task_ = TaskAtRendezvous(in_.graph, in_.tables, table.spec[task_],
                               in_.sim.entities[peer].program);
    }
    entity_ = peer;
  }

  const SimInput& in_;
  const SimTrace& trace_;
  const int32_t begin_, end_;
  int32_t entity_ = 0, task_ = 0;
  Breakdown path_;
  std::vector<int64_t> kernel_ps_;  // per kernel
  std::vector<int64_t> comm_ps_;    // per realised collective
};

}  // namespace

void AttributeCriticalPath(const SimInput& input, const SimTrace& trace, SimResult& result,
                           int32_t begin, int32_t end) {
  Walk walk(input, trace, begin, end);
  walk.Run();
  walk.AddTo(result);
}

}  // namespace plancast
