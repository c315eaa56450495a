#include "compiler/sharding/gradient_flow.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/sharding/gradient_blocks.h"
#include "compiler/sharding/norm_chain.h"
#include "compiler/sharding/optimizer/optimizer_step.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/sharding/state_bytes.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {
namespace {

constexpr int kMaxMessagesPerReduction = 64;

// Of a state's own reductions, those that move anything.
int64_t Summed(const ElementsByCopies& own) {
  int64_t total = 0;
  for (const auto& [copies, elements] : own) total += copies.summed.empty() ? 0 : elements;
  return total;
}

bool AnySummed(const StageContents& contents) {
  bool any = false;
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run,
                         [&](const HomePart& part) { any = any || Summed(part.state->own) > 0; });
  });
  return any;
}

}  // namespace

int64_t SharedSlot(const ProgramInputs& in, size_t index) {
  if (index == 0) return kTiedSlot;
  const auto borders = static_cast<int64_t>(2 * in.stages->size());
  return kTransferSlots + borders * in.options->micro_batches + static_cast<int64_t>(index) - 1;
}

int64_t NormSlots(const ProgramInputs& in) {
  return SharedSlot(in, SharedGradientsOf(*in.shared, CopiedParameters(in)).size() + 1);
}

int64_t GradientFlow::Bucket::due() const {
  return elements + Total(cut) - placed + Total(batch) + Summed(own);
}

GradientFlow::GradientFlow(const ProgramInputs& inputs, int64_t stage,
                           const StageContents& contents, const ShardedStage* sharded,
                           ProgramWriter* writer)
    : in_(inputs),
      options_(*inputs.options),
      profile_(*inputs.profile),
      mesh_(*inputs.mesh),
      stage_(stage),
      contents_(contents),
      sharded_(sharded),
      writer_(*writer),
      parameters_(contents.TotalParameters()),
      reduces_(options_.dp * options_.cp > 1 || contents.ReducesOverBatch() || AnySummed(contents)),
      shares_(options_.shard_ranks() > 1),
      overlap_grad_(options_.overlap.count(Overlap::kGrad) > 0),
      overlap_param_(options_.overlap.count(Overlap::kParam) > 0),
      updates_early_(options_.optimizer == StepTime::kInBackward),
      groups_(StateGroupsOf(inputs, contents, sharded)),
      has_buckets_(std::any_of(
          groups_.begin(), groups_.end(),
          [sharded](const StateGroup& group) { return !InBodies(group.homes, sharded); })),
      host_updates_(std::any_of(groups_.begin(), groups_.end(), [](const StateGroup& group) {
        return group.homes.state_on_host;
      })) {
  FillStaticBytes(in_, contents_, sharded_, &writer_.program());
}

void GradientFlow::Begin() {
  if (overlap_param_) GatherAhead();
  // Where iterations overlap that is done before the next one's first pass is waited for.
  if (options_.optimizer == StepTime::kAtEnd) ClearGradients();
}

void GradientFlow::ClearGradients() {
  if (!profile_.update.zero_grad) return;
  int64_t elements = 0;
  bool any = false;
  for (const StateGroup& group : groups_) {
    const bool shards = InBodies(group.homes, sharded_);
    if (shards && (group.homes.state_on_host || group.homes.elsewhere())) continue;
    elements += shards ? group.kept : group.parameters;
    any = true;
  }
  if (!any) return;
  if (elements == 0 && contents_.TotalFrozen().elements > 0) return;
  writer_.Append(writer_.BlockOf({BlockKey::kZeroGradients, elements},
                                 [&] { return ZeroGradients(profile_, elements); }),
                 Phase::kOptimizer, 0, 0);
}

bool GradientFlow::HasBuckets(const StageRun& run) const {
  bool has = false;
  ForEachBucketed(run, [&](const HomePart&) { has = true; });
  return has;
}

int64_t GradientFlow::LayersPerPiece(const StageRun& run, bool reduces) const {
  return LayersThatFill(run, reduces, [](int64_t bytes) { return bytes; });
}

int64_t GradientFlow::LayersOfFirstPiece(const StageRun& run, bool reduces) const {
  return LayersThatFill(run, reduces, [this](int64_t bytes) { return NextBucketBytes(bytes); });
}

template <typename BytesOf>
int64_t GradientFlow::LayersThatFill(const StageRun& run, bool reduces, BytesOf bytes_of) const {
  if (!reduces || !GoesByBuckets() || !(reduces_ || host_updates_ || updates_early_)) {
    return run.count;
  }
  int64_t layers = run.count;
  ForEachBucketed(run, [&](const HomePart& part) {
    const BodyState& state = *part.state;
    const int64_t own = Total(state.cut_gradients) - state.placed_gradients +
                        Total(state.reduced_over_batch) + Summed(state.own);
    const int64_t each =
        reduces_ ? contents_.ReducedOverData(run, part) + own : contents_.Parameters(run, part);
    layers = std::min(layers, LayersPerBucket(bytes_of(part.homes.bucket_bytes), each, run.count));
  });
  return layers;
}

