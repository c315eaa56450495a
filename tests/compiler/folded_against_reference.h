#ifndef PLANCAST_TESTS_COMPILER_FOLDED_AGAINST_REFERENCE_H_
#define PLANCAST_TESTS_COMPILER_FOLDED_AGAINST_REFERENCE_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/realise.h"
#include "executor/runtime.h"
#include "graph/model/model_cut.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"
#include "tests/executor/simulation.h"

// What tests of "folded equals flat" on compiled plans share.
namespace plancast {

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  template <typename T>
  T Of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  bool Maybe(uint32_t one_in) { return random_() % one_in == 0; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % n); }

 private:
  std::mt19937 random_;
};

// Places to cut a model, some of them inside of modules.
inline std::vector<ModelCut> DrawCuts(Dice& dice, const ModelGraph& graph, int64_t count) {
  std::vector<ModelCut> places;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    for (int64_t repeat = 0; repeat < segment.repeat; ++repeat) {
      for (size_t o = 0; o < graph.bodies[segment.body].ops.size(); ++o) {
        places.push_back({static_cast<int>(s), repeat, static_cast<int>(o)});
      }
    }
  }
  std::set<ModelCut> cuts;
  while (static_cast<int64_t>(cuts.size()) < count) {
    cuts.insert(places[1 + dice.Below(static_cast<int64_t>(places.size()) - 1)]);
  }
  return {cuts.begin(), cuts.end()};
}

// Hosts of any number of devices, several to a NIC, some of them odd ones.
inline Machine::Spec DrawMachine(Dice& dice, int64_t devices) {
  const int64_t per_host = 1 + dice.Below(std::min<int64_t>(devices, 9));
  Machine::Spec spec =
      UnitMachine((devices + per_host - 1) / per_host, per_host, 1 + dice.Below(per_host));
  spec.pcie_bytes_per_s = static_cast<double>(1 + dice.Below(4)) * 1e9;
  spec.gpus_per_host_uplink = dice.Below(4);
  spec.host_memory_bytes_per_s = static_cast<double>(1 + dice.Below(8)) * 4e9;
  spec.host_copy_share = dice.Maybe(2) ? 1 : 0.77;
  if (dice.Maybe(3)) spec.device_overrides.push_back({dice.Below(devices), 0.5});
  if (dice.Maybe(4)) spec.link_overrides.push_back({0, 0, 0.25});
  return spec;
}

// Kernels of a few microseconds, so that they and transfers hide each other.
inline absl::StatusOr<ExecutionGraph> CompileWithTimes(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  for (size_t k = 0; graph.ok() && k < graph->kernels.size(); ++k) {
    graph->kernels[k].flops = 1e-6 * static_cast<double>(1 + (k * 7919) % 97) / 4;
  }
  return graph;
}

inline CommPricer::RealiseFn RealiseOn(const Machine& machine) {
  return [&machine](const GroupPattern& group, const CommSpec& comm) {
    return Realise(machine, group, comm.kind, comm.bytes);
  };
}

// The same where stages have meshes of their own.
inline CommPricer::RealiseFn RealiseOn(const Machine& machine, const ExecutionGraph& graph) {
  return [&machine, &graph](const GroupPattern& group, const CommSpec& comm) {
    if (comm.kind == CollectiveKind::kReshard) return CheapestWay(graph, machine, group, comm, {});
    return Realise(machine, group, comm.kind, comm.bytes);
  };
}

// Every rank's tasks as the reference ran them are those of its class.
inline void ExpectSame(const Simulation& s, const ReferenceLowering& reference,
                       const ReferenceTimes& times) {
  EXPECT_EQ(s.trace().makespan_ps, times.makespan_ps);
  int64_t devices = 0;
  for (size_t e = 0; e < s.sim().entities.size(); ++e) {
    const SimGraph::Entity& entity = s.sim().entities[e];
    devices += entity.devices;
    EXPECT_EQ(s.unfolded(static_cast<int>(e)).start, times.start[entity.representative]);
    EXPECT_EQ(s.unfolded(static_cast<int>(e)).end, times.end[entity.representative]);
  }
  EXPECT_EQ(devices, static_cast<int64_t>(reference.ranks.size()));
}

// What an iteration allocates of a kind and does not give up.
inline int64_t Left(const ExecutionGraph& graph, const Program& program, MemoryKind kind) {
  int64_t left = 0;
  for (const Instance& instance : program.instances) {
    for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
      if (event.kind == kind) left += event.delta * instance.layer_count;
    }
  }
  return left;
}

// On a machine that is drawn, with shortcuts and without, with interference and without.
inline void ExpectFoldedEqualsFlat(Dice& dice, const ExecutionGraph& graph) {
  const absl::StatusOr<Machine> machine =
      Machine::Create(DrawMachine(dice, graph.mesh.num_devices()));
  ASSERT_TRUE(machine.ok()) << machine.status();
  const CommPricer::RealiseFn realise = RealiseOn(*machine);
  const ReferenceLowering reference = LowerReference(graph, *machine, UnitCost(), realise);
  HostParams host;
  host.start_ps = 1000;
  host.launch_ps = 200'000;
  host.sync_ps = 1'000'000;
  for (const double interference : {0.0, 0.3}) {
    ReferenceHost slowed{1000, host.launch_ps, host.sync_ps};
    slowed.slowdown_q20 = SlowdownQ20(1 + interference);
    const ReferenceTimes times =
        RunReference(reference, slowed, LinkSharing::kMaxMin, SlowdownQ20(1 + interference / 2));
    ASSERT_FALSE(times.deadlock);
    for (const bool shortcuts : {true, false}) {
      const auto s = Simulation::Run(graph, *machine, realise, Form::kFolded, host, interference,
                                     shortcuts, LinkSharing::kMaxMin, interference / 2);
      ASSERT_TRUE(s.ok()) << s.status();
      ExpectSame(**s, reference, times);
    }
  }
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_FOLDED_AGAINST_REFERENCE_H_
