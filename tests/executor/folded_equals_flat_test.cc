#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "executor/attribution/breakdown.h"
#include "executor/attribution/critical_path.h"
#include "executor/memory/replay.h"
#include "executor/runtime.h"
#include "executor/sharing/fluid.h"
#include "gtest/gtest.h"
#include "tests/executor/expect_same.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"
#include "tests/executor/mixed_machine.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

// Every test runs in slices, each with seeds of its own, so that shards share them.
constexpr int kSlices = 12;

struct Seeds {
  uint32_t first, last;
};

// The seeds of a slice when each has `count`.
Seeds SeedsOf(int slice, uint32_t count) {
  const uint32_t first = 1 + static_cast<uint32_t>(slice) * count;
  const Seeds seeds{first, first + count - 1};
  std::cout << "seeds " << seeds.first << " to " << seeds.last << "\n";
  return seeds;
}

ReferenceHost HostOf(const RandomPlan& plan) {
  return {plan.host.start_ps,    plan.host.launch_ps,       plan.host.sync_ps,
          plan.host.cuda_graphs, plan.host.graph_launch_ps, SlowdownQ20(1 + plan.interference)};
}

class FoldedEqualsFlatTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Slices, FoldedEqualsFlatTest, testing::Range(0, kSlices));

using Times = std::vector<std::pair<int64_t, int64_t>>;

// Begin and end of the tasks of an entity, in issue order.
Times TimesOf(const Simulation& s, int entity) {
  const UnfoldedTrace& unfolded = s.unfolded(entity);
  Times times;
  for (size_t t = 0; t < unfolded.start.size(); ++t) {
    times.emplace_back(unfolded.start[t], unfolded.end[t]);
  }
  return times;
}

// The same tasks in the same order as the reference has them.
void ExpectSameTasks(const ExecutionGraph& graph, const Simulation& s,
                     const ReferenceLowering& reference) {
  for (const SimGraph::Entity& entity : s.sim().entities) {
    const ReferenceRank& rank = reference.ranks[entity.representative];
    ASSERT_EQ(rank.program, entity.program);
    ASSERT_EQ(static_cast<size_t>(UnfoldedTasks(graph, entity.program)), rank.tasks.size());
    for (size_t t = 0; t < rank.tasks.size(); ++t) {
      const ReferenceTask& task = rank.tasks[t];
      const Instance& instance = graph.programs[entity.program].instances[task.instance];
      const TaskRef ref{task.instance, task.layer - instance.layer_begin, task.block_task};
      EXPECT_EQ(s.input().index.IssueOf(entity.program, ref), static_cast<int64_t>(t));
      EXPECT_EQ(s.input().index.StreamOf(entity.program, ref), task.stream);
    }
  }
}

// Every rank does what the entity of some class of its program does, and classes
// are no larger than the number of ranks that do so.
void ExpectSameTimes(const Simulation& s, const ReferenceLowering& reference,
                     const ReferenceTimes& times) {
  ASSERT_EQ(s.trace().makespan_ps, times.makespan_ps);
  int64_t devices = 0;
  std::vector<Times> of_entity;
  for (size_t e = 0; e < s.sim().entities.size(); ++e) {
    of_entity.push_back(TimesOf(s, static_cast<int>(e)));
    devices += s.sim().entities[e].devices;
  }
  ASSERT_EQ(devices, static_cast<int64_t>(reference.ranks.size()));
  std::vector<int64_t> alike(of_entity.size());
  for (size_t rank = 0; rank < reference.ranks.size(); ++rank) {
    Times own;
    for (size_t t = 0; t < times.start[rank].size(); ++t) {
      own.emplace_back(times.start[rank][t], times.end[rank][t]);
    }
    bool found = false;
    for (size_t e = 0; e < of_entity.size(); ++e) {
      if (s.sim().entities[e].program != reference.ranks[rank].program) continue;
      if (s.sim().entities[e].representative == static_cast<int64_t>(rank)) {
        EXPECT_EQ(of_entity[e], own) << "rank " << rank;
      }
      if (of_entity[e] != own) continue;
      found = true;
      ++alike[e];
    }
    EXPECT_TRUE(found) << "no class does what rank " << rank << " does";
  }
  for (size_t e = 0; e < of_entity.size(); ++e) {
    EXPECT_GE(alike[e], s.sim().entities[e].devices);
  }
}

