#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "executor/gradients/gradient_run.h"

namespace plancast {
namespace {

using Kind = GradientTask::Kind;

// All ranks together; a task takes some hundred bytes.
constexpr int64_t kMostTasks = 8'000'000;
// Into DagJob::queues. What is done inside of hosts takes turns there.
constexpr int32_t kReduces = 0, kPushes = 1, kPulls = 2, kNumQueues = 3;

// Gradients that are sent together, of neighbouring units; `first` is that which runs forward
// first, and so the last whose gradients are made.
struct Message {
  int32_t first = 0;
  int64_t bytes = 0, update_ps = 0;
  int32_t begin = 0;           // of its parts
  std::vector<int64_t> parts;  // bytes
};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Maker {
 public:
  Maker(const std::vector<GradientUnit>& units, const GradientTraffic& traffic,
        const Machine& machine)
      : units_(units), traffic_(traffic), spec_(machine.spec()) {
    job_.workers = (spec_.hosts - traffic.server_hosts) * spec_.gpus_per_host;
    const int64_t hosts = spec_.hosts - traffic.server_hosts;
    const bool inside = traffic.server_hosts > 0 && traffic.sums_in_hosts;
    local_ = inside ? spec_.gpus_per_host : 1;
    senders_ = job_.workers / local_;
    const int64_t ports = std::clamp<int64_t>(spec_.nics_per_host, 1, spec_.gpus_per_host);
    for (int64_t h = hosts; h < spec_.hosts; ++h) {
      for (int64_t p = 0; p < ports; ++p) {
        servers_.push_back(h * spec_.gpus_per_host + p * (spec_.gpus_per_host / ports));
      }
    }
    // What it reads and adds to, and the sum that it writes.
    const double memory = spec_.host_memory_bytes_per_s / static_cast<double>(ports);
    sum_s_per_byte_ = memory > 0 ? 3 / memory : 0;
    message_of_.assign(units.size(), -1);
  }

  absl::StatusOr<GradientJob> Make() {
    Cut();
    RETURN_IF_ERROR(CheckSize());
    DagJob& dags = job_.dags;
    for (int32_t q = 0; q < kNumQueues; ++q) {
      // Inside of hosts, one after the other on their communicator.
      const bool inside = traffic_.server_hosts > 0 && q == kReduces;
      const int64_t credit = inside ? 1 : std::max<int64_t>(traffic_.credit_bytes, 1);
      dags.queues.push_back({traffic_.by_priority, credit, traffic_.credit_bytes == 0});
    }
    const int64_t ranks = spec_.hosts * spec_.gpus_per_host;
    dags.dag_of.assign(ranks, 0);
    if (traffic_.server_hosts == 0) {
      AddGroup(0, job_.workers);
      dags.dags.push_back(WorkerDag(0, 0, /*watched=*/true));
    } else {
      for (int64_t w = 0; w < job_.workers; ++w) {
        if (local_ > 1 && w % local_ == 0) AddGroup(w, w + local_);
        if (local_ == 1 && w > 0) continue;  // all do the same
        dags.dag_of[w] = static_cast<int32_t>(dags.dags.size());
        dags.dags.push_back(WorkerDag(static_cast<int32_t>(w / local_), w % local_, w == 0));
      }
      const auto idle = static_cast<int32_t>(dags.dags.size());
      dags.dags.emplace_back();
      for (int64_t r = job_.workers; r < ranks; ++r) dags.dag_of[r] = idle;
      for (size_t s = 0; s < servers_.size(); ++s) {
        dags.dag_of[servers_[s]] = static_cast<int32_t>(dags.dags.size());
        dags.dags.push_back(ServerDag(static_cast<int64_t>(s)));
      }
    }
    return std::move(job_);
  }

 private:
  // Messages in the order in which backward passes make them, and their parts.
  void Cut() {
    for (auto u = static_cast<int32_t>(units_.size()) - 1; u >= 0; --u) {
      if (units_[u].bytes == 0) continue;
      const bool first = messages_.size() <= 1 && traffic_.first_bucket_bytes > 0;
      const int64_t full = first ? traffic_.first_bucket_bytes : traffic_.bucket_bytes;
      if (messages_.empty() || messages_.back().bytes >= std::max<int64_t>(full, 1)) {
        messages_.emplace_back();
      }
      Message& message = messages_.back();
      message.first = u;
      message.bytes += units_[u].bytes;
      message.update_ps += units_[u].update_ps;
      message_of_[u] = static_cast<int32_t>(messages_.size()) - 1;
    }
    const auto servers = static_cast<int64_t>(servers_.size());
    for (Message& message : messages_) {
      message.begin = static_cast<int32_t>(job_.parts);
      const int64_t most = traffic_.partition_bytes > 0 ? traffic_.partition_bytes
                           : Spreads(message.bytes)     ? CeilDiv(message.bytes, servers)
                                                        : message.bytes;
      if (CeilDiv(message.bytes, most) > kMostTasks) {
        job_.parts = kMostTasks + 1;
        return;
      }
      for (int64_t left = message.bytes; left > 0; left -= message.parts.back()) {
        message.parts.push_back(std::min(left, most));
      }
      job_.parts += static_cast<int64_t>(message.parts.size());
    }
    job_.messages = static_cast<int64_t>(messages_.size());
    if (traffic_.flag_bytes > 0) {
      flags_.bytes = traffic_.flag_bytes;
      flags_.begin = static_cast<int32_t>(job_.parts++);
      flags_.parts = {flags_.bytes};
    }
  }

  bool Spreads(int64_t bytes) const {
    return !servers_.empty() && traffic_.spread_bytes > 0 && bytes >= traffic_.spread_bytes;
  }

  absl::Status CheckSize() const {
    const int64_t sends = traffic_.each_pass_sends ? traffic_.passes : 1;
    const int64_t dags = traffic_.server_hosts > 0 ? 8 * job_.workers : job_.workers;
    const int64_t passes = static_cast<int64_t>(units_.size()) * 2 * traffic_.passes;
    if (job_.parts > kMostTasks || sends > kMostTasks || dags > kMostTasks || passes > kMostTasks ||
        static_cast<double>(job_.parts * sends + passes) * static_cast<double>(dags) >
            static_cast<double>(kMostTasks)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradients would be sent in too many parts (", job_.parts, " for each backward pass of ",
          job_.workers, " workers). Take larger partitions, larger buckets or fewer workers."));
    }
    return absl::OkStatus();
  }

