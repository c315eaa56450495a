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
#include "compiler/sharding/optimizer_step.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/sharding/state_bytes.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {
namespace {

constexpr int kMaxMessagesPerReduction = 64;

// Of the rendezvous of the gradients that stages share: those after the first come behind all
// transfers.
int64_t SharedSlot(const std::vector<std::vector<StageRun>>& virtual_stages,
                   const PlanOptions& options, size_t index) {
  if (index == 0) return kTiedSlot;
  const auto borders = static_cast<int64_t>(2 * virtual_stages.size());
  return kTransferSlots + borders * options.micro_batches + static_cast<int64_t>(index) - 1;
}

int64_t Total(const ElementsByAxes& elements) {
  int64_t total = 0;
  for (const auto& [axes, count] : elements) total += count;
  return total;
}

// All that a block of messages depends on, but the plan.
std::string MessagesKey(absl::string_view what, int64_t elements, int messages,
                        const ElementsByAxes& cut, const std::vector<OwnReduction>& batch = {}) {
  std::string key = absl::StrCat(what, "|", elements, "|", messages);
  for (const auto& [axes, count] : cut) {
    absl::StrAppend(&key, "|", absl::StrJoin(axes, ","), ":", count);
  }
  for (const OwnReduction& own : batch) {
    absl::StrAppend(&key, "|batch ", absl::StrJoin(own.axes, ","), ":", own.elements, "/",
                    own.messages);
  }
  return key;
}

}  // namespace

bool MakesFreshGradients(const PlanOptions& options, const SoftwareProfile& profile) {
  return profile.update.fresh_gradients && !ShardsBodies(options);
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
      reduces_(options_.dp * options_.cp > 1 || !contents.ReducedOverBatch().empty()),
      shares_(reduces_ && options_.zero >= 1 && options_.shard_ranks() > 1),
      gathers_(shares_ && options_.zero <= 2),
      overlap_grad_(options_.overlap.count(Overlap::kGrad) > 0),
      overlap_param_(options_.overlap.count(Overlap::kParam) > 0),
      host_updates_(options_.offload.count(Offload::kOptimizer) > 0) {
  FillStaticBytes(in_, stage_, &writer_.program());
}

void GradientFlow::Begin() {
  if (gathers_ && overlap_param_) GatherAhead();
  if (!profile_.update.zero_grad || (host_updates_ && sharded_ != nullptr)) return;
  const int64_t elements = sharded_ == nullptr ? parameters_ : Kept();
  if (elements == 0 && contents_.TotalFrozen().elements > 0) return;
  writer_.Append(writer_.BlockOf({BlockKey::kZeroGradients, elements},
                                 [&] { return ZeroGradients(profile_, elements); }),
                 Phase::kOptimizer, 0, 0);
}

std::vector<GradientFlow::GatheredPiece> GradientFlow::TakeGathered(const StageRun& run) {
  auto it = gathered_.find({run.segment, run.layer_begin});
  if (it == gathered_.end()) return {};
  std::vector<GatheredPiece> pieces = std::move(it->second);
  gathered_.erase(it);
  return pieces;
}

int64_t GradientFlow::LayersPerPiece(const StageRun& run, bool reduces) const {
  const bool flows = reduces_ || host_updates_;
  if (!reduces || !flows || !overlap_grad_ || sharded_ != nullptr) return run.count;
  const BodyState& state = contents_.BodyOf(run).state;
  const int64_t own = Total(state.cut_gradients) + Total(state.reduced_over_batch);
  return LayersPerBucket(
      reduces_ ? contents_.ReducedOverData(run) + own : contents_.Parameters(run), run.count);
}

void GradientFlow::NoteBackward(const StageRun& run, int64_t count) {
  pending_ += (reduces_ ? contents_.ReducedOverData(run) : contents_.Parameters(run)) * count;
  const ElementsByAxes& cut = contents_.BodyOf(run).state.cut_gradients;
  if (!cut.empty()) AddTimes(cut, count, &pending_cut_);
  AddTimes(contents_.BodyOf(run).state.reduced_over_batch, count, &pending_batch_);
  const int64_t due = pending_ + Total(pending_cut_) + Total(pending_batch_);
  if (overlap_grad_ && due >= BucketElements()) ReducePending(/*whole=*/false);
}

void GradientFlow::EndChunk(bool last) {
  if (overlap_grad_ || !last) ReducePending(/*whole=*/!overlap_grad_);
  // What comes after adds to gradients that are reduced.
  if (!last && !reductions_.empty()) writer_.HoldCompute(reductions_.back());
}

int64_t GradientFlow::BucketElements() const {
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(options_.bucket_bytes) /
                                                   WireBytes(profile_.types.reduce_dtype)));
}