void ExpectWholeBreakdowns(const Simulation& s) {
  for (size_t e = 0; e < s.sim().entities.size(); ++e) {
    EXPECT_EQ(BreakdownOf(s.input(), s.trace(), static_cast<int32_t>(e)).total(),
              s.trace().makespan_ps);
  }
  SimResult result;
  AttributeCriticalPath(s.input(), s.trace(), result);
  EXPECT_EQ(result.critical_path.total(), s.trace().makespan_ps);
}

// What a slice of plans came to.
struct Compared {
  int64_t plans = 0, ranks = 0, entities = 0, contended = 0, split = 0, deadlocks = 0;
};

// A plan on its machine, in every form, task by task and event by event of its memory.
void CompareWithReference(uint32_t seed, Compared& compared) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const RandomPlan plan = DrawPlan(seed);
  const absl::StatusOr<Machine> made = Machine::Create(plan.machine);
  ASSERT_TRUE(made.ok()) << made.status();
  const Machine& machine = *made;
  const CommPricer::RealiseFn realise =
      plan.made_up_comms ? MadeUpComm(machine, seed)
                         : [&machine](const GroupPattern& group, const CommSpec& comm) {
                             return Realise(machine, group, comm.kind, comm.bytes);
                           };
  const UnitCost costs;
  const ReferenceLowering reference = LowerReference(plan.graph, machine, costs, realise);
  const ReferenceTimes times = RunReference(reference, HostOf(plan), LinkSharing::kMaxMin,
                                            SlowdownQ20(1 + plan.comm_interference));
  for (Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
    SCOPED_TRACE(form == Form::kFolded ? "folded" : form == Form::kRefined ? "refined" : "flat");
    const auto s =
        Simulation::Run(plan.graph, machine, realise, form, plan.host, plan.interference,
                        /*shortcuts=*/true, LinkSharing::kMaxMin, plan.comm_interference);
    ASSERT_EQ(s.ok(), !times.deadlock) << s.status();
    if (!s.ok()) {
      compared.deadlocks += form == Form::kFolded;
      continue;
    }
    ExpectSameTasks(plan.graph, **s, reference);
    ExpectSameTimes(**s, reference, times);
    ExpectWholeBreakdowns(**s);
    if (form != Form::kFolded) continue;
    ++compared.plans;
    compared.ranks += static_cast<int64_t>(reference.ranks.size());
    compared.entities += static_cast<int64_t>((*s)->sim().entities.size());
    compared.split += (*s)->sim().entities.size() > plan.graph.programs.size();
    compared.contended += (*s)->sim().resources.size() > 0;
  }
  const std::vector<ClassMemory> memory = ReplayMemory(plan.graph, RuntimeParams());
  for (size_t p = 0; p < plan.graph.programs.size(); ++p) {
    EXPECT_EQ(memory[p].allocated, ReferencePeak(plan.graph, static_cast<int32_t>(p)));
  }
}

TEST_P(FoldedEqualsFlatTest, OnRandomPlansBitForBit) {
  const auto [first, last] = SeedsOf(GetParam(), 200);
  Fluid::CheckSolutions(true);
  Compared compared;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    CompareWithReference(seed, compared);
  }
  Fluid::CheckSolutions(false);
  std::cout << compared.plans << " plans compared, " << compared.ranks << " ranks in "
            << compared.entities << " classes; " << compared.split << " plans with split programs, "
            << compared.deadlocks << " deadlocks not counted\n";
  EXPECT_GE(compared.plans, 170);  // 2,000 plans and more in all slices
  EXPECT_LT(compared.entities, compared.ranks);
  EXPECT_GT(compared.split, 0);
  EXPECT_GT(compared.contended, 0);
}

// A layer's own communication ends as one of a transfer begins, and the layer comes apart by
// that: what is left of its kernel is rounded all the same.
TEST(FoldedEqualsFlatCases, CommunicationsThatFollowOneAnotherWithoutAGap) {
  Compared compared;
  CompareWithReference(1503859, compared);
}