  void AddGroup(int64_t begin, int64_t end) {
    job_.dags.groups.emplace_back();
    for (int64_t r = begin; r < end; ++r) job_.dags.groups.back().push_back(r);
  }

  int32_t Add(RankDag* dag, bool watched, const DagTask& task, const GradientTask& what,
              const std::vector<int32_t>& waits_for) {
    dag->Add(task, waits_for);
    if (watched) job_.tasks.push_back(what);
    return static_cast<int32_t>(dag->tasks.size()) - 1;
  }

  DagTask Kernel(int64_t ps) const {
    DagTask task;
    task.kind = DagTask::Kind::kKernel;
    task.duration_ps = ps;
    return task;
  }

  DagTask Comm(DagTask::Kind kind, int64_t bytes, int32_t queue, int32_t priority) const {
    DagTask task;
    task.kind = kind;
    task.bytes = bytes;
    task.queue = queue;
    task.priority = priority;
    task.overhead_ps = traffic_.overhead_ps;
    if (traffic_.line.has_value()) {
      const auto n = static_cast<double>(job_.workers);
      const double times = kind == DagTask::Kind::kCollective ? 2 * (n - 1) / n : 1;
      task.takes_ps =
          RoundToPicoseconds(times * (static_cast<double>(bytes) + traffic_.line->half_bytes) /
                             traffic_.line->bytes_per_s);
    }
    return task;
  }

  // Inside of a host, before shares of it go to servers and after they come back.
  DagTask Inside(CollectiveKind kind, int32_t host, int64_t bytes, int32_t queue,
                 int32_t priority) const {
    DagTask task = Comm(DagTask::Kind::kCollective, bytes, queue, priority);
    task.collective = kind;
    task.group = host;
    task.overhead_ps = 0;
    task.takes_ps = -1;
    return task;
  }

  int64_t ShareOf(int64_t part) const { return CeilDiv(part, local_); }
  int64_t ServerOf(int64_t part, int64_t local) const {
    return (part * local_ + local) % static_cast<int64_t>(servers_.size());
  }
  int64_t TagOf(int64_t send, int64_t part, int64_t local) const {
    return (send * job_.parts + part) * local_ + local;
  }

  // A part of a message once `made` is over; returns what brings its sum.
  int32_t SendPart(RankDag* dag, bool watched, int32_t host, int64_t local, const Message& message,
                   size_t index, int64_t send, int32_t made) {
    const int32_t first = message.first;
    const int64_t bytes = message.parts[index];
    if (traffic_.server_hosts == 0) {
      return Add(dag, watched, Comm(DagTask::Kind::kCollective, bytes, kReduces, first),
                 {Kind::kReduce, first, bytes}, {made});
    }
    const int64_t part = message.begin + static_cast<int64_t>(index), share = ShareOf(bytes);
    if (local_ > 1) {
      made = Add(dag, watched, Inside(CollectiveKind::kReduceScatter, host, bytes, kReduces, first),
                 {Kind::kReduce, first, bytes}, {made});
    }
    DagTask push = Comm(DagTask::Kind::kSend, share, kPushes, first);
    push.peer = servers_[ServerOf(part, local)];
    push.tag = TagOf(send, part, local);
    Add(dag, watched, push, {Kind::kPush, first, share}, {made});
    DagTask pull = push;
    pull.kind = DagTask::Kind::kRecv;
    pull.queue = -1;
    const int32_t pulled = Add(dag, watched, pull, {Kind::kPull, first, share}, {});
    if (local_ == 1) return pulled;
    return Add(dag, watched, Inside(CollectiveKind::kAllGather, host, bytes, kReduces, first),
               {Kind::kGather, first, bytes}, {pulled});
  }