int64_t GradientFlow::LayersPerBucket(int64_t elements_per_layer, int64_t layers) const {
  if (elements_per_layer <= 0) return layers;
  return std::clamp<int64_t>(BucketElements() / elements_per_layer, 1, layers);
}

int GradientFlow::MessagesFor(int64_t elements) const {
  return static_cast<int>(
      std::clamp<int64_t>(elements / BucketElements(), 1, kMaxMessagesPerReduction));
}

// Reduces what is due, behind the newest compute instance.
void GradientFlow::ReducePending(bool whole) {
  if (!reduces_) {
    if (host_updates_) CopyToHost(std::exchange(pending_, 0), writer_.last_compute());
    return;
  }
  if (pending_ == 0 && pending_cut_.empty() && pending_batch_.empty()) return;
  const int64_t elements = std::exchange(pending_, 0);
  const ElementsByAxes cut = std::exchange(pending_cut_, {});
  const int messages = whole ? 1 : MessagesFor(elements);
  std::vector<OwnReduction> batch;
  for (const auto& [axes, count] : std::exchange(pending_batch_, {})) {
    batch.push_back({axes, count, whole ? 1 : MessagesFor(count)});
  }
  const auto make = [&] {
    return GradientReduction(mesh_, options_, profile_, elements, messages, cut, batch);
  };
  const int32_t block = cut.empty() && batch.empty()
                            ? writer_.BlockOf({BlockKey::kReduction, elements, messages}, make)
                            : writer_.BlockOf(writer_.catalogue().NumberOfText(
                                  MessagesKey("reduction", elements, messages, cut, batch), make));
  reductions_.push_back(
      writer_.Append(block, Phase::kComm, 0, 0, {{writer_.last_compute(), -1, -1}}));
  if (!host_updates_) return;
  int64_t reduced = elements + (cut.empty() ? 0 : Total(cut));
  for (const OwnReduction& own : batch) reduced += own.elements;
  CopyToHost(KeptElements(mesh_, options_, reduced, cut), reductions_.back());
}

int64_t GradientFlow::LeftForHost() const {
  if (!host_updates_ || sharded_ != nullptr || !reduces_) return 0;
  int64_t reduced = 0;
  ElementsByAxes cut;
  contents_.ForEachRun([&](const StageRun& run) {
    reduced +=
        (contents_.ReducedOverData(run) + Total(contents_.BodyOf(run).state.reduced_over_batch)) *
        run.count;
    AddTimes(contents_.BodyOf(run).state.cut_gradients, run.count, &cut);
  });
  return Kept() - KeptElements(mesh_, options_, reduced + (cut.empty() ? 0 : Total(cut)), cut);
}

void GradientFlow::CopyToHost(int64_t elements, int32_t behind) {
  if (elements == 0) return;
  const int64_t bytes = WholeBytes(elements, ElementBytes(profile_.types.reduce_dtype));
  const int32_t block =
      writer_.BlockOf({BlockKey::kGradientsToHost, bytes}, [&] { return GradientsToHost(bytes); });
  reductions_.push_back(writer_.Append(block, Phase::kComm, 0, 0, {{behind, -1, -1}}));
}

int32_t GradientFlow::Gather(int64_t elements, const ElementsByAxes& cut, int messages,
                             const std::vector<Join>& joins) {
  const int64_t all = std::max<int64_t>(parameters_, 1);
  const double element_bytes = ParameterWireBytes(profile_.GatherType(in_.dtype), in_.dtype, all,
                                                  contents_.ProductParameters()) /
                               static_cast<double>(all);
  const int64_t common = elements - (cut.empty() ? 0 : Total(cut));
  const auto make = [&] {
    return ParameterGather(mesh_, options_, common, element_bytes, messages, cut);
  };
  const int32_t block = cut.empty() ? writer_.BlockOf({BlockKey::kGather, elements, messages}, make)
                                    : writer_.BlockOf(writer_.catalogue().NumberOfText(
                                          MessagesKey("gather", elements, messages, cut), make));
  return writer_.Append(block, Phase::kComm, 0, 0, joins);
}