GradientFlow::Bucket& GradientFlow::BucketOf(const ParameterHomes& homes) {
  const auto known = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Bucket& bucket) { return bucket.Takes(homes); });
  if (known != pending_.end()) return *known;
  const bool whole =
      homes.zero == 1 && !homes.over && profile_.update.shared.ReducesWhole(profile_.update.type);
  pending_.push_back({homes.zero >= 1, whole, homes.state_on_host, homes.bucket_bytes});
  pending_.back().over = homes.over;
  return pending_.back();
}

void GradientFlow::EndBucketsBefore(const StageRun& run) {
  const int64_t common = contents_.Parameters(run) - contents_.BodyOf(run).state.placed_parameters;
  if (in_.homes == nullptr || !overlap_grad_ || common <= 0) return;
  for (Bucket& bucket : pending_) {
    bool goes_on = bucket.due() == 0;
    ForEachBucketed(run,
                    [&](const HomePart& part) { goes_on = goes_on || bucket.Takes(part.homes); });
    if (!goes_on) Reduce(&bucket, /*whole=*/false, bucket.made_by);
  }
}

void GradientFlow::NoteBackward(const StageRun& run, int64_t count) {
  EndBucketsBefore(run);
  ForEachBucketed(run, [&](const HomePart& part) {
    Bucket& bucket = BucketOf(part.homes);
    bucket.elements +=
        (reduces_ ? contents_.ReducedOverData(run, part) : contents_.Parameters(run, part)) * count;
    const ElementsByAxes& cut = part.state->cut_gradients;
    if (!cut.empty()) AddTimes(cut, count, &bucket.cut);
    bucket.placed += part.state->placed_gradients * count;
    AddTimes(part.state->reduced_over_batch, count, &bucket.batch);
    for (const auto& [copies, elements] : part.state->own) {
      if (reduces_ && !copies.summed.empty()) bucket.own[copies] += elements * count;
    }
    bucket.made_by = writer_.last_compute();
    if (GoesByBuckets() && bucket.due() >= BucketElements(NextBucketBytes(bucket.bytes))) {
      Reduce(&bucket, /*whole=*/false, writer_.last_compute());
    }
  });
}

void GradientFlow::EndChunk(bool last) {
  if (overlap_grad_ || !last) ReducePending(/*whole=*/!overlap_grad_);
  first_bucket_ = true;
  // What comes after adds to gradients that are reduced.
  if (!last && !reductions_.empty()) writer_.HoldCompute(reductions_.back());
}

int64_t GradientFlow::BucketElements(int64_t bytes) const {
  return std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(bytes) / WireBytes(profile_.types.reduce_dtype)));
}

int64_t GradientFlow::NextBucketBytes(int64_t bytes) const {
  const int64_t first = options_.first_bucket_bytes;
  return first_bucket_ && first > 0 ? std::min(first, bytes) : bytes;
}

int64_t GradientFlow::LayersPerBucket(int64_t bytes, int64_t elements_per_layer,
                                      int64_t layers) const {
  if (elements_per_layer <= 0) return layers;
  return std::clamp<int64_t>(BucketElements(bytes) / elements_per_layer, 1, layers);
}

int GradientFlow::MessagesFor(int64_t bytes, int64_t elements) const {
  return static_cast<int>(
      std::clamp<int64_t>(elements / BucketElements(bytes), 1, kMaxMessagesPerReduction));
}

void GradientFlow::ReducePending(bool whole) {
  for (Bucket& bucket : pending_) Reduce(&bucket, whole, writer_.last_compute());
}