  RankDag WorkerDag(int32_t host, int64_t local, bool watched) {
    RankDag dag;
    int32_t last = -1;
    const auto then = [&](int64_t ps, Kind kind, int32_t unit, std::vector<int32_t> waits_for) {
      if (last >= 0) waits_for.push_back(last);
      last = Add(&dag, watched, Kernel(ps), {kind, unit, 0}, waits_for);
      return last;
    };
    const auto units = static_cast<int32_t>(units_.size());
    for (int64_t pass = 0; pass < traffic_.passes; ++pass) {
      const bool sends = pass == 0 || traffic_.each_pass_sends;
      // Only the first, which ends an iteration, is followed by an update.
      const bool updates = pass == 0;
      std::vector<std::vector<int32_t>> sums(messages_.size());
      std::vector<int32_t> all;
      for (int32_t u = units - 1; u >= 0; --u) {
        const int32_t m = message_of_[u];
        const int64_t pack_ps =
            sends && m >= 0 ? Kernels(units_[u].bytes, traffic_.pack_s_per_byte) : 0;
        const int32_t made = then(units_[u].backward_ps + pack_ps, Kind::kBackward, u, {});
        if (!sends || m < 0 || messages_[m].first != u) continue;
        for (size_t i = 0; i < messages_[m].parts.size(); ++i) {
          sums[m].push_back(SendPart(&dag, watched, host, local, messages_[m], i, pass, made));
          all.push_back(sums[m].back());
        }
      }
      if (sends && traffic_.flag_bytes > 0) {
        all.push_back(SendPart(&dag, watched, host, local, flags_, 0, pass, last));
      }
      const bool whole = traffic_.waits_for_all || !updates;
      if (sends && whole && traffic_.unpack_s_per_byte > 0) {
        // As DDP does when the backward pass is over: bucket by bucket.
        for (size_t m = 0; m < messages_.size(); ++m) {
          then(Kernels(messages_[m].bytes, traffic_.unpack_s_per_byte), Kind::kUnpack,
               messages_[m].first, sums[m]);
        }
      }
      if (sends && whole && updates && UpdateOfAll() > 0) {
        then(UpdateOfAll(), Kind::kUpdate, 0, std::exchange(all, {}));
      }
      if (updates && traffic_.host_ps > 0) {
        DagTask host;
        host.kind = DagTask::Kind::kHost;
        host.duration_ps = traffic_.host_ps;
        std::vector<int32_t> waits_for = whole ? std::exchange(all, {}) : std::vector<int32_t>();
        waits_for.push_back(last);
        last = Add(&dag, watched, host, {Kind::kHost, 0, 0}, waits_for);
      }
      // Updates run as soon as they can, between the units of the forward pass.
      std::vector<int32_t> ready(messages_.size(), -1);
      for (int32_t u = 0; u < units; ++u) {
        std::vector<int32_t> waits_for = std::exchange(all, {});
        if (const int32_t m = message_of_[u]; m >= 0 && sends && !whole) {
          waits_for.clear();
          const int64_t ready_ps =
              messages_[m].update_ps + Kernels(messages_[m].bytes, traffic_.unpack_s_per_byte);
          if (ready[m] < 0 && ready_ps > 0) {
            ready[m] = Add(&dag, watched, Kernel(ready_ps), {Kind::kUpdate, messages_[m].first, 0},
                           sums[m]);
          }
          waits_for = ready[m] >= 0 ? std::vector<int32_t>{ready[m]} : sums[m];
        } else if (!whole) {
          waits_for.clear();
        }
        then(units_[u].forward_ps, Kind::kForward, u, std::move(waits_for));
      }
    }
    return dag;
  }

  static int64_t Kernels(int64_t bytes, double s_per_byte) {
    return RoundToPicoseconds(static_cast<double>(bytes) * s_per_byte);
  }

  int64_t UpdateOfAll() const {
    int64_t all = 0;
    for (const GradientUnit& unit : units_) all += unit.update_ps;
    return all;
  }