// Gathers at the start of the iteration, hidden behind the first forward pass;
// each piece of layers waits for its own.
void GradientFlow::GatherAhead() {
  contents_.ForEachRun([&](const StageRun& run) {
    const int64_t per_layer = contents_.Parameters(run);
    if (per_layer == 0) return;
    const int64_t piece = LayersPerBucket(per_layer, run.count);
    std::vector<GatheredPiece>& pieces = gathered_[{run.segment, run.layer_begin}];
    for (int64_t begin = 0; begin < run.count; begin += piece) {
      const int64_t count = std::min(piece, run.count - begin);
      ElementsByAxes cut;
      AddTimes(contents_.BodyOf(run).state.cut_parameters, count, &cut);
      pieces.push_back({Gather(per_layer * count, cut, MessagesFor(per_layer * count), {}),
                        run.layer_begin + begin, count});
    }
  });
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
}

int64_t GradientFlow::Kept() const {
  if (!shares_) return parameters_;
  if (sharded_ != nullptr) return sharded_->ShardElements();
  return KeptElements(mesh_, options_, parameters_, contents_.CutParameters());
}

int64_t GradientFlow::FreshBytes() const {
  if (!MakesFreshGradients(options_, profile_)) return 0;
  int64_t bytes = 0;
  contents_.ForEachRun([&](const StageRun& run) {
    const BlockTemplate& backward = contents_.BodyOf(run).blocks.backward;
    bytes += FreshGradientBytes(backward, contents_.Parameters(run),
                                ElementBytes(profile_.types.grad_dtype)) *
             run.count;
  });
  return bytes;
}

void GradientFlow::Update(const std::vector<Join>& joins) {
  const int64_t elements = Kept();
  const std::vector<int> shared =
      shares_ ? ShardAxesOf(mesh_, options_, DataAxes(mesh_)).shard : std::vector<int>();
  std::vector<int> axes;
  for (int a = 0; a < mesh_.num_axes(); ++a) {
    const Purpose root = PurposeOfAxes(mesh_, {a});
    const bool data = root == Purpose::kDp || root == Purpose::kCp;
    const bool shard = std::find(shared.begin(), shared.end(), a) != shared.end();
    if (mesh_.size(a) > 1 && (!data || shard)) axes.push_back(a);
  }
  ShardedUpdate sharded;
  sharded.freed_gradients = FreshBytes();
  if (sharded_ != nullptr) {
    sharded.rests_as_master = RestsAsMaster(options_, profile_, in_.dtype);
    if (!profile_.update.zero_grad && !host_updates_) {
      sharded.freed_gradients = sharded_->GradientBytes(ShardTypesOf(in_, contents_));
      if (profile_.data_parallel.shard_cut != ShardCut::kParameter)
        sharded.pool = MemoryPool::kReduce;
    }
  }
  sharded.on_host = host_updates_;
  if (host_updates_ && options_.offload.count(Offload::kParameters) == 0) {
    sharded.copied_back = WholeBytes(elements, ShardTypesOf(in_, contents_).at_rest);
  }
  const int32_t block = writer_.BlockOf(
      {BlockKey::kOptimizer, elements, sharded.freed_gradients},
      [&] { return OptimizerStep(profile_, in_.dtype, elements, axes, options_.pp > 1, sharded); });
  const int32_t update = writer_.Append(block, Phase::kOptimizer, 0, 0, joins);
  if (writer_.BlockAt(block).rendezvous_task >= 0) writer_.Meet(update, kOptimizerSlot);
  if (gathers_ && !overlap_param_ && (parameters_ > 0 || contents_.TotalFrozen().elements == 0)) {
    Gather(parameters_, contents_.CutParameters(), 1, {{update, -1, -1}});
  }
}

