#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "tests/executor/lower_reference.h"

namespace plancast {
namespace {

constexpr int64_t kNotYet = -1;
constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kOne = int64_t{1} << 20;
constexpr int128 kByte = (int128{1} << 16) * 1'000'000'000'000;

// Steps from one event to the next and looks at everything each time.
class Stepper {
 public:
  Stepper(const ReferenceLowering& lowering, std::vector<ReferenceHost> hosts,
          LinkSharing link_sharing, int64_t comm_slowdown_q20)
      : in_(lowering),
        hosts_(std::move(hosts)),
        link_sharing_(link_sharing),
        comm_slowdown_q20_(comm_slowdown_q20),
        meetings_(lowering.meetings.size()),
        kernels_(lowering.ranks.size()),
        in_flight_(lowering.ranks.size()) {
    for (const ReferenceRank& rank : in_.ranks) {
      times_.start.emplace_back(rank.tasks.size(), kNotYet);
      times_.end.emplace_back(rank.tasks.size(), kNotYet);
      std::map<int32_t, Queue>& queues = queues_.emplace_back();
      for (size_t t = 0; t < rank.tasks.size(); ++t) {
        queues[rank.tasks[t].stream].tasks.push_back(static_cast<int32_t>(t));
      }
    }
  }

  ReferenceTimes Run() {
    while (true) {
      while (Step()) {
      }
      TimeKernels();
      Share();
      const int64_t next = NextEvent();
      if (next == kNever) break;
      for (Meeting& meeting : meetings_) {
        if (!meeting.flows) continue;
        meeting.left = std::max<int128>(meeting.left - int128{meeting.rate} * (next - now_), 0);
      }
      now_ = next;
    }
    for (size_t rank = 0; rank < in_.ranks.size(); ++rank) {
      const int64_t begin = BeginOf(rank);
      for (int64_t end : times_.end[rank]) {
        if (end == kNotYet) times_.deadlock = true;
        times_.makespan_ps = std::max(times_.makespan_ps, end - begin);
      }
    }
    for (const ReferenceHost& host : hosts_) {
      times_.makespan_ps = std::max(times_.makespan_ps, host.start_ps);
    }
    return std::move(times_);
  }

 private:
  struct Meeting {
    std::vector<std::pair<int64_t, int32_t>> arrived;  // (rank, task)
    int64_t start = kNotYet, flow_at = kNotYet;
    bool flows = false, over = false;
    int128 left = 0;
    int64_t rate = 0;
  };

  struct Queue {
    std::vector<int32_t> tasks;
    size_t next = 0;
  };

  // A kernel that runs.
  struct Kernel {
    int32_t task = 0;
    int64_t left = 0, since = 0;  // picoseconds alone that were left then
    int64_t launched = 0;         // it ends no earlier
  };

  // What the iteration of a rank is counted from: its first kernel, less what the host did before.
  int64_t BeginOf(size_t rank) const {
    if (!in_.overlaps_iterations) return 0;
    const auto compute = queues_[rank].find(static_cast<int32_t>(StreamKind::kCompute));
    if (compute == queues_[rank].end() || compute->second.tasks.empty()) return 0;
    return times_.start[rank][compute->second.tasks[0]] - hosts_[rank].start_ps;
  }

  // When the host launches a task, or kNotYet.
  std::pair<int64_t, int64_t> LaunchOf(int64_t rank, int32_t task) const {
    const ReferenceHost& params = hosts_[rank];
    int64_t host = params.start_ps, first = 0;
    for (int32_t t = 0; t <= task; ++t) {
      const ReferenceTask& launched = in_.ranks[rank].tasks[t];
      if (params.cuda_graphs && launched.captured) {
        if (launched.begins_graph) host += params.graph_launch_ps;
        first = host;
      } else {
        host += params.launch_ps * launched.calls;
        first = host + (launched.launches > 0 ? params.launch_ps : 0);
        host += params.launch_ps * launched.launches;
      }
      if (t < task && in_.ranks[rank].tasks[t].host_sync) {
        const int64_t end = times_.end[rank][t];
        if (end == kNotYet || end > now_) return {kNotYet, kNotYet};
        host = end + params.sync_ps;
      }
    }
    return {first, host};
  }

  // Whether the next task of a queue has nothing more to wait for.
  bool Ready(int64_t rank, const Queue& queue) const {
    const auto over = [&](int32_t t) {
      return times_.end[rank][t] != kNotYet && times_.end[rank][t] <= now_;
    };
    if (queue.next == queue.tasks.size()) return false;
    if (queue.next > 0 && !over(queue.tasks[queue.next - 1])) return false;
    const std::vector<int32_t>& deps = in_.ranks[rank].tasks[queue.tasks[queue.next]].deps;
    return std::all_of(deps.begin(), deps.end(), over);
  }

