#include "executor/jobs/joint_simulation.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

#include "collectives/realise.h"
#include "executor/attribution/causes.h"
#include "executor/jobs/placement.h"
#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"
#include "tests/executor/random_plan.h"

namespace plancast {
namespace {

constexpr uint32_t kFirstSeed = 1, kLastSeed = 400;

// Two or three random plans on a machine that holds them, placed at random:
// ranges of devices, every n-th device, any devices; arriving at random.
struct RandomJobs {
  std::vector<RandomPlan> plans;
  std::vector<PlacedJob> jobs;
  Machine::Spec machine;
  bool made_up_comms = false;
};

class Drawer {
 public:
  explicit Drawer(uint32_t seed) : random_(seed) {}

  RandomJobs Draw() {
    RandomJobs drawn;
    const int64_t count = In(2, 3);
    int64_t devices = 0;
    for (int64_t j = 0; j < count; ++j) {
      drawn.plans.push_back(DrawPlan(static_cast<uint32_t>(random_())));
      devices += drawn.plans.back().graph.mesh.num_devices();
    }
    drawn.machine = drawn.plans[0].machine;
    for (const RandomPlan& plan : drawn.plans) LinkHosts(plan.machine, drawn.machine);
    drawn.machine.device_overrides.clear();
    drawn.machine.link_overrides.clear();
    const int64_t per_host = drawn.machine.gpus_per_host;
    const int64_t hosts = (devices + per_host - 1) / per_host + In(0, 2);
    const int64_t per_pod = std::max<int64_t>(drawn.machine.hosts_per_pod, 1);
    drawn.machine.hosts = (hosts + per_pod - 1) / per_pod * per_pod;
    if (In(1, 4) == 1) {
      drawn.machine.device_overrides.push_back({In(0, hosts * per_host - 1), 0.5});
    }
    if (In(1, 4) == 1) drawn.machine.link_overrides.push_back({0, In(0, hosts - 1), 0.5});
    drawn.made_up_comms = In(1, 2) == 1;
    Place(devices, hosts * per_host, drawn);
    return drawn;
  }

 private:
  // Any of the plans may copy to its host.
  static void LinkHosts(const Machine::Spec& from, Machine::Spec& to) {
    if (to.pcie_bytes_per_s > 0 || from.pcie_bytes_per_s <= 0) return;
    to.pcie_bytes_per_s = from.pcie_bytes_per_s;
    to.host_copy_share = from.host_copy_share;
    to.host_memory_bytes_per_s = from.host_memory_bytes_per_s;
  }

