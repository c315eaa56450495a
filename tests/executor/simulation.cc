#include "tests/executor/simulation.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "executor/fold/fold.h"
#include "executor/runtime.h"
#include "tests/executor/graph_builder.h"

namespace plancast {

CommPricer::RealiseFn UnitComm(const Machine& machine) {
  return [&machine](const GroupPattern& group,
                    const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 1;
    realised.factor = "unit/comm";
    realised.factor_sigma = 0.2;
    if (group.size() == 1) return realised;
    realised.work_bytes = comm.bytes;
    const std::vector<int64_t> members = group.Members();
    const bool inside = machine.HostOf(members.front()) == machine.HostOf(members.back());
    const int nvlink = machine.FindLinkClass(LinkKind::kNvlink);
    const int nic = machine.FindLinkClass(LinkKind::kNic);
    realised.rate_cap_bytes_per_s =
        static_cast<int64_t>(machine.link_classes()[inside ? nvlink : nic].bytes_per_s);
    realised.loads.push_back({nvlink, 1 << 20});
    if (!inside) realised.loads.push_back({nic, 1 << 20});
    return realised;
  };
}

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::Run(
    const ExecutionGraph& graph, const Machine& machine, CommPricer::RealiseFn realise, Form form,
    HostParams host, double interference, bool shortcuts, LinkSharing link_sharing,
    double comm_interference) {
  std::unique_ptr<Simulation> s(new Simulation(graph, machine));
  RETURN_IF_ERROR(s->graph_.Verify());
  ASSIGN_OR_RETURN(s->uses_, FindCommUses(s->graph_));
  ASSIGN_OR_RETURN(s->prices_, PriceKernels(s->graph_, s->machine_, UnitCost()));
  s->comms_ = std::make_unique<CommPricer>(s->graph_, std::move(realise));
  const FoldInput input{s->graph_, s->uses_, s->machine_, *s->comms_, s->prices_};
  if (form == Form::kFolded) {
    ASSIGN_OR_RETURN(s->sim_, Fold(input));
  } else {
    ASSIGN_OR_RETURN(s->sim_, FoldByRefinement(input, form == Form::kFlat));
  }
  ASSIGN_OR_RETURN(
      TaskIndex index,
      TaskIndex::Create(s->graph_, std::vector<bool>(s->graph_.programs.size(), host.cuda_graphs)));
  s->index_ = std::make_unique<TaskIndex>(std::move(index));
  s->input_.reset(new SimInput{s->graph_, s->uses_, s->sim_, *s->index_, s->prices_,
                               s->comms_->realised(),
                               std::vector<HostParams>(s->graph_.programs.size(), host),
                               SlowdownQ20(1 + interference), shortcuts});
  s->input_->link_sharing = link_sharing;
  s->input_->comm_slowdown_q20 = SlowdownQ20(1 + comm_interference);
  ASSIGN_OR_RETURN(s->trace_, Simulate(*s->input_));
  for (size_t e = 0; e < s->sim_.entities.size(); ++e) {
    s->unfolded_.push_back(Unfold(*s->input_, s->trace_, static_cast<int32_t>(e)));
  }
  return s;
}

}  // namespace plancast
