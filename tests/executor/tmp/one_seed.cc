#include <cstdlib>
#include <iostream>
#include "executor/runtime.h"
#include "executor/sharing/fluid.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"
#include "tests/executor/mixed_machine.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/simulation.h"
#include "collectives/realise.h"
using namespace plancast;
int main(int argc, char** argv) {
  const uint32_t first = std::strtoul(argv[1], nullptr, 10), last = std::strtoul(argv[2], nullptr, 10);
  const bool mixed = argc > 3 && argv[3][0] == 'm';
  const bool verbose = argc > 4;
  int64_t plans = 0, bad = 0;
  for (uint32_t seed = first; seed <= last; ++seed) {
    RandomPlan plan = DrawPlan(mixed ? 300000 + seed : seed);
    const auto made = Machine::Create(mixed ? DrawMixedMachine(seed, plan.graph.mesh.num_devices()) : plan.machine);
    const Machine& machine = *made;
    const CommPricer::RealiseFn realise =
        plan.made_up_comms ? MadeUpComm(machine, seed)
                           : [&machine](const GroupPattern& group, const CommSpec& comm) {
                               return Realise(machine, group, comm.kind, comm.bytes);
                             };
    const ReferenceLowering reference = LowerReference(plan.graph, machine, UnitCost(), realise);
    const ReferenceHost host{plan.host.start_ps, plan.host.launch_ps, plan.host.sync_ps, plan.host.cuda_graphs, plan.host.graph_launch_ps, SlowdownQ20(1 + plan.interference)};
    const ReferenceTimes times = RunReference(reference, host, LinkSharing::kMaxMin, SlowdownQ20(1 + plan.comm_interference));
    ++plans;
    for (int shortcuts = 0; shortcuts < 2; ++shortcuts) {
    for (Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
      const auto s = Simulation::Run(plan.graph, machine, realise, form, plan.host, plan.interference, shortcuts, LinkSharing::kMaxMin, plan.comm_interference);
      if (s.ok() == times.deadlock) { std::cout << seed << " status differs\n"; continue; }
      if (!s.ok()) continue;
      bool same = (*s)->trace().makespan_ps == times.makespan_ps;
      int64_t shown = 0;
      for (size_t e = 0; e < (*s)->sim().entities.size(); ++e) {
        const int64_t rank = (*s)->sim().entities[e].representative;
        const UnfoldedTrace& u = (*s)->unfolded((int)e);
        for (size_t t = 0; t < u.start.size(); ++t) {
          if (u.start[t] == times.start[rank][t] && u.end[t] == times.end[rank][t]) continue;
          same = false;
          if (verbose && shown++ < 12) {
            const ReferenceTask& task = reference.ranks[rank].tasks[t];
            std::cout << "  entity " << e << " rank " << rank << " task " << t << (task.is_comm ? " comm m" : " kernel ") << (task.is_comm ? task.meeting : task.duration_ps) << " stream " << task.stream << ": " << u.start[t] << ".." << u.end[t] << " reference " << times.start[rank][t] << ".." << times.end[rank][t] << "\n";
          }
        }
      }
      if (!same && verbose) {
        const int64_t rank = argc > 6 ? std::atoll(argv[6]) : 0; const int64_t at = std::atoll(argv[5]);
        for (size_t e = 0; e < (*s)->sim().entities.size(); ++e) {
          const SimGraph::Entity& en = (*s)->sim().entities[e];
          std::cout << "entity " << e << " rep " << en.representative << " program " << en.program << " devices " << en.devices << "\n";
        }
        for (size_t r = 0; r < reference.ranks.size(); ++r) for (size_t t = 0; t < reference.ranks[r].tasks.size(); ++t) {
          if (rank >= 0 && (int64_t)r != rank) continue;
          if (times.start[r][t] > at + 8000000000 || times.end[r][t] < at - 8000000000) continue;
          const ReferenceTask& task = reference.ranks[r].tasks[t];
          std::cout << "   rank " << r << " task " << t << " instance " << task.instance << " layer " << task.layer << " block task " << task.block_task << (task.is_comm ? " comm m" : " kernel ") << (task.is_comm ? task.meeting : task.duration_ps) << " stream " << task.stream << ": " << times.start[r][t] << ".." << times.end[r][t];
          if (task.is_comm) { const auto& m = reference.meetings[task.meeting]; std::cout << " members " << m.ranks.size() << " delay " << m.realised.delay_ps << " nosm " << m.realised.uses_no_sms << " work " << m.realised.work_bytes << " loads " << m.loads.size(); }
          std::cout << "\n";
        }
      }
      if (!same) { ++bad; std::cout << "seed " << seed << " form " << (int)form << " shortcuts " << shortcuts << " interference " << plan.interference << " comm " << plan.comm_interference << " launch " << plan.host.launch_ps << " makespan " << (*s)->trace().makespan_ps << " " << times.makespan_ps << std::endl; }
    }
    }
  }
  std::cout << plans << " plans, " << bad << " bad\n";
}
