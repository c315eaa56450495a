#include "compiler/graph_workspace.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/stage_crossings.h"
#include "compiler/stage_program.h"

namespace plancast {
namespace {

bool SameProgram(const Program& a, const Program& b) {
  const auto same_instance = [](const Instance& x, const Instance& y) {
    return x.block == y.block && x.layer_begin == y.layer_begin && x.layer_count == y.layer_count &&
           x.micro_batch == y.micro_batch && x.chunk == y.chunk && x.phase == y.phase &&
           x.forward == y.forward && x.rendezvous == y.rendezvous && x.join_begin == y.join_begin &&
           x.join_end == y.join_end;
  };
  const auto same_join = [](const Join& x, const Join& y) {
    return x.from == y.from && x.from_port == y.from_port && x.to_port == y.to_port;
  };
  return a.where == b.where &&
         std::equal(a.instances.begin(), a.instances.end(), b.instances.begin(), b.instances.end(),
                    same_instance) &&
         std::equal(a.joins.begin(), a.joins.end(), b.joins.begin(), b.joins.end(), same_join);
}

// Enough for the first and the last pass of a phase to differ, and where blocks are
// sharded those between from both.
int64_t DraftedMicroBatches(const PlanOptions& options) {
  if (!options.schedule_table.empty() || !options.most_ongoing.empty() ||
      options.splits_backward() || Turns(options.schedule) || RunsBothWays(options.schedule) ||
      options.spreads_vocabulary() || options.makes_pairs()) {
    return options.micro_batches;
  }
  const bool shards =
      options.most_zero() >= 2 && (options.node_zero >= 2 || options.dp * options.cp > 1);
  return shards ? std::min<int64_t>(options.micro_batches, 3) : 2;
}

}  // namespace

absl::Status GraphWorkspace::Compile(const CompileRequest& request, Session& session) {
  const PlanOptions& options = *request.options;
  ASSIGN_OR_RETURN(const ProgramPlan plan, PlanPrograms(request, session, /*observer=*/nullptr));
  const ProgramInputs inputs = plan.inputs();
  const Order order{options.schedule,
                    options.schedule_table,
                    options.most_ongoing,
                    options.pp,
                    options.vpp,
                    options.micro_batches,
                    TransfersBlock(options, *request.profile),
                    options.vocab_parallel,
                    options.makes_pairs()};
  catalogue_.Clear();
  if (plan.parking != nullptr) {
    drafts_.clear();
    like_before_.clear();
    order_ = {};
    assembly_.Begin(plan.mesh, plan.bodies->bound.load.skew);
    return plan.WriteAll(plan.Schedule(options.micro_batches), &catalogue_, &assembly_);
  }
  plan.Announce(&assembly_);
  if (order == order_) {
    assembly_.BeginAlike(plan.mesh, plan.bodies->bound.load.skew);
  } else {
    order_ = order;
    drafts_.clear();
    like_before_.clear();
    assembly_.Begin(plan.mesh, plan.bodies->bound.load.skew);
  }
  const PipelineSchedule few = plan.Schedule(DraftedMicroBatches(options));
  std::optional<PipelineSchedule> schedule;
  const auto write = [&](int64_t stage) {
    if (!schedule.has_value()) schedule.emplace(plan.Schedule(options.micro_batches));
    const int32_t drafted = catalogue_.size();
    BuildStageProgram(inputs, stage, schedule->OfStage(stage), &catalogue_, &assembly_);
    PLANCAST_CHECK_EQ(catalogue_.size(), drafted) << "blocks that the draft does not show";
  };
  for (int64_t stage = 0; stage < options.pp; ++stage) {
    const auto index = static_cast<int32_t>(stage);
    const bool like_before = LikeTheStageBefore(inputs, stage);
    // Two plans that agree on a stage agree on the next if that is like it in both.
    const bool same = stage < assembly_.programs() && like_before && like_before_[stage] &&
                      (few.WarmsUp() || few.Same(stage, stage - 1));
    if (!same) {
      draft_.instances.clear();
      draft_.joins.clear();
      DraftStageProgram(inputs, stage, few.OfStage(stage), &catalogue_, &draft_);
    }
    if (stage < assembly_.programs() && !same && !SameProgram(draft_, drafts_[stage])) {
      // The plans part here; what was kept so far has to be written anew, for its
      // blocks and rendezvous are numbered together with the rest.
      drafts_.resize(stage);
      like_before_.resize(stage);
      assembly_.Begin(plan.mesh, plan.bodies->bound.load.skew);
      for (int64_t before = 0; before < stage; ++before) write(before);
    }
    if (stage < assembly_.programs()) {
      assembly_.Keep(index,
                     [this](int32_t number) -> const BlockTemplate& { return catalogue_[number]; });
      const Program& statics = same ? assembly_.program(index - 1) : draft_;
      std::copy_n(statics.static_bytes, kNumMemoryKinds, assembly_.program(index).static_bytes);
      assembly_.program(index).host_bytes = statics.host_bytes;
    } else {
      write(stage);
      drafts_.push_back(draft_);
      like_before_.push_back(like_before);
    }
    RETURN_IF_ERROR(request.Check(assembly_.graph(), index));
  }
  return absl::OkStatus();
}

}  // namespace plancast