// As in the what-if `sharing=free`.
TEST_P(FoldedEqualsFlatTest, WithLinksOfTheirOwn) {
  const auto [first, last] = SeedsOf(GetParam(), 20);
  int plans = 0, faster = 0;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const CommPricer::RealiseFn shared = MadeUpComm(machine, seed);
    const CommPricer::RealiseFn own = [&](const GroupPattern& group, const CommSpec& comm) {
      return absl::StatusOr<RealisedCollective>(WithLinksOfItsOwn(machine, *shared(group, comm)));
    };
    const auto times = [&](const CommPricer::RealiseFn& realise) {
      return RunReference(LowerReference(plan.graph, machine, UnitCost(), realise), HostOf(plan),
                          LinkSharing::kMaxMin, SlowdownQ20(1 + plan.comm_interference));
    };
    const ReferenceTimes alone = times(own);
    if (alone.deadlock) continue;
    ++plans;
    faster += alone.makespan_ps < times(shared).makespan_ps;
    const ReferenceLowering reference = LowerReference(plan.graph, machine, UnitCost(), own);
    for (Form form : {Form::kFolded, Form::kFlat}) {
      const auto s =
          Simulation::Run(plan.graph, machine, own, form, plan.host, plan.interference,
                          /*shortcuts=*/true, LinkSharing::kMaxMin, plan.comm_interference);
      ASSERT_TRUE(s.ok()) << s.status();
      ExpectSameTimes(**s, reference, alone);
    }
  }
  EXPECT_GE(plans, 10);
  EXPECT_GT(faster, 0);
}

// Devices of several kinds: whatever a section cuts.
TEST_P(FoldedEqualsFlatTest, OnMixedMachines) {
  const auto [first, last] = SeedsOf(GetParam(), 100);
  int64_t plans = 0, ranks = 0, entities = 0, spanning = 0;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomPlan plan = DrawPlan(300'000 + seed);
    const absl::StatusOr<Machine> made =
        Machine::Create(DrawMixedMachine(seed, plan.graph.mesh.num_devices()));
    ASSERT_TRUE(made.ok()) << made.status();
    const Machine& machine = *made;
    const CommPricer::RealiseFn realise =
        plan.made_up_comms ? MadeUpComm(machine, seed)
                           : [&machine](const GroupPattern& group, const CommSpec& comm) {
                               return Realise(machine, group, comm.kind, comm.bytes);
                             };
    const ReferenceLowering reference = LowerReference(plan.graph, machine, UnitCost(), realise);
    const ReferenceTimes times = RunReference(reference, HostOf(plan), LinkSharing::kMaxMin,
                                              SlowdownQ20(1 + plan.comm_interference));
    for (Form form : {Form::kFolded, Form::kFlat}) {
      SCOPED_TRACE(form == Form::kFolded ? "folded" : "flat");
      const auto s =
          Simulation::Run(plan.graph, machine, realise, form, plan.host, plan.interference,
                          /*shortcuts=*/true, LinkSharing::kMaxMin, plan.comm_interference);
      ASSERT_EQ(s.ok(), !times.deadlock) << s.status();
      if (!s.ok()) continue;
      ExpectSameTasks(plan.graph, **s, reference);
      ExpectSameTimes(**s, reference, times);
      ExpectWholeBreakdowns(**s);
      if (form != Form::kFolded) continue;
      ++plans;
      ranks += static_cast<int64_t>(reference.ranks.size());
      entities += static_cast<int64_t>((*s)->sim().entities.size());
      for (const SimGraph::Group& group : (*s)->sim().groups) {
        std::set<int> kinds;
        for (const int32_t member : (*s)->sim().MembersOf(group)) {
          kinds.insert((*s)->sim().entities[member].kind);
        }
        spanning += kinds.size() > 1;
      }
    }
  }
  std::cout << plans << " plans compared, " << ranks << " ranks in " << entities << " classes; "
            << spanning << " classes of groups over several sections\n";
  EXPECT_GE(plans, 80);
  EXPECT_LT(entities, ranks);
  EXPECT_GT(spanning, 0);
}