  int64_t In(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  void Place(int64_t used, int64_t available, RandomJobs& drawn) {
    std::vector<int64_t> free(available);
    std::iota(free.begin(), free.end(), 0);
    const int64_t how = In(0, 2);
    if (how == 1) std::shuffle(free.begin(), free.end(), random_);
    for (size_t j = 0; j < drawn.plans.size(); ++j) {
      PlacedJob job;
      job.name = "job " + std::to_string(j);
      job.graph = &drawn.plans[j].graph;
      job.runtime.interference = drawn.plans[j].interference;
      // One for all jobs, as a simulation has.
      job.runtime.comm_interference = drawn.plans[0].comm_interference;
      const auto wanted = static_cast<size_t>(job.graph->mesh.num_devices());
      used -= static_cast<int64_t>(wanted);
      std::vector<int64_t> rest;
      for (size_t i = 0; i < free.size(); ++i) {
        const auto later = static_cast<int64_t>(free.size() - i);
        // Leaves a gap, if others still find room.
        const bool skip =
            how == 2 && later > static_cast<int64_t>(wanted - job.devices.size()) && In(0, 1) == 1;
        if (job.devices.size() < wanted && !skip) {
          job.devices.push_back(free[i]);
        } else {
          rest.push_back(free[i]);
        }
      }
      free = std::move(rest);
      if (how == 1 && In(0, 1) == 0) std::sort(job.devices.begin(), job.devices.end());
      if (In(0, 2) > 0) job.arrival_ps = In(0, 30) * 1'000'000'000;
      job.runtime.launch_s = static_cast<double>(drawn.plans[j].host.launch_ps) * 1e-12;
      job.runtime.host_sync_s = static_cast<double>(drawn.plans[j].host.sync_ps) * 1e-12;
      job.runtime.iteration_s = static_cast<double>(drawn.plans[j].host.start_ps) * 1e-12;
      job.runtime.cuda_graphs = drawn.plans[j].host.cuda_graphs;
      job.runtime.graph_launch_s = static_cast<double>(drawn.plans[j].host.graph_launch_ps) * 1e-12;
      drawn.jobs.push_back(std::move(job));
    }
  }

  std::mt19937 random_;
};

using Times = std::vector<std::pair<int64_t, int64_t>>;

Times TimesOf(const JointSimulation& s, int32_t entity) {
  const UnfoldedTrace unfolded = Unfold(s.input(), s.trace(), entity);
  Times times;
  for (size_t t = 0; t < unfolded.start.size(); ++t) {
    times.emplace_back(unfolded.start[t], unfolded.end[t]);
  }
  return times;
}

Times TimesOf(const ReferenceTimes& times, int64_t rank) {
  Times own;
  for (size_t t = 0; t < times.start[rank].size(); ++t) {
    own.emplace_back(times.start[rank][t], times.end[rank][t]);
  }
  return own;
}

// Every rank of a job does what the entity of some class of its program does.
void ExpectSameTimes(const JointSimulation& s, int job, const PlacedJob& placed,
                     const ReferenceLowering& reference, const ReferenceTimes& times,
                     int64_t first_rank) {
  const SummaryRange range = s.RangeOf(job);
  std::vector<Times> of_entity;
  int64_t devices = 0;
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    of_entity.push_back(TimesOf(s, e));
    devices += s.input().sim.entities[e].devices;
  }
  ASSERT_EQ(devices, static_cast<int64_t>(placed.devices.size()));
  for (size_t d = 0; d < placed.devices.size(); ++d) {
    const int64_t rank = first_rank + static_cast<int64_t>(d);
    const Times own = TimesOf(times, rank);
    bool found = false;
    for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
      const SimGraph::Entity& entity = s.input().sim.entities[e];
      const Times& theirs = of_entity[e - range.entity_begin];
      if (entity.program - range.program_begin != reference.ranks[rank].program) continue;
      if (entity.representative == placed.devices[d]) {
        EXPECT_EQ(theirs, own) << "rank " << rank;
      }
      found = found || theirs == own;
    }
    EXPECT_TRUE(found) << "no class does what rank " << rank << " does";
  }
}

TEST(JointSimulationTest, FoldedEqualsFlatEqualsTheReferenceBitForBit) {
  std::cout << "seeds " << kFirstSeed << " to " << kLastSeed << "\n";
  int64_t ranks = 0, entities = 0, together = 0, deadlocks = 0;
  for (uint32_t seed = kFirstSeed; seed <= kLastSeed && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomJobs drawn = Drawer(seed).Draw();
    const absl::StatusOr<Machine> made = Machine::Create(drawn.machine);
    ASSERT_TRUE(made.ok()) << made.status();
    const Machine& machine = *made;
    ASSERT_EQ(CheckPlacements(drawn.jobs, machine), absl::OkStatus());
    const CommPricer::RealiseFn realise =
        drawn.made_up_comms ? MadeUpComm(machine, seed)
                            : [&machine](const GroupPattern& group, const CommSpec& comm) {
                                return Realise(machine, group, comm.kind, comm.bytes);
                              };
    std::vector<ReferenceJob> reference_jobs;
    std::vector<ReferenceHost> hosts;
    std::vector<const PlacedJob*> jobs;
    for (size_t j = 0; j < drawn.jobs.size(); ++j) {
      const PlacedJob& job = drawn.jobs[j];
      jobs.push_back(&job);
      reference_jobs.push_back({job.graph, job.devices, realise});
      const HostParams& host = drawn.plans[j].host;
      hosts.resize(hosts.size() + job.devices.size(),
                   {job.arrival_ps + host.start_ps, host.launch_ps, host.sync_ps, host.cuda_graphs,
                    host.graph_launch_ps, SlowdownQ20(job.runtime)});
    }
    const UnitCost costs;
    const ReferenceLowering reference = LowerReference(reference_jobs, machine, costs);
    const ReferenceTimes times = RunReference(reference, hosts, LinkSharing::kMaxMin,
                                              SlowdownQ20(1 + drawn.plans[0].comm_interference));
    together += SetsThatShareLinks(drawn.jobs, machine).size() < drawn.jobs.size();
    for (const bool discrete : {false, true}) {
      SCOPED_TRACE(discrete ? "flat" : "folded");
      JointSimulation::Options how;
      how.discrete = discrete;
      how.realise = [&](const PlacedJob&) { return realise; };
      const auto s = JointSimulation::Run(jobs, machine, costs, how);
      ASSERT_EQ(s.ok(), !times.deadlock) << s.status();
      if (!s.ok()) {
        deadlocks += discrete;
        continue;
      }
      EXPECT_EQ((*s)->trace().makespan_ps, times.makespan_ps);
      int64_t rank = 0;
      for (size_t j = 0; j < drawn.jobs.size(); ++j) {
        ExpectSameTimes(**s, static_cast<int>(j), drawn.jobs[j], reference, times, rank);
        rank += static_cast<int64_t>(drawn.jobs[j].devices.size());
        const SimResult result = (*s)->ResultOf(static_cast<int>(j), false);
        EXPECT_EQ(result.makespan_ps,
                  (*s)->FinishOf(static_cast<int>(j)) - drawn.jobs[j].arrival_ps);
        EXPECT_EQ(result.critical_path.total(), result.makespan_ps);
        for (const DeviceClassResult& row : result.classes) {
          EXPECT_EQ(row.breakdown.total(), result.makespan_ps) << row.name;
        }
      }
      if (discrete) continue;
      ranks += rank;
      entities += static_cast<int64_t>((*s)->input().sim.entities.size());
    }
  }
  std::cout << ranks << " ranks in " << entities << " classes; " << together
            << " sets with shared links, " << deadlocks << " deadlocks\n";
  EXPECT_LT(entities, ranks);
  EXPECT_GT(together, 100);
}

// What a set of jobs does together, jobs that share no link do apart.
TEST(JointSimulationTest, JobsOnSeparateLinksChangeNoDigitOfOneAnother) {
  int apart = 0;
  for (uint32_t seed = kFirstSeed; seed <= kLastSeed && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomJobs drawn = Drawer(seed).Draw();
    const Machine machine = *Machine::Create(drawn.machine);
    const UnitCost costs;
    const auto run = [&](const std::vector<const PlacedJob*>& jobs) {
      return JointSimulation::Run(jobs, machine, costs, {});
    };
    std::vector<const PlacedJob*> all;
    for (const PlacedJob& job : drawn.jobs) all.push_back(&job);
    const auto joint = run(all);
    for (const std::vector<int>& set : SetsThatShareLinks(drawn.jobs, machine)) {
      if (set.size() == drawn.jobs.size() || !joint.ok()) continue;
      ++apart;
      std::vector<const PlacedJob*> members;
      for (int j : set) members.push_back(&drawn.jobs[j]);
      const auto own = run(members);
      ASSERT_TRUE(own.ok()) << own.status();
      for (size_t i = 0; i < set.size(); ++i) {
        const SummaryRange a = (*joint)->RangeOf(set[i]), b = (*own)->RangeOf(static_cast<int>(i));
        ASSERT_EQ(a.entity_end - a.entity_begin, b.entity_end - b.entity_begin);
        for (int32_t e = 0; e < a.entity_end - a.entity_begin; ++e) {
          EXPECT_EQ(TimesOf(**joint, a.entity_begin + e), TimesOf(**own, b.entity_begin + e));
        }
      }
    }
  }
  EXPECT_GT(apart, 20);
}

}  // namespace
}  // namespace plancast