  // Does everything that happens now; true if anything did.
  bool Step() {
    bool changed = false;
    pending_launch_ = kNever;
    for (size_t m = 0; m < meetings_.size(); ++m) {
      Meeting& meeting = meetings_[m];
      if (meeting.flows && meeting.left == 0) {
        End(m);
        changed = true;
      } else if (meeting.start != kNotYet && !meeting.flows && !meeting.over &&
                 meeting.flow_at <= now_) {
        meeting.flows = true;
        meeting.left = in_.meetings[m].realised.work_bytes * kByte;
        changed = true;
      }
    }
    for (int64_t rank = 0; rank < static_cast<int64_t>(in_.ranks.size()); ++rank) {
      for (auto& [stream, queue] : queues_[rank]) {
        if (!Ready(rank, queue)) continue;
        const int32_t t = queue.tasks[queue.next];
        const auto [first, last] = LaunchOf(rank, t);
        if (first == kNotYet) continue;
        if (first > now_) {
          pending_launch_ = std::min(pending_launch_, first);
          continue;
        }
        Begin(rank, t, last);
        ++queue.next;
        changed = true;
      }
    }
    return changed;
  }

  void Begin(int64_t rank, int32_t t, int64_t last_launch) {
    const ReferenceTask& task = in_.ranks[rank].tasks[t];
    times_.start[rank][t] = now_;
    if (!task.is_comm) {
      // Unless it takes no time, its end is found when all that begins now is known.
      times_.end[rank][t] = std::max(now_ + task.duration_ps, last_launch);
      kernels_[rank].push_back({t, task.duration_ps, now_, last_launch});
      return;
    }
    Meeting& meeting = meetings_[task.meeting];
    meeting.arrived.emplace_back(rank, t);
    if (meeting.arrived.size() < in_.meetings[task.meeting].ranks.size()) return;
    meeting.start = now_;
    meeting.flow_at = now_ + in_.meetings[task.meeting].realised.delay_ps;
  }

  void End(size_t m) {
    Meeting& meeting = meetings_[m];
    meeting.flows = false;
    meeting.over = true;
    for (const auto& [rank, t] : meeting.arrived) {
      times_.start[rank][t] = meeting.start;
      times_.end[rank][t] = now_;
    }
  }

  // Kernels take longer while a communication of their rank is in flight. What is
  // left of one is rounded to whole picoseconds when one begins alongside none, and
  // when all that were in flight end at once.
  void TimeKernels() {
    std::vector<std::set<size_t>> in_flight(kernels_.size());
    for (size_t m = 0; m < meetings_.size(); ++m) {
      if (meetings_[m].start == kNotYet || meetings_[m].over) continue;
      if (in_.meetings[m].realised.uses_no_sms) continue;
      for (int64_t rank : in_.meetings[m].ranks) in_flight[rank].insert(m);
    }
    for (size_t rank = 0; rank < kernels_.size(); ++rank) {
      const std::set<size_t>&before = in_flight_[rank], &after = in_flight[rank];
      const bool lasts = std::any_of(before.begin(), before.end(),
                                     [&after](size_t m) { return after.count(m) > 0; });
      const int128 slowdown = hosts_[rank].slowdown_q20;
      std::vector<Kernel> running;
      for (Kernel kernel : kernels_[rank]) {
        int64_t& end = times_.end[rank][kernel.task];
        if (end <= now_) continue;
        if (before.empty() ? !after.empty() : !lasts) {
          const int128 past = now_ - kernel.since;
          const int128 done = before.empty() ? past : past * kOne / slowdown;
          kernel.left = static_cast<int64_t>(std::max<int128>(kernel.left - done, 0));
          kernel.since = now_;
        }
        const int128 lasting =
            after.empty() ? kernel.left : CeilDiv<int128>(kernel.left * slowdown, kOne);
        end = std::max(kernel.since + static_cast<int64_t>(lasting), kernel.launched);
        running.push_back(kernel);
      }
      kernels_[rank] = std::move(running);
    }
    in_flight_ = std::move(in_flight);
  }