// Gradients that are partial over other axes than the data-parallel ones.
void GradientFlow::ReduceOthers(std::vector<Join>* joins) {
  const std::vector<Join> before = *joins;
  ElementsByAxes totals = contents_.ReducedOverOthers();
  if (sharded_ != nullptr) {
    // Blocks of layers reduce over the data-parallel axes alone.
    const std::vector<int> data = DataAxes(mesh_);
    for (const auto& [axes, elements] : contents_.ReducedOverBatch()) {
      std::vector<int> others;
      std::set_difference(axes.begin(), axes.end(), data.begin(), data.end(),
                          std::back_inserter(others));
      totals[others] += elements;
    }
  }
  for (const auto& total : totals) {
    const std::vector<int>& axes = total.first;
    // Of sharded gradients their shards are summed.
    const bool shards = sharded_ != nullptr && PurposeOfAxes(mesh_, axes) != Purpose::kDp;
    const int64_t elements = shards ? CeilDiv(total.second, options_.shard_ranks()) : total.second;
    int64_t mask = 0;
    for (int axis : axes) mask |= int64_t{1} << axis;
    const int32_t block = writer_.BlockOf({BlockKey::kPartialSum, mask, elements}, [&] {
      return PartialGradientSum(mesh_, profile_, axes, elements);
    });
    joins->push_back({writer_.Append(block, Phase::kComm, 0, 0, before), -1, -1});
  }
}

// Two stages with users of a parameter swap their gradients of it: both directions at once, told
// from the first stage's side. More reduce them together.
void GradientFlow::ReduceShared(std::vector<Join>* joins) {
  const std::vector<SharedGradients> all = SharedGradientsOf(*in_.shared);
  for (size_t s = 0; s < all.size(); ++s) {
    const std::vector<int64_t>& stages = all[s].stages;
    if (std::find(stages.begin(), stages.end(), stage_) == stages.end()) continue;
    const int64_t elements =
        sharded_ == nullptr ? all[s].elements : CeilDiv(all[s].elements, options_.shard_ranks());
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
    writer_.Meet(index, SharedSlot(*in_.stages, options_, s));
    joins->push_back({index, -1, -1});
  }
}

void FillStaticBytes(const ProgramInputs& inputs, int64_t stage, Program* program) {
  const StageContents contents(inputs, stage);
  const PlanOptions& options = *inputs.options;
  const SoftwareProfile& profile = *inputs.profile;
  const int64_t parameters = contents.TotalParameters();
  const FrozenParameters frozen = contents.TotalFrozen();
  double fixed = FrozenBytes(profile, inputs.dtype, frozen);
  int64_t kept = KeptElements(*inputs.mesh, options, parameters, contents.CutParameters());
  StateBytes bytes;
  if (ShardsBodies(options)) {
    const ShardedStage sharded(inputs, contents);
    kept = sharded.ShardElements();
    bytes = StateOf(profile, inputs.dtype, options.zero == 3 ? kept : parameters, kept,
                    contents.ProductParameters() / (options.zero == 3 ? options.shard_ranks() : 1));
    bytes.gradients =
        profile.update.zero_grad
            ? static_cast<double>(sharded.GradientBytes(ShardTypesOf(inputs, contents)))
            : 0;
    if (RestsAsMaster(options, profile, inputs.dtype)) {
      // The master's shard, counted with the optimizer elsewhere, is the parameter.
      bytes.parameters = static_cast<double>(StoredBytes(*profile.MasterType(inputs.dtype), kept));
      bytes.optimizer -= bytes.parameters;
    }
    if (options.zero == 3 && frozen.elements > 0) {
      fixed *= static_cast<double>(sharded.FrozenShards()) / static_cast<double>(frozen.elements);
    }
  } else {
    bytes = StateOf(profile, inputs.dtype, parameters, kept, contents.ProductParameters());
    if (MakesFreshGradients(options, profile)) bytes.gradients = 0;
  }
  bytes.parameters += fixed;
  // What lives on the host: state and the gradients that it is updated with, in fp32, and
  // parameters.
  double host = 0;
  if (options.offload.count(Offload::kOptimizer) > 0) {
    host += std::exchange(bytes.optimizer, 0) + 4 * static_cast<double>(kept);
    if (options.zero >= 2) bytes.gradients = 0;
  }
  if (options.offload.count(Offload::kParameters) > 0) host += std::exchange(bytes.parameters, 0);
  program->host_bytes = static_cast<int64_t>(host);
  auto set = [program](MemoryKind kind, double value) {
    program->static_bytes[static_cast<int>(kind)] = static_cast<int64_t>(value);
  };
  set(MemoryKind::kParameters, bytes.parameters);
  set(MemoryKind::kGradients, bytes.gradients);
  set(MemoryKind::kOptimizer, bytes.optimizer);
  program->static_bytes[static_cast<int>(MemoryKind::kWorkspace)] = contents.HeldBytes();
}

}  // namespace plancast
