#include "executor/jobs/joint_simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/contention/interference.h"
#include "executor/fold/quotient.h"
#include "executor/jobs/joint_fold.h"
#include "executor/runtime.h"

namespace plancast {
namespace {

// Uses whose groups lie where the job is placed.
CommUses Placed(CommUses uses, const std::vector<int64_t>& devices) {
  for (CommUse& use : uses.uses) {
    std::vector<int64_t> members = use.group.Members();
    for (int64_t& member : members) member = devices[member];
    std::sort(members.begin(), members.end());
    use.group = GroupPattern::Of(members);
  }
  return uses;
}

// What the kernels of a job take, alongside its own communications too, and what
// these take alongside them.
struct JobPrices {
  KernelPrices kernels;
  double comm_slowdown = 1;
};

absl::StatusOr<JobPrices> PriceJob(const PlacedJob& job, const Machine& machine,
                                   const KernelCostModel& costs, const CommUses& uses,
                                   CommPricer& comms) {
  JobPrices prices;
  ASSIGN_OR_RETURN(prices.kernels,
                   PriceKernels(*job.graph, machine, costs, job.runtime.gather_skew));
  ASSIGN_OR_RETURN(const std::vector<double> slowdowns,
                   PriceBothWays(*job.graph, Placed(uses, job.devices), machine, job.runtime, comms,
                                 prices.kernels));
  prices.comm_slowdown = slowdowns[0];
  if (job.runtime.interference.has_value()) {
    prices.kernels.slowdown_q20.assign(prices.kernels.costs.size(), SlowdownQ20(job.runtime));
  }
  return prices;
}

// Of positive weights; exact where all values are alike.
double WeightedMean(const std::vector<double>& values, const std::vector<double>& weights) {
  double above_first = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    above_first += weights[i] * (values[i] - values[0]);
    all += weights[i];
  }
  return all > 0 ? values[0] + above_first / all : values[0];
}

}  // namespace

absl::StatusOr<std::unique_ptr<JointSimulation>> JointSimulation::Run(
    absl::Span<const PlacedJob* const> jobs, const Machine& machine, const KernelCostModel& costs,
    const Options& options) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of placed jobs"));
  std::unique_ptr<JointSimulation> joint(new JointSimulation(jobs));
  std::vector<CommUses> uses;
  std::vector<CommPricer> pricers;
  for (const PlacedJob* job : jobs) {
    if (job->runtime.link_sharing != jobs[0]->runtime.link_sharing) {
      return absl::InvalidArgumentError(absl::StrCat(
          "jobs `", jobs[0]->name, "` and `", job->name,
          "` meet on links and have profiles that share links differently. Give both one "
          "`link_sharing`."));
    }
    RETURN_IF_ERROR(job->graph->Verify()) << "job `" << job->name << "`";
    ASSIGN_OR_RETURN(uses.emplace_back(), FindCommUses(*job->graph));
    if (options.realise) {
      pricers.emplace_back(*job->graph, options.realise(*job));
    } else {
      pricers.emplace_back(*job->graph, machine, job->runtime, &job->devices);
    }
  }
  joint->merged_ = Merge(jobs, uses);
  const MergedJobs& merged = joint->merged_;
  KernelPrices& prices = joint->prices_;
  std::vector<HostParams> hosts;
  std::vector<double> comm_slowdowns, kernel_seconds;  // per job
  for (size_t j = 0; j < jobs.size(); ++j) {
    ASSIGN_OR_RETURN(const JobPrices job, PriceJob(*jobs[j], machine, costs, uses[j], pricers[j]));
    const KernelPrices& own = job.kernels;
    if (!jobs[j]->graph->skew.empty()) {
      return absl::UnimplementedError(
          absl::StrCat("not supported yet: unlike loads of experts in one of several jobs (`",
                       jobs[j]->name, "`). Leave `load` out."));
    }
    comm_slowdowns.push_back(job.comm_slowdown);
    kernel_seconds.push_back(KernelSeconds(*jobs[j]->graph, own));
    prices.costs.insert(prices.costs.end(), own.costs.begin(), own.costs.end());
    prices.slowdown_q20.insert(prices.slowdown_q20.end(), own.slowdown_q20.begin(),
                               own.slowdown_q20.end());
    HostParams host = HostParamsOf(jobs[j]->runtime);
    host.start_ps += jobs[j]->arrival_ps;
    hosts.resize(hosts.size() + jobs[j]->graph->programs.size(), host);
  }
  prices.num_kernels = prices.costs.size();
  prices.RowFor({});
  {
    ASSIGN_OR_RETURN(JointFold drawn, DrawJointly({jobs, uses, merged, machine, pricers}));
    joint->realised_ = std::move(drawn.realised);
    joint->sim_ =
        Quotient(drawn.graph, machine, joint->realised_, joint->prices_, options.discrete);
  }
  std::vector<bool> cuda_graphs;
  for (const HostParams& host : hosts) cuda_graphs.push_back(host.cuda_graphs);
  ASSIGN_OR_RETURN(TaskIndex index, TaskIndex::Create(merged.graph, cuda_graphs));
  joint->index_ = std::make_unique<TaskIndex>(std::move(index));
  joint->input_.reset(new SimInput{merged.graph, merged.uses, joint->sim_, *joint->index_,
                                   joint->prices_, joint->realised_, std::move(hosts)});
  joint->input_->shortcuts = options.shortcuts;
  // A simulation has one for all jobs.
  joint->input_->comm_slowdown_q20 = SlowdownQ20(WeightedMean(comm_slowdowns, kernel_seconds));
  joint->input_->link_sharing = jobs[0]->runtime.link_sharing;
  // Links serve urgent communications first if all jobs mark theirs.
  const bool by_priority = std::all_of(jobs.begin(), jobs.end(), [](const PlacedJob* job) {
    return job->runtime.link_sharing == LinkSharing::kPriority;
  });
  joint->input_->link_sharing = by_priority ? LinkSharing::kPriority : LinkSharing::kMaxMin;
  ASSIGN_OR_RETURN(joint->trace_, Simulate(*joint->input_));
  return joint;
}