  // Max-min by filling everything up together, one priority after the other.
  void Share() {
    std::vector<int> all;
    std::map<int32_t, std::vector<int>> classes;
    for (size_t m = 0; m < meetings_.size(); ++m) {
      if (!meetings_[m].flows) continue;
      all.push_back(static_cast<int>(m));
      const bool by_priority = link_sharing_ == LinkSharing::kPriority;
      classes[by_priority ? in_.meetings[m].priority : 0].push_back(all.back());
    }
    std::vector<int128> left(in_.capacity.size()), demand(in_.capacity.size());
    for (size_t r = 0; r < left.size(); ++r) left[r] = int128{in_.capacity[r]} << 36;
    for (int m : all) {
      for (const auto& [r, coefficient] : in_.meetings[m].loads) {
        demand[r] += int128{coefficient} * (int128{Cap(m)} << 16);
      }
    }
    std::vector<bool> binds(left.size());
    for (size_t r = 0; r < left.size(); ++r) binds[r] = demand[r] > left[r];
    for (const auto& [priority, members] : classes) FillUp(members, binds, left);
  }

  void FillUp(std::vector<int> rising, const std::vector<bool>& binds, std::vector<int128>& left) {
    while (!rising.empty()) {
      std::vector<int128> weight(left.size());
      for (int m : rising) {
        for (const auto& [r, coefficient] : in_.meetings[m].loads) weight[r] += coefficient;
      }
      const auto level = [&](int32_t r) { return left[r] / weight[r]; };
      int128 lowest = int128{1} << 100;
      for (int m : rising) {
        lowest = std::min(lowest, int128{Cap(m)} << 16);
        for (const auto& [r, coefficient] : in_.meetings[m].loads) {
          if (binds[r]) lowest = std::min(lowest, level(r));
        }
      }
      std::vector<int> stopped, still;
      for (int m : rising) {
        bool stops = lowest == int128{Cap(m)} << 16;
        for (const auto& [r, coefficient] : in_.meetings[m].loads) {
          stops = stops || (binds[r] && level(r) == lowest);
        }
        (stops ? stopped : still).push_back(m);
      }
      for (int m : stopped) {
        meetings_[m].rate = static_cast<int64_t>(lowest);
        for (const auto& [r, coefficient] : in_.meetings[m].loads) left[r] -= coefficient * lowest;
      }
      rising = still;
    }
  }

  // A communication is slower while a kernel runs on any of its ranks.
  int64_t Cap(int m) const {
    const int64_t cap = std::max<int64_t>(in_.meetings[m].realised.rate_cap_bytes_per_s, 1);
    const std::vector<int64_t>& ranks = in_.meetings[m].ranks;
    const bool beside = std::any_of(ranks.begin(), ranks.end(),
                                    [this](int64_t rank) { return !kernels_[rank].empty(); });
    if (!beside || in_.meetings[m].realised.uses_no_sms) return cap;
    return std::max<int64_t>(static_cast<int64_t>(int128{cap} * kOne / comm_slowdown_q20_), 1);
  }

  int64_t NextEvent() const {
    int64_t next = pending_launch_;
    for (const Meeting& meeting : meetings_) {
      if (meeting.flows) {
        if (meeting.rate == 0 && meeting.left > 0) continue;
        const int128 end = now_ + CeilDiv<int128>(meeting.left, meeting.rate);
        next = std::min(next, SaturateToInt64(end));
      } else if (meeting.start != kNotYet && !meeting.over) {
        next = std::min(next, meeting.flow_at);
      }
    }
    for (size_t rank = 0; rank < queues_.size(); ++rank) {
      for (const auto& [stream, queue] : queues_[rank]) {
        if (queue.next == 0) continue;
        const int64_t end = times_.end[rank][queue.tasks[queue.next - 1]];
        if (end > now_) next = std::min(next, end);
      }
    }
    return next;
  }

  const ReferenceLowering& in_;
  const std::vector<ReferenceHost> hosts_;  // per rank
  const LinkSharing link_sharing_;
  const int64_t comm_slowdown_q20_;
  int64_t now_ = 0;
  int64_t pending_launch_ = kNever;
  std::vector<Meeting> meetings_;
  std::vector<std::map<int32_t, Queue>> queues_;  // per rank, by stream
  std::vector<std::vector<Kernel>> kernels_;      // per rank: those that run
  std::vector<std::set<size_t>> in_flight_;       // per rank: meetings since the last event
  ReferenceTimes times_;
};

}  // namespace

ReferenceTimes RunReference(const ReferenceLowering& lowering, const ReferenceHost& host,
                            LinkSharing link_sharing, int64_t comm_slowdown_q20) {
  return RunReference(lowering, std::vector<ReferenceHost>(lowering.ranks.size(), host),
                      link_sharing, comm_slowdown_q20);
}

ReferenceTimes RunReference(const ReferenceLowering& lowering, std::vector<ReferenceHost> hosts,
                            LinkSharing link_sharing, int64_t comm_slowdown_q20) {
  return Stepper(lowering, std::move(hosts), link_sharing, comm_slowdown_q20).Run();
}

}  // namespace plancast