void GradientFlow::Reduce(Bucket* bucket, bool whole, int32_t behind) {
  UpdateEarly();
  first_bucket_ = false;
  const int64_t elements = std::exchange(bucket->elements, 0);
  const ElementsByAxes cut = std::exchange(bucket->cut, {});
  bucket->placed = 0;
  const ElementsByAxes over_batch = std::exchange(bucket->batch, {});
  const ElementsByCopies over_own = std::exchange(bucket->own, {});
  if (!reduces_) {
    if (bucket->on_host) CopyToHost(elements, behind);
    if (updates_early_) early_.push_back({elements, elements, behind});
    return;
  }
  if (elements == 0 && cut.empty() && over_batch.empty() && over_own.empty()) return;
  const int messages = whole ? 1 : MessagesFor(bucket->bytes, elements);
  std::vector<OwnReduction> batch;
  for (const auto& [axes, count] : over_batch) {
    batch.push_back({axes, count, whole ? 1 : MessagesFor(bucket->bytes, count)});
  }
  for (const auto& [copies, count] : over_own) {
    const ShardAxes axes = ShardAxesOver(mesh_, options_, *bucket->over, copies);
    if (axes.summed.empty() && !axes.here) continue;  // summed where it is kept
    batch.push_back({{}, count, whole ? 1 : MessagesFor(bucket->bytes, count), axes});
  }
  if (batch.empty() && !over_own.empty()) return;
  const bool scatters = bucket->sharded && !bucket->whole;
  const auto make = [&] {
    return GradientReduction(mesh_, options_, profile_, scatters, elements, messages, cut, batch);
  };
  const bool plain = cut.empty() && batch.empty() && in_.homes == nullptr;
  const int32_t block = plain ? writer_.BlockOf({BlockKey::kReduction, elements, messages}, make)
                              : writer_.BlockOf(writer_.catalogue().NumberOfText(
                                    MessagesKey(scatters ? "sharded reduction" : "reduction",
                                                elements, messages, cut, batch),
                                    make));
  reductions_.push_back(writer_.Append(block, Phase::kComm, 0, 0, {{behind, -1, -1}}));
  if (updates_early_ && plain) {
    early_.push_back(
        {elements, KeptElements(mesh_, options_, bucket->sharded, elements), reductions_.back()});
  }
  if (!bucket->on_host) return;
  if (bucket->over.has_value()) {
    CopyToHost(KeptElementsOver(mesh_, options_, *bucket->over, over_own), reductions_.back());
    return;
  }
  int64_t reduced = elements + (cut.empty() ? 0 : Total(cut));
  for (const OwnReduction& own : batch) reduced += own.elements;
  CopyToHost(KeptElements(mesh_, options_, bucket->sharded, reduced, cut), reductions_.back());
}

int64_t GradientFlow::LeftForHost() const {
  if (!reduces_) return 0;
  int64_t left = 0;
  for (const StateGroup& group : groups_) {
    if (!group.homes.state_on_host || InBodies(group.homes, sharded_)) continue;
    if (group.homes.over.has_value()) {
      ElementsByCopies alike = group.own;
      for (auto it = alike.begin(); it != alike.end();) {
        it = it->first.summed.empty() ? std::next(it) : alike.erase(it);
      }
      left += KeptElementsOver(mesh_, options_, *group.homes.over, alike);
      continue;
    }
    int64_t reduced = 0;
    ElementsByAxes cut;
    contents_.ForEachRun([&](const StageRun& run) {
      contents_.ForEachPart(run, [&](const HomePart& part) {
        if (!group.Takes(part.homes)) return;
        reduced += (contents_.ReducedOverData(run, part) + Total(part.state->reduced_over_batch)) *
                   run.count;
        AddTimes(part.state->cut_gradients, run.count, &cut);
      });
    });
    left += group.kept - KeptElements(mesh_, options_, group.homes.zero >= 1,
                                      reduced + (cut.empty() ? 0 : Total(cut)), cut);
  }
  return left;
}

void GradientFlow::CopyToHost(int64_t elements, int32_t behind) {
  if (elements == 0) return;
  const int64_t bytes = WholeBytes(elements, ElementBytes(profile_.types.reduce_dtype));
  const int32_t block =
      writer_.BlockOf({BlockKey::kGradientsToHost, bytes}, [&] { return GradientsToHost(bytes); });
  reductions_.push_back(writer_.Append(block, Phase::kComm, 0, 0, {{behind, -1, -1}}));
}

void GradientFlow::Finish() {
  ReducePending(/*whole=*/true);
  std::vector<Join> joins{{writer_.last_compute(), -1, -1}};
  for (int32_t instance : writer_.held_by()) joins.push_back({instance, -1, -1});
  for (int32_t instance : reductions_) joins.push_back({instance, -1, -1});
  ReduceOthers(&joins);
  ReduceShared(&joins);
  // What no reduction has brought there.
  if (const int64_t left = LeftForHost(); left > 0) {
    CopyToHost(left, joins.back().from);
    joins.push_back({reductions_.back(), -1, -1});
  }
  Update(joins);
  if (options_.optimizer == StepTime::kPostValidated) ClearGradients();
}

