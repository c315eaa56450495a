// The part of GradientFlow that updates: all at the end, or bucket by bucket.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/sharding/gradient_blocks.h"
#include "compiler/sharding/gradient_flow.h"
#include "compiler/sharding/norm_chain.h"
#include "compiler/sharding/optimizer/optimizer_step.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/sharding/state_bytes.h"

namespace plancast {
namespace {

// All that the optimizer's step depends on, but the plan.
std::string UpdateKey(int64_t elements, const ShardedUpdate& update, const GradientNorm& norm) {
  std::string key = absl::StrCat(
      "optimizer|", elements, "|", absl::StrJoin(norm.axes, ","), "|", norm.none ? "none|" : "",
      update.tensors, "|", absl::StrJoin(norm.of_tensors, ","), "|", update.copied_back, "|",
      update.freed_gradients, "|", update.freed_shards, update.elsewhere ? "|elsewhere" : "");
  for (const ShardedUpdate::Share& share : update.shares) {
    absl::StrAppend(&key, "|", share.elements, share.rests_as_master ? " master" : "",
                    share.on_host ? " host" : "", " ", share.matrices.elements);
    for (const MatrixShape& shape : share.matrices.shapes) {
      absl::StrAppend(&key, ",", shape.count, "x", shape.rows, "x", shape.columns);
    }
  }
  return key;
}

}  // namespace

int64_t GradientFlow::Kept() const {
  int64_t kept = 0;
  for (const StateGroup& group : groups_) kept += group.kept;
  return kept;
}

int64_t GradientFlow::FreshBytes() const {
  if (!profile_.update.fresh_gradients) return 0;
  int64_t bytes = 0;
  contents_.ForEachRun([&](const StageRun& run) {
    const BlockTemplate& backward = contents_.BodyOf(run).blocks.backward;
    // Where one rank has all, none are sharded, whatever nodes say.
    const std::vector<bool>* const whole =
        sharded_ == nullptr ? nullptr : contents_.WholeGradients(run);
    bytes += FreshGradientBytes(backward, WholeParameters(contents_, run, sharded_),
                                ElementBytes(profile_.types.grad_dtype), whole) *
             run.count;
  });
  return bytes;
}

int32_t GradientFlow::StepBlock(int64_t elements, GradientNorm* norm, ShardedUpdate* sharded) {
  const auto make = [&] { return OptimizerStep(profile_, in_.dtype, elements, *norm, *sharded); };
  const bool lamb = profile_.update.type == OptimizerType::kLamb;
  const bool copies = CopiesGradients(profile_);
  const bool by_tensor = lamb || copies || profile_.update.type == OptimizerType::kMuon;
  if (in_.homes == nullptr && !by_tensor) {
    return writer_.BlockOf(
        {BlockKey::kOptimizer, elements, sharded->freed_gradients + sharded->freed_shards}, make);
  }
  if (lamb || copies) sharded->tensors += TrainedTensors();
  if (lamb) AddTensorNorms(norm);
  return writer_.BlockOf(
      writer_.catalogue().NumberOfText(UpdateKey(elements, *sharded, *norm), make));
}

int64_t GradientFlow::TrainedTensors() const {
  int64_t tensors = 0;
  contents_.ForEachRun([&](const StageRun& run) {
    contents_.ForEachPart(run, [&](const HomePart& part) {
      for (const BodyState::Parameter& each : part.state->each) {
        if (!each.frozen) tensors += run.count;
      }
    });
  });
  return tensors;
}

void GradientFlow::AddTensorNorms(GradientNorm* norm) const {
  const bool shards = std::any_of(groups_.begin(), groups_.end(), [](const StateGroup& group) {
    return group.kept < group.parameters;
  });
  for (int a = 0; a < mesh_.num_axes(); ++a) {
    const Purpose root = PurposeOfAxes(mesh_, {a});
    const bool data = root == Purpose::kDp || root == Purpose::kCp;
    if (mesh_.size(a) > 1 && mesh_.root(a) != "pp" && (!data || shards)) {
      norm->of_tensors.push_back(a);
    }
  }
}

// One bucket late: the reduction has the time of the next bucket's backward passes.
void GradientFlow::UpdateEarly() {
  for (EarlyUpdate& update : early_) {
    if (update.kept == 0) continue;
    ShardedUpdate sharded;
    if (profile_.update.fresh_gradients) {
      sharded.freed_gradients = WholeBytes(update.made, ElementBytes(profile_.types.grad_dtype));
    }
    GradientNorm norm;
    norm.none = true;
    const int32_t block = StepBlock(update.kept, &norm, &sharded);
    updates_.push_back(
        {writer_.Append(block, Phase::kOptimizer, 0, 0, {{update.behind, -1, -1}}), -1, -1});
    updated_ += update.kept;
    given_up_ += sharded.freed_gradients;
  }
  early_.clear();
}

void GradientFlow::Update(const std::vector<Join>& joins) {
  UpdateEarly();
  const int64_t elements = Kept() - updated_;
  // All stages sum the norm over the same ranks.
  const bool over_data =
      in_.homes == nullptr ? options_.zero >= 1 : in_.homes->ShardsOverData(mesh_);
  const std::vector<int> shared = over_data && shares_
                                      ? ShardAxesOf(mesh_, options_, DataAxes(mesh_)).shard
                                      : std::vector<int>();
  GradientNorm norm;
  const bool waits = options_.optimizer == StepTime::kAtEnd;
  norm.none = updates_early_;
  norm.joins_programs = options_.pp > 1 && waits;
  norm.chained =
      options_.optimizer == StepTime::kPostValidated && ChecksGradients(profile_, in_.dtype);
  for (int a = 0; a < mesh_.num_axes(); ++a) {
    const Purpose root = PurposeOfAxes(mesh_, {a});
    const bool data = root == Purpose::kDp || root == Purpose::kCp;
    const bool shard = std::find(shared.begin(), shared.end(), a) != shared.end();
    // Ranks with nodes of their own have gradients that others lack.
    const bool placed = in_.place != nullptr && !in_.place->empty() && in_.place->at[a] >= 0;
    const bool alone = !waits && mesh_.root(a) == "pp";
    if (mesh_.size(a) > 1 && (!data || shard || placed) && !alone) norm.axes.push_back(a);
  }
  ShardedUpdate sharded;
  int64_t copied_back = 0;
  sharded.elsewhere = !groups_.empty();
  for (const StateGroup& group : groups_) {
    if (group.homes.elsewhere()) continue;
    sharded.elsewhere = false;
    const bool rests = InBodies(group.homes, sharded_) && group.homes.zero == 3 &&
                       RestsAsMaster(profile_, in_.dtype);
    sharded.shares.push_back({group.kept, rests, group.homes.state_on_host, group.matrices});
    if (group.homes.state_on_host && !group.homes.weights_on_host) copied_back += group.kept;
  }
  if (updates_early_) sharded.shares = {{elements, false, false}};
  sharded.freed_gradients = FreshBytes() - given_up_;
  if (sharded_ != nullptr && !profile_.update.zero_grad) {
    sharded.freed_shards = sharded_->GradientBytes(ShardTypesOf(in_, contents_));
    if (HasOwnStreams(profile_.data_parallel.shard_cut)) {
      sharded.pool = MemoryPool::kReduce;
    }
  }
  if (copied_back > 0) {
    sharded.copied_back = WholeBytes(copied_back, ShardTypesOf(in_, contents_).updated);
  }
  const int64_t freed = sharded.freed_gradients + sharded.freed_shards;
  const bool trains = contents_.TotalParameters() > 0 || contents_.TotalFrozen().elements == 0;
  const bool gathers = !overlap_param_ && trains;
  if (sharded.elsewhere && !StepHasNorm(profile_, norm)) {
    // Nothing to be done here but to wait for who updates.
    if (gathers) GatherUpdated(joins, freed);
    return;
  }
  if (updates_early_ && elements == 0 && freed == 0) {
    if (gathers) GatherUpdated(updates_.empty() ? joins : updates_, /*freed=*/0);
    return;
  }
  const int32_t block = StepBlock(elements, &norm, &sharded);
  const int32_t update = norm.chained
                             ? UpdateInChain(in_, stage_, block, joins, NormSlots(in_), &writer_)
                             : writer_.Append(block, Phase::kOptimizer, 0, 0, joins);
  if (writer_.BlockAt(block).rendezvous_task >= 0) writer_.Meet(update, kOptimizerSlot);
  updates_.push_back({update, -1, -1});
  if (gathers) GatherUpdated(updates_, /*freed=*/0);
}

}  // namespace plancast
