#include "planner/fits.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "executor/memory/communicators.h"

namespace plancast {
namespace {

// Micro-batches after which the memory of a stage repeats: it has its warm-up passes in
// flight and has run one period more (schedule.h). Schedules that are not here need all.
int64_t UntilPeriodic(const PlanOptions& options) {
  const int64_t all = options.micro_batches, pp = options.pp;
  switch (options.schedule) {
    case Schedule::kNone:
      return std::min<int64_t>(all, 3);
    case Schedule::k1f1b:
      return std::min(all, pp + 2);
    case Schedule::kInterleaved:
      return all % pp == 0 ? std::min(all, 3 * pp) : all;
    default:
      return all;
  }
}

}  // namespace

FitCheck::FitCheck(Job job, const Machine& machine, Session& session)
    : job_(std::move(job)), machine_(machine), session_(session), overhead_(job_.profile.memory) {
  overhead_.capacity_bytes = static_cast<int64_t>(machine.device().capacity_bytes());
}

const SoftwareProfile& FitCheck::ProfileFor(Schedule schedule) {
  const auto [it, inserted] = settled_.try_emplace(schedule);
  if (inserted) it->second = job_.profile.For(job_.dtype, schedule);
  return it->second;
}

void FitCheck::Know(const std::shared_ptr<const PlanBodies>& bodies) {
  if (!seen_.insert(bodies.get()).second) return;
  kept_.push_back(bodies);
  for (const auto& body : bodies->bodies) {
    for (const BlockTemplate* block : {&body->blocks.forward, &body->blocks.backward}) {
      const auto [it, inserted] = known_.try_emplace(block, nullptr);
      if (!inserted) continue;
      of_bodies_.push_back(ProfileOf(block->block, overhead_.allocator));
      it->second = &of_bodies_.back();
    }
  }
}

void FitCheck::ProfileNew() {
  for (int32_t b = static_cast<int32_t>(profiles_.size()); b < catalogue_.size(); ++b) {
    const auto known = known_.find(&catalogue_[b]);
    if (known != known_.end()) {
      profiles_.push_back(known->second);
      continue;
    }
    own_.push_back(ProfileOf(catalogue_[b].block, overhead_.allocator));
    profiles_.push_back(&own_.back());
  }
}

int64_t FitCheck::BufferBytes(const DeviceMesh& mesh) {
  runs_.assign(profiles_.size(), false);
  for (const Instance& instance : draft_.instances) runs_[instance.block] = true;
  comms_.clear();
  for (size_t b = 0; b < profiles_.size(); ++b) {
    if (!runs_[b]) continue;
    const BlockTemplate& block = catalogue_[static_cast<int32_t>(b)];
    for (const int32_t comm : profiles_[b]->comms) comms_.push_back(&block.comms[comm]);
  }
  int64_t bytes = 0;
  for (const Communicator& c : CommunicatorsOf(mesh, comms_, overhead_.communicators)) {
    bytes += CommunicatorBytes(overhead_.communicators, c);
  }
  return bytes;
}

absl::StatusOr<FitVerdict> FitCheck::Verdict(const ShortForm& plan) {
  job_.strategy = StrategyTree::FromShortForm(plan);
  ASSIGN_OR_RETURN(const PlanGraph settled, SettlePlan(job_, machine_, session_));
  const PlanOptions& options = settled.chosen.options;
  const SoftwareProfile& profile = ProfileFor(options.schedule);
  CompileRequest request;
  request.graph = settled.graph.get();
  request.tree = &job_.strategy;
  request.options = &options;
  request.profile = &profile;
  request.dtype = job_.dtype;
  request.graph_key = settled.graph_key;
  ASSIGN_OR_RETURN(const ProgramPlan programs, PlanPrograms(request, session_, nullptr));
  Know(programs.bodies);
  const ProgramInputs inputs = programs.inputs();
  const PipelineSchedule schedule = programs.Schedule(UntilPeriodic(options));
  catalogue_.Clear();
  profiles_.clear();
  own_.clear();
  FitVerdict verdict;
  verdict.capacity_bytes = overhead_.capacity_bytes;
  for (int64_t stage = 0; stage < options.pp; ++stage) {
    if (LikeTheStageBefore(inputs, stage)) continue;  // with less in flight
    draft_.instances.clear();
    draft_.joins.clear();
    DraftStageProgram(inputs, stage, schedule.OfStage(stage), &catalogue_, &draft_);
    ProfileNew();
    const std::optional<int64_t> bytes =
        DeviceBytesOf(draft_, profiles_, BufferBytes(programs.mesh), overhead_);
    if (!bytes.has_value()) return Compiled();
    if (*bytes <= verdict.device_bytes) continue;
    verdict.device_bytes = *bytes;
    verdict.stage = static_cast<int32_t>(stage);
  }
  verdict.fits = verdict.device_bytes <= verdict.capacity_bytes;
  return verdict;
}

absl::StatusOr<FitVerdict> FitCheck::Compiled() {
  ASSIGN_OR_RETURN(const PlanGraph plan,
                   DrawAndCompileInto(job_, machine_, session_, nullptr, &workspace_));
  const std::vector<BlockProfile> profiles = ProfileBlocks(*plan.execution, overhead_.allocator);
  FitVerdict verdict;
  verdict.capacity_bytes = overhead_.capacity_bytes;
  for (size_t p = 0; p < plan.execution->programs.size(); ++p) {
    const auto program = static_cast<int32_t>(p);
    const int64_t bytes = DeviceBytes(*plan.execution, program, profiles, overhead_);
    if (bytes <= verdict.device_bytes) continue;
    verdict.device_bytes = bytes;
    verdict.stage = program;
  }
  verdict.fits = verdict.device_bytes <= verdict.capacity_bytes;
  return verdict;
}

}  // namespace plancast
