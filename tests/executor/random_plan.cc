#include "tests/executor/random_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

class Drawer {
 public:
  // `most_micro_batches`: of a long plan, or 0.
  explicit Drawer(uint32_t seed, int most_micro_batches = 0)
      : random_(seed), builder_({{"none", 1}}), most_micro_batches_(most_micro_batches) {
    std::seed_seq apart{seed, 2u};
    host_random_.seed(apart);
    uses_host_ = HostIn(1, 3) == 1;
  }

  RandomPlan Draw() {
    DrawMesh();
    DrawMachine();
    DrawHost();
    DrawBlocks();
    const std::vector<std::pair<int64_t, int64_t>> places = DrawPlaces();
    for (const auto& [stage, replica] : places) DrawProgram(stage, replica, places);
    plan_.graph = builder_.Build();
    // Some kernels are called before they are launched, some are several, some a graph's.
    for (KernelSpec& kernel : plan_.graph.kernels) {
      if (!Once(3)) continue;
      kernel.launches = In(1, 3);
      kernel.calls = In(-3, 4);
    }
    return plan_;
  }

 private:
  int64_t In(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Once(int in) { return In(1, in) == 1; }
  // For what concerns the host's memory, so that all else stays as it is without.
  int64_t HostIn(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(host_random_);
  }

  void DrawMesh() {
    while (true) {
      stages_ = In(1, 4);
      replicas_ = In(1, 4);
      std::vector<MeshAxis> axes = {{"pp", stages_}, {"dp", replicas_}, {"tp", In(1, 4)}};
      if (Once(3)) axes.push_back({"cp", In(2, 3)});
      if (Once(2)) std::shuffle(axes.begin(), axes.end(), random_);
      devices_ = 1;
      for (const MeshAxis& axis : axes) devices_ *= axis.size;
      if (devices_ < 2 || devices_ > (most_micro_batches_ > 0 ? 8 : 24)) continue;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].name == "pp") {
          pp_ = static_cast<int>(i);
        } else if (axes[i].name == "dp") {
          dp_ = static_cast<int>(i);
        } else {
          inner_.push_back(static_cast<int>(i));
        }
      }
      // Replicas run programs of their own at times.
      split_replicas_ = replicas_ > 1 && Once(4);
      builder_ = GraphBuilder(axes);
      return;
    }
  }

  void DrawMachine() {
    constexpr int64_t kPerHost[] = {1, 2, 3, 4, 4, 6, 8, 8};
    const int64_t per_host = kPerHost[In(0, 7)];
    Machine::Spec spec = UnitMachine((devices_ + per_host - 1) / per_host + In(0, 1), per_host);
    spec.nics_per_host = In(1, per_host);
    spec.nic_bytes_per_s = static_cast<double>(In(1, 4)) * 1e9 + static_cast<double>(In(0, 999));
    if (Once(4)) {
      spec.hosts_per_pod = In(1, 2);
      spec.oversubscription = static_cast<double>(In(1, 3));
      spec.rail_optimized = Once(2);
    }
    // Rails of one pod whose switches have narrower uplinks than ports.
    if (spec.hosts_per_pod == 0 && Once(4)) spec.oversubscription = static_cast<double>(In(2, 4));
    if (Once(4)) {
      spec.topology = "host-bridge";
      spec.intra_link = "pcie4";
      spec.intra_bytes_per_s = 2e10;
      spec.gpus_per_switch = In(1, 3);
      if (Once(2)) spec.switch_bytes_per_s = 1e10;
      if (Once(2)) spec.host_bridge_bytes_per_s = 3e10;
    }
    if (HostIn(1, 3) > 1 || uses_host_) DrawHostLinks(spec);
    if (Once(3)) {
      for (int64_t n = In(1, 2); n > 0; --n) {
        const int64_t device = In(0, devices_ - 1);
        if (!spec.device_overrides.empty() && spec.device_overrides[0].device == device) continue;
        spec.device_overrides.push_back({device, Once(2) ? 0.5 : 0.8});
      }
    }
    plan_.machine = spec;
    if (Once(3)) {
      const Machine machine = *Machine::Create(spec);
      for (int64_t n = In(1, 2); n > 0; --n) {
        Machine::LinkOverride slow;
        slow.link_class =
            static_cast<int>(In(0, static_cast<int64_t>(machine.link_classes().size()) - 1));
        slow.instance = In(0, machine.NumLinkInstances(slow.link_class) - 1);
        slow.capacity_scale = 0.5;
        const auto& others = plan_.machine.link_overrides;
        if (!others.empty() && others[0].link_class == slow.link_class &&
            others[0].instance == slow.instance) {
          continue;
        }
        plan_.machine.link_overrides.push_back(slow);
      }
    }
    plan_.made_up_comms = Once(2);
  }

  void DrawHostLinks(Machine::Spec& spec) {
    spec.pcie_bytes_per_s = static_cast<double>(HostIn(1, 4)) * 2e9;
    if (HostIn(1, 4) == 1) spec.c2c_bytes_per_s = 2e10;
    if (HostIn(1, 2) == 1) spec.host_copy_share = 0.77;
    spec.gpus_per_host_uplink = HostIn(0, 3);
    if (HostIn(1, 3) == 1) spec.host_uplink_bytes_per_s = 3e9;
    spec.host_memory_bytes_per_s = static_cast<double>(HostIn(1, 8)) * 5e9;
    if (HostIn(1, 2) == 1) spec.host_update_share = 0.43;
  }

  void DrawHost() {
    if (Once(3)) plan_.host.launch_ps = In(1, 20) * 1'000'000;
    // Nearly as long as kernels, so that hosts are behind for a while.
    if (most_micro_batches_ > 0 && Once(2)) plan_.host.launch_ps = In(1, 30) * 50'000'000;
    if (Once(3)) plan_.host.start_ps = In(1, 5) * 1'000'000'000;
    if (Once(2)) plan_.host.sync_ps = In(0, 10) * 1'000'000;
    blocking_ = Once(4);
    if (Once(4)) {
      plan_.host.cuda_graphs = true;
      plan_.host.graph_launch_ps = In(0, 50) * 1'000'000;
    }
  }

  double Time() { return static_cast<double>(In(1, 4)) * 1e-3; }
  int64_t Bytes() { return In(1, 4) * 5'000'000 + (Once(2) ? In(0, 1000) : 0); }

  // At times, between the device and its host's memory.
  void DrawHostTask() {
    if (!uses_host_ || HostIn(1, 2) == 1) return;
    const int last = builder_.last_task();
    std::vector<int> deps;
    if (last >= 0 && HostIn(1, 2) == 1) deps.push_back(static_cast<int>(HostIn(0, last)));
    const bool out = HostIn(1, 2) == 1;
    builder_.Comm(out ? CollectiveKind::kCopyToHost : CollectiveKind::kCopyToDevice,
                  HostIn(1, 4) * 3'000'000 + HostIn(0, 1) * HostIn(0, 999), {}, deps,
                  Purpose::kOther, out ? StreamKind::kCopyOut : StreamKind::kCopyIn);
    builder_.Memory(!out, (out ? -1 : 1) * HostIn(1, 50));
  }

  // A collective of the layer among the axes inside a replica, or over replicas.
  void DrawComm(bool gradients) {
    constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
    const int last = builder_.last_task();
    std::vector<int> deps;
    if (last >= 0) deps.push_back(static_cast<int>(In(std::max(0, last - 2), last)));
    if (gradients && !split_replicas_) {
      std::vector<int> axes = {dp_};
      if (Once(3)) axes.push_back(inner_[In(0, static_cast<int64_t>(inner_.size()) - 1)]);
      std::sort(axes.begin(), axes.end());
      builder_.Comm(kKinds[In(0, 2)], Bytes(), axes, deps, Purpose::kDp, StreamKind::kGradComm);
    } else {
      builder_.Comm(kKinds[In(0, 3)], Bytes(),
                    {inner_[In(0, static_cast<int64_t>(inner_.size()) - 1)]}, deps, Purpose::kTp,
                    Once(4) ? StreamKind::kCompute : StreamKind::kModelComm);
    }
  }

  void DrawLayer(const std::string& name, bool backward) {
    builder_.Block(name, 1);
    builder_.Kernel(Time(), {~0});
    DrawMemory(backward);
    for (int64_t n = In(1, 4); n > 0; --n) {
      if (Once(2)) {
        DrawComm(backward && Once(2));
      } else {
        const int last = builder_.last_task();
        std::vector<int> deps = {static_cast<int>(In(0, last))};
        if (Once(3)) deps.push_back(~0);
        builder_.Kernel(Time(), deps, backward ? Purpose::kBackward : Purpose::kForward);
        DrawMemory(backward);
      }
      DrawHostTask();
    }
    builder_.OutPort(static_cast<int>(In(0, builder_.last_task())));
  }

  void DrawMemory(bool backward) {
    if (Once(3)) builder_.Memory(false, In(1, 100) * (backward ? -1 : 1));
    if (Once(3)) builder_.Memory(true, In(-100, 100), MemoryKind::kWorkspace);
  }

  void DrawTransfer(const std::string& name, bool sends, bool forward) {
    const StreamKind stream = sends ? (forward ? StreamKind::kSendNext : StreamKind::kSendPrev)
                                    : (forward ? StreamKind::kRecvPrev : StreamKind::kRecvNext);
    builder_.Block(name, 1);
    builder_.Comm(CollectiveKind::kSendRecv, forward ? 10'000'000 : 12'345'678, {pp_}, {~0},
                  Purpose::kPp, stream);
    builder_.Meets().OutPort(0);
    if (blocking_) builder_.HostSync();
  }

  void DrawBlocks() {
    DrawLayer("F", false);
    DrawLayer("B", true);
    DrawTransfer("send.F", true, true);
    DrawTransfer("recv.F", false, true);
    DrawTransfer("send.B", true, false);
    DrawTransfer("recv.B", false, false);
    builder_.Block("optimizer", 1);
    builder_.Kernel(Time(), {~0}, Purpose::kOptimizer);
    DrawComm(true);
    builder_.Kernel(Time(), {0, 1}, Purpose::kOptimizer);
    DrawHostTask();
    if (uses_host_ && HostIn(1, 2) == 1) {
      builder_.Comm(CollectiveKind::kHostUpdate, HostIn(1, 4) * 10'000'000, {},
                    {builder_.last_task()}, Purpose::kOptimizer, StreamKind::kCompute);
    }
    builder_.Block("norm", 1);
    std::vector<int> axes = {pp_};
    if (split_replicas_ || Once(2)) axes.push_back(dp_);
    if (Once(2)) axes.push_back(inner_[0]);
    std::sort(axes.begin(), axes.end());
    builder_.Comm(CollectiveKind::kAllReduce, 1'000'000, axes, {~0}, Purpose::kOther,
                  StreamKind::kGradComm);
    builder_.Meets().OutPort(0);
    if (most_micro_batches_ > 0 && Once(2)) builder_.HostSync();
  }

  // (stage, replica), replica -1 if all run the same.
  std::vector<std::pair<int64_t, int64_t>> DrawPlaces() {
    micro_batches_ = static_cast<int>(Once(5) ? In(5, 8) : In(1, 4));
    forward_first_ = Once(2);
    if (most_micro_batches_ > 0) {
      const double spread = std::log(most_micro_batches_ / 16.0);
      micro_batches_ =
          static_cast<int>(16 * std::exp(spread * static_cast<double>(In(0, 1000)) / 1000));
      forward_first_ = false;
    }
    std::vector<std::pair<int64_t, int64_t>> places;
    for (int64_t stage = 0; stage < stages_; ++stage) {
      layers_.push_back(static_cast<int>(Once(4) ? In(4, 8) : In(1, 3)));
      if (!split_replicas_) {
        places.emplace_back(stage, -1);
        continue;
      }
      for (int64_t replica = 0; replica < replicas_; ++replica) {
        places.emplace_back(stage, replica);
      }
    }
    if (places.size() > 1) norm_ = builder_.Rendezvous();
    return places;
  }

  int Transfer(int64_t stage, int64_t replica, bool forward, int micro_batch) {
    const auto [found, fresh] =
        transfers_.try_emplace(std::make_tuple(stage, replica, forward, micro_batch), 0);
    if (fresh) found->second = builder_.Rendezvous();
    return found->second;
  }

  void DrawProgram(int64_t stage, int64_t replica,
                   const std::vector<std::pair<int64_t, int64_t>>& places) {
    std::vector<std::pair<int, int64_t>> where = {{pp_, stage}};
    if (replica >= 0) where.push_back({dp_, replica});
    builder_.Program("stage " + std::to_string(stage) +
                         (replica >= 0 ? " replica " + std::to_string(replica) : ""),
                     where);
    std::vector<int> forward(micro_batches_, -1);
    const auto run_forward = [&](int m) {
      std::vector<Join> joins;
      if (stage > 0) {
        builder_.Run("recv.F", {}, 1, m, Transfer(stage - 1, replica, true, m));
        joins.push_back({builder_.last_instance(), 0, 0});
      }
      builder_.Run("F", joins, layers_[stage] + (replica == 1 ? 1 : 0), m);
      forward[m] = builder_.last_instance();
      if (stage + 1 < stages_) {
        builder_.Run("send.F", {{forward[m], 0, 0}}, 1, m, Transfer(stage, replica, true, m));
      }
    };
    const auto run_backward = [&](int m) {
      std::vector<Join> joins = {{forward[m], 0, 0}};
      if (stage + 1 < stages_) {
        builder_.Run("recv.B", {}, 1, m, Transfer(stage + 1, replica, false, m));
        joins.push_back({builder_.last_instance(), 0, 0});
      }
      builder_.Run("B", joins, layers_[stage], m);
      const int last = builder_.last_instance();
      if (stage > 0) {
        builder_.Run("send.B", {{last, 0, 0}}, 1, m, Transfer(stage, replica, false, m));
      }
    };
    const int warm_up = forward_first_
                            ? micro_batches_
                            : std::min<int>(micro_batches_, static_cast<int>(stages_ - stage));
    for (int m = 0; m < warm_up; ++m) run_forward(m);
    for (int m = 0; m < micro_batches_; ++m) {
      run_backward(m);
      if (m + warm_up < micro_batches_) run_forward(m + warm_up);
    }
    const int last = builder_.last_instance();
    std::vector<Join> joins = {{last, -1, Once(2) ? int16_t{-1} : int16_t{0}}};
    if (places.size() > 1) {
      builder_.Run("norm", joins, 1, 0, norm_);
      joins = {{builder_.last_instance(), 0, 0}};
    }
    builder_.Run("optimizer", joins);
  }

  std::mt19937 random_, host_random_;
  bool uses_host_ = false;
  RandomPlan plan_;
  GraphBuilder builder_;
  int64_t stages_ = 1, replicas_ = 1, devices_ = 1;
  int pp_ = 0, dp_ = 0;
  std::vector<int> inner_;
  bool split_replicas_ = false, blocking_ = false, forward_first_ = false;
  int micro_batches_ = 1;
  int most_micro_batches_ = 0;
  std::vector<int> layers_;
  int norm_ = -1;
  std::map<std::tuple<int64_t, int64_t, bool, int>, int> transfers_;
};