// Gradients that are partial over other axes than the data-parallel ones.
void GradientFlow::ReduceOthers(std::vector<Join>* joins) {
  const std::vector<Join> before = *joins;
  const std::vector<int> data = DataAxes(mesh_);
  ElementsByAxes whole, sharded;
  contents_.ForEachRun([&](const StageRun& run) {
    contents_.ForEachPart(run, [&](const HomePart& part) {
      const bool in_bodies = InBodies(part.homes, sharded_);
      AddTimes(part.state->reduced_over_others, run.count, in_bodies ? &sharded : &whole);
      if (!in_bodies) return;
      // Blocks of layers reduce over the data-parallel axes alone.
      for (const auto& [axes, elements] : part.state->reduced_over_batch) {
        std::vector<int> others;
        std::set_difference(axes.begin(), axes.end(), data.begin(), data.end(),
                            std::back_inserter(others));
        sharded[others] += elements * run.count;
      }
    });
  });
  for (const auto& [axes, elements] : whole) SumPartial(axes, elements, before, joins);
  for (const auto& [axes, elements] : sharded) {
    // Of sharded gradients their shards are summed.
    const bool shards = PurposeOfAxes(mesh_, axes) != Purpose::kDp;
    SumPartial(axes, shards ? CeilDiv(elements, options_.shard_ranks()) : elements, before, joins);
  }
}

void GradientFlow::SumPartial(const std::vector<int>& axes, int64_t elements,
                              const std::vector<Join>& joins, std::vector<Join>* done) {
  int64_t mask = 0;
  for (int axis : axes) mask |= int64_t{1} << axis;
  const int32_t block = writer_.BlockOf({BlockKey::kPartialSum, mask, elements}, [&] {
    return PartialGradientSum(mesh_, profile_, axes, elements);
  });
  done->push_back({writer_.Append(block, Phase::kComm, 0, 0, joins), -1, -1});
}

// Users of a parameter have one home (HomePlan). Copies of a model sum what they keep.
bool GradientFlow::SharesGradients(const std::vector<int64_t>& stages) const {
  if (in_.placement->copies() > 1) return options_.most_zero() >= 1;
  if (in_.homes == nullptr || sharded_ == nullptr) return sharded_ != nullptr;
  return std::all_of(in_.shared->begin(), in_.shared->end(), [&](const SharedParameter& shared) {
    return shared.Stages() != stages || in_.homes->ZeroOf(shared.uses[0].segment) >= 2;
  });
}

// Two stages with users of a parameter swap their gradients of it: both directions at once, told
// from the first stage's side. More reduce them together.
void GradientFlow::ReduceShared(std::vector<Join>* joins) {
  if (in_.shared_crossings != nullptr) return ReduceSharedAcrossMeshes(joins);
  const std::vector<SharedGradients> all = SharedGradientsOf(*in_.shared, CopiedParameters(in_));
  for (size_t s = 0; s < all.size(); ++s) {
    const std::vector<int64_t>& stages = all[s].stages;
    if (std::find(stages.begin(), stages.end(), stage_) == stages.end()) continue;
    const int64_t elements = SharesGradients(stages)
                                 ? CeilDiv(all[s].elements, options_.shard_ranks())
                                 : all[s].elements;
    CommSpec comm;
    comm.bytes = WholeBytes(elements, WireBytes(profile_.types.reduce_dtype));
    comm.axes = {mesh_.FindAxis("pp").value()};
    if (stages.size() == 2) {
      comm.kind = CollectiveKind::kSendRecv;
      comm.peer_offset = static_cast<int>(stages[1] - stages[0]);
    }
    const int32_t block = writer_.BlockOf({BlockKey::kTied, comm.peer_offset, elements}, [&] {
      BlockBuilder builder("tied gradient");
      builder.MarkRendezvous(
          builder.AddComm(comm, StreamKind::kGradComm, Purpose::kDp, "tied gradient", {}));
      return std::move(builder).Build();
    });
    const int32_t index = writer_.Append(block, Phase::kComm, 0, 0, *joins);
    writer_.Meet(index, SharedSlot(in_, s));
    joins->push_back({index, -1, -1});
  }
}

// The two directions of a swap are messages of their own there.
void GradientFlow::ReduceSharedAcrossMeshes(std::vector<Join>* joins) {
  std::vector<Join> before;
  int turn = -1;
  for (size_t s = 0; s < in_.shared_crossings->size(); ++s) {
    const SharedCrossing& crossing = (*in_.shared_crossings)[s];
    if (crossing.from != stage_ && crossing.to != stage_) continue;
    if (std::exchange(turn, crossing.turn) != crossing.turn) before = *joins;
    const int32_t block = writer_.BlockOf({BlockKey::kTied, crossing.reshard, crossing.from}, [&] {
      return SharedGradientCrossing(crossing, /*sends=*/crossing.from == stage_);
    });
    const int32_t index = writer_.Append(block, Phase::kComm, 0, 0, before);
    writer_.Meet(index, SharedSlot(in_, s));
    joins->push_back({index, -1, -1});
  }
}

}  // namespace plancast