// Gradients that wait for messages, and these for model-parallel collectives.
TEST_P(FoldedEqualsFlatTest, UnderPriority) {
  const auto [first, last] = SeedsOf(GetParam(), 20);
  Fluid::CheckSolutions(true);
  int plans = 0, changed = 0;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const CommPricer::RealiseFn realise = MadeUpComm(machine, seed);
    const ReferenceLowering reference = LowerReference(plan.graph, machine, UnitCost(), realise);
    const ReferenceHost host = HostOf(plan);
    const int64_t comm_slowdown_q20 = SlowdownQ20(1 + plan.comm_interference);
    const ReferenceTimes times =
        RunReference(reference, host, LinkSharing::kPriority, comm_slowdown_q20);
    if (times.deadlock) continue;
    ++plans;
    changed +=
        times.end != RunReference(reference, host, LinkSharing::kMaxMin, comm_slowdown_q20).end;
    for (Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
      for (bool shortcuts : {true, false}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " form " << static_cast<int>(form)
                                        << (shortcuts ? "" : " without shortcuts"));
        const auto s =
            Simulation::Run(plan.graph, machine, realise, form, plan.host, plan.interference,
                            shortcuts, LinkSharing::kPriority, plan.comm_interference);
        ASSERT_TRUE(s.ok()) << s.status();
        ExpectSameTimes(**s, reference, times);
      }
    }
  }
  Fluid::CheckSolutions(false);
  std::cout << changed << " of " << plans << " plans run otherwise than by max-min\n";
  EXPECT_GT(changed, 1);
}

// Kernels that communications slow down, folded and flat; and by next to nothing,
// which has to be next to running ahead.
TEST_P(FoldedEqualsFlatTest, WithInterference) {
  const auto [first, last] = SeedsOf(GetParam(), 50);
  int plans = 0, drifted = 0;
  for (uint32_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const CommPricer::RealiseFn realise = MadeUpComm(machine, seed);
    const auto run = [&](Form form, double interference) {
      return Simulation::Run(plan.graph, machine, realise, form, plan.host, interference,
                             /*shortcuts=*/true, LinkSharing::kMaxMin, plan.comm_interference);
    };
    const auto folded = run(Form::kFolded, 0.3), flat = run(Form::kFlat, 0.3);
    ASSERT_EQ(folded.ok(), flat.ok()) << folded.status() << flat.status();
    if (!folded.ok()) continue;
    ++plans;
    EXPECT_EQ((*folded)->trace().makespan_ps, (*flat)->trace().makespan_ps);
    ExpectWholeBreakdowns(**folded);
    for (size_t e = 0; e < (*folded)->sim().entities.size(); ++e) {
      const auto device = static_cast<int>((*folded)->sim().entities[e].representative);
      int entity = 0;
      while ((*flat)->sim().entities[entity].representative != device) ++entity;
      EXPECT_EQ(TimesOf(**folded, static_cast<int>(e)), TimesOf(**flat, entity));
    }
    const auto none = run(Form::kFolded, 0), hardly = run(Form::kFolded, 1.0 / (1 << 20));
    // Two that share a link in step may fall out of step at the smallest difference,
    // and the gap grows from round to round: rare, and bounded.
    const auto base = static_cast<double>((*none)->trace().makespan_ps);
    const double drift =
        std::abs(static_cast<double>((*hardly)->trace().makespan_ps) - base) / base;
    EXPECT_LT(drift, 1e-2);
    drifted += drift > 1e-5;
    if (HasFailure()) break;
  }
  std::cout << drifted << " of " << plans << " plans drifted\n";
  EXPECT_LE(drifted, 2);
}

// Looking ahead changes no digit: when tasks run, and what they last waited for.
TEST_P(FoldedEqualsFlatTest, WithAndWithoutShortcuts) {
  const auto [first, last] = SeedsOf(GetParam(), 50);
  int64_t at_once = 0, several = 0, plans = 0;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const CommPricer::RealiseFn realise = MadeUpComm(machine, seed);
    for (Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
      for (double interference : {0.0, 0.1, 0.8}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " form " << static_cast<int>(form)
                                        << " interference " << interference);
        const auto run = [&](bool shortcuts) {
          return Simulation::Run(plan.graph, machine, realise, form, plan.host, interference,
                                 shortcuts, LinkSharing::kMaxMin, plan.comm_interference);
        };
        const auto with = run(true), without = run(false);
        ASSERT_EQ(with.status(), without.status());
        if (!with.ok()) continue;
        ExpectSameTraces(**with, **without);
        ExpectSameAttribution(**with, **without);
        int64_t own = 0;
        for (const Piece& piece : (*with)->trace().pieces) {
          own += piece.outcome >= 0;
          several += piece.layers > 1;
        }
        at_once += own > 0;
        ++plans;
        for (const Piece& piece : (*without)->trace().pieces) EXPECT_LT(piece.outcome, 0);
      }
    }
  }
  std::cout << at_once << " of " << plans << " simulations ran layers at once, " << several
            << " times several\n";
  EXPECT_GT(at_once, plans / 20);
  EXPECT_GT(several, 0);
}

}  // namespace
}  // namespace plancast