// None, 5 to 40 %, or the least that there is and a little more.
double DrawSlowdown(std::mt19937& random) {
  const auto in = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  switch (in(0, 7)) {
    case 0:
    case 1:
    case 2:
      return 0;
    case 3:
      return in(1, 100) / static_cast<double>(1 << 20);
    default:
      return in(5, 40) / 100.0;
  }
}

RandomPlan WithSlowdowns(RandomPlan plan, uint32_t seed) {
  std::seed_seq apart{seed, 1u};
  std::mt19937 random(apart);
  plan.interference = DrawSlowdown(random);
  const double of_comms = DrawSlowdown(random);
  if (kDrawsCommInterference) plan.comm_interference = of_comms;
  return plan;
}

}  // namespace

RandomPlan DrawPlan(uint32_t seed) { return WithSlowdowns(Drawer(seed).Draw(), seed); }

RandomPlan DrawLongPlan(uint32_t seed, int micro_batches) {
  return WithSlowdowns(Drawer(seed, micro_batches).Draw(), seed);
}

CommPricer::RealiseFn MadeUpComm(const Machine& machine, uint32_t seed) {
  return [&machine, seed](const GroupPattern& group,
                          const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 1;
    if (group.size() == 1 && !IsOnHost(comm.kind)) return realised;
    // The shape: how many members, hosts and pods.
    std::set<int64_t> hosts, pods;
    std::set<int> sections;
    for (int64_t device : group.Members()) {
      sections.insert(machine.SectionOf(device));
      hosts.insert(machine.HostOf(device));
      pods.insert(machine.PodOf(device));
    }
    std::vector<uint32_t> shape{seed,
                                static_cast<uint32_t>(group.size()),
                                static_cast<uint32_t>(hosts.size()),
                                static_cast<uint32_t>(pods.size()),
                                static_cast<uint32_t>(comm.kind),
                                static_cast<uint32_t>(comm.bytes)};
    if (machine.mixed()) shape.insert(shape.end(), sections.begin(), sections.end());
    std::seed_seq seeds(shape.begin(), shape.end());
    std::mt19937 random(seeds);
    const auto in = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    realised.delay_ps = in(0, 3) * 1'000'000;
    realised.work_bytes = comm.bytes;
    realised.uses_no_sms = IsOnHost(comm.kind) && comm.bytes % 2 == 0;
    realised.rate_cap_bytes_per_s = in(5, 100) * 100'000'000;
    for (int l = 0; l < static_cast<int>(machine.link_classes().size()); ++l) {
      const LinkKind kind = machine.link_classes()[l].kind;
      if (kind == LinkKind::kNic && hosts.size() == 1) continue;
      if (kind == LinkKind::kSpine && pods.size() == 1) continue;
      if (sections.count(machine.link_classes()[l].section) == 0) continue;
      if (kind == LinkKind::kBetween && sections.size() == 1) continue;
      const bool of_host = kind == LinkKind::kHostUplink || kind == LinkKind::kHostMemory;
      if (of_host && !IsOnHost(comm.kind)) continue;
      if (in(0, 3) > 0) realised.loads.push_back({l, in(1 << 18, 3 << 20)});
    }
    return realised;
  };
}

}  // namespace plancast