SummaryRange JointSimulation::RangeOf(int job) const {
  SummaryRange range;
  range.program_begin = merged_.offsets[job].program;
  range.program_end = merged_.offsets[job + 1].program;
  const auto first_of = [&](int32_t program) {
    const auto found = std::partition_point(
        sim_.entities.begin(), sim_.entities.end(),
        [program](const SimGraph::Entity& entity) { return entity.program < program; });
    return static_cast<int32_t>(found - sim_.entities.begin());
  };
  range.entity_begin = first_of(range.program_begin);
  range.entity_end = first_of(range.program_end);
  return range;
}

int64_t JointSimulation::FinishOf(int job) const {
  const SummaryRange range = RangeOf(job);
  int64_t finish = input_->hosts[range.program_begin].start_ps;
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    finish = std::max(finish, trace_.FinishOf(e));
  }
  return finish;
}

SimResult JointSimulation::ResultOf(int job, bool timeline) {
  const SummaryRange range = RangeOf(job);
  const PlacedJob& placed = *jobs_[job];
  const int64_t arrival = placed.arrival_ps, whole = trace_.makespan_ps;
  trace_.makespan_ps = FinishOf(job);
  SimResult result = Summarise(*input_, trace_, ReplayMemory(*placed.graph, placed.runtime), range);
  if (timeline) result.slices = SlicesOf(*input_, trace_, range);
  trace_.makespan_ps = whole;

  // What comes before the first launch counts as `other`.
  result.makespan_ps -= arrival;
  result.critical_path.other -= arrival;
  for (DeviceClassResult& row : result.classes) {
    row.name.erase(0, placed.name.size() + 1);
    row.breakdown.other -= arrival;
    row.finish_ps -= arrival;
  }
  for (Slice& slice : result.slices) {
    slice.block -= merged_.offsets[job].block;
    slice.start_ps -= arrival;
    slice.end_ps -= arrival;
  }
  result.counters.blocks = static_cast<int64_t>(placed.graph->blocks.size());
  return result;
}

}  // namespace plancast