  // Adds what comes from each host, and sends the sum to each.
  RankDag ServerDag(int64_t server) {
    RankDag dag;
    const int64_t sends = traffic_.each_pass_sends ? traffic_.passes : 1;
    for (int64_t send = 0; send < sends; ++send) {
      for (const Message& message : messages_) ServeMessage(&dag, server, message, send);
      if (traffic_.flag_bytes > 0) ServeMessage(&dag, server, flags_, send);
    }
    return dag;
  }

  void ServeMessage(RankDag* dag, int64_t server, const Message& message, int64_t send) {
    for (size_t i = 0; i < message.parts.size(); ++i) {
      const int64_t part = message.begin + static_cast<int64_t>(i);
      for (int64_t local = 0; local < local_; ++local) {
        if (ServerOf(part, local) != server) continue;
        Serve(dag, server, message, ShareOf(message.parts[i]), local, TagOf(send, part, local));
      }
    }
  }

  void Serve(RankDag* dag, int64_t server, const Message& message, int64_t share, int64_t local,
             int64_t tag) {
    std::vector<int32_t> summed;
    const int64_t sum_ps = RoundToPicoseconds(static_cast<double>(share) * sum_s_per_byte_);
    for (int64_t h = 0; h < senders_; ++h) {
      DagTask push = Comm(DagTask::Kind::kRecv, share, -1, message.first);
      push.peer = h * local_ + local;
      push.tag = tag;
      const int32_t got = Add(dag, false, push, {}, {});
      summed.push_back(Add(dag, false, Kernel(sum_ps), {}, {got}));
    }
    // Servers begin with different workers.
    for (int64_t h = 0; h < senders_; ++h) {
      DagTask pull = Comm(DagTask::Kind::kSend, share, kPulls, message.first);
      pull.peer = (h + server) % senders_ * local_ + local;
      pull.tag = tag;
      Add(dag, false, pull, {}, summed);
    }
  }

  const std::vector<GradientUnit>& units_;
  const GradientTraffic& traffic_;
  const Machine::Spec& spec_;
  int64_t senders_ = 0;           // workers, or groups of them
  int64_t local_ = 1;             // workers that sum among themselves first
  std::vector<int64_t> servers_;  // devices whose interfaces they are at
  double sum_s_per_byte_ = 0;
  std::vector<Message> messages_;
  Message flags_;                    // behind the others; of no unit
  std::vector<int32_t> message_of_;  // by unit; -1: nothing of it is sent
  GradientJob job_;
};

}  // namespace

absl::Status GradientTraffic::Verify() const {
  for (const auto& [value, least, name] :
       {std::make_tuple(bucket_bytes, int64_t{0}, "bucket"),
        std::make_tuple(first_bucket_bytes, int64_t{0}, "first bucket"),
        std::make_tuple(partition_bytes, int64_t{0}, "partition"),
        std::make_tuple(credit_bytes, int64_t{0}, "credit"),
        std::make_tuple(spread_bytes, int64_t{0}, "size that is spread"),
        std::make_tuple(overhead_ps, int64_t{0}, "overhead"),
        std::make_tuple(host_ps, int64_t{0}, "time of the host"),
        std::make_tuple(flag_bytes, int64_t{0}, "message of flags"),
        std::make_tuple(passes, int64_t{1}, "number of passes"),
        std::make_tuple(server_hosts, int64_t{0}, "number of servers")}) {
    if (value >= least) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the ", name, " is ", value, "; it is at least ", least, "."));
  }
  if (!(pack_s_per_byte >= 0) || !(unpack_s_per_byte >= 0)) {
    return absl::InvalidArgumentError("copies of gradients take no time below 0.");
  }
  if (line.has_value() && (!(line->bytes_per_s > 0) || !(line->half_bytes >= 0))) {
    return absl::InvalidArgumentError("a link's rate is above 0, and its half size not below it.");
  }
  return absl::OkStatus();
}

absl::StatusOr<GradientJob> MakeGradientJob(const std::vector<GradientUnit>& units,
                                            const GradientTraffic& traffic,
                                            const Machine& machine) {
  RETURN_IF_ERROR(traffic.Verify());
  if (units.empty()) return absl::InvalidArgumentError("there is nothing to compute");
  for (const GradientUnit& unit : units) {
    if (unit.forward_ps < 0 || unit.backward_ps < 0 || unit.update_ps < 0 || unit.bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", unit.name, "` has a time or a size below 0"));
    }
  }
  if (traffic.server_hosts >= machine.spec().hosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(traffic.server_hosts, " hosts that sum leave no worker on the machine's ",
                     machine.spec().hosts, ". Take more hosts: `PRESET:HOSTS`, servers included."));
  }
  return Maker(units, traffic, machine).Make();
}

}  // namespace plancast
