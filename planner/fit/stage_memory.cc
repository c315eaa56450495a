#include "planner/fit/stage_memory.h"

#include <algorithm>

#include "base/check.h"
#include "base/memo_key.h"
#include "compiler/stage_program.h"
#include "executor/memory/allocator_replay.h"
#include "executor/memory/communicators.h"
#include "graph/execution/program_devices.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {
namespace {

constexpr size_t kMostBlocks = 1 << 16;  // that plans share, before all are forgotten

// All that SharedBlocks depend on: the options, less those that change no block outside of
// bodies.
std::string SharedKey(PlanOptions options) {
  const PlanOptions usual;
  options.etp = options.expert_tp();
  options.vpp = usual.vpp;
  options.sp = usual.sp;
  options.reshard = usual.reshard;
  options.prefetch = usual.prefetch;
  options.sync_each = usual.sync_each;
  options.sync_whole_each = usual.sync_whole_each;
  options.micro_batch = usual.micro_batch;
  options.micro_batches = usual.micro_batches;
  options.recompute = usual.recompute;
  options.recompute_layers = usual.recompute_layers;
  options.recompute_every = usual.recompute_every;
  options.recompute_joined = usual.recompute_joined;
  options.recompute_ops.clear();
  options.norms_in_products = usual.norms_in_products;
  options.offload_layers = usual.offload_layers;
  options.attention = usual.attention;
  options.overlap.clear();
  options.bucket_bytes = usual.bucket_bytes;
  options.first_bucket_bytes = usual.first_bucket_bytes;
  options.schedule_table = std::string(PlacementText(options.schedule_table));
  options.most_ongoing.clear();
  options.search_memory = usual.search_memory;
  options.layout.clear();
  options.cuts.clear();
  return MemoKey(options);
}

// The program of a stage, by where it runs alone.
Program StageOf(const DeviceMesh& mesh, int64_t stage) {
  const absl::StatusOr<int> pp = mesh.FindAxis("pp");
  PLANCAST_CHECK_OK(pp);
  Program program;
  program.where = {{*pp, stage}};
  return program;
}

}  // namespace

void StageMemory::Begin(const ProgramPlan& plan) {
  plan_ = &plan;
  inputs_ = plan.inputs();
  order_ = nullptr;
  if (bodies_.size() >= most_bodies_ || common_.size() >= kMostBlocks) Forget();
  bodies_.insert(plan.bodies);
  std::unique_ptr<SharedBlocks>& shared = shared_[SharedKey(*inputs_.options)];
  if (shared == nullptr) shared = std::make_unique<SharedBlocks>();
  catalogue_.Begin(shared.get());
  profiles_.clear();
  blocks_.clear();
  own_.clear();
}

void StageMemory::Forget() {
  ++times_forgotten_;
  bodies_.clear();
  shared_.clear();
  of_block_.clear();
  common_.clear();
  names_ = TensorNames();
}

void StageMemory::KnowNew() {
  for (int32_t b = static_cast<int32_t>(blocks_.size()); b < catalogue_.size(); ++b) {
    const auto know = [&](std::deque<Known>* known) {
      known->push_back({ProfileOf(catalogue_[b].block, overhead_.allocator), {}});
      return &known->back();
    };
    if (catalogue_.Outlives(b)) {
      Known*& known = of_block_[&catalogue_[b]];
      if (known == nullptr) known = know(&common_);
      blocks_.push_back(known);
    } else {
      blocks_.push_back(know(&own_));
    }
    profiles_.push_back(&blocks_.back()->profile);
  }
}

void StageMemory::Outline(int64_t stage, const ShortOrder& order) {
  OutlineStageProgram(inputs_, stage, order, &catalogue_, &outline_);
  KnowNew();
}

void StageMemory::Outline(int64_t stage) {
  Outline(stage, Order().Steps(stage));
  if (!LeavesAsMuch(outline_, profiles_)) {
    Outline(stage, {plan_->Schedule(inputs_.options->micro_batches).OfStage(stage)});
  }
}

int64_t StageMemory::BufferBytes() {
  runs_.assign(blocks_.size(), false);
  for (const Instance& instance : outline_.written.instances) runs_[instance.block] = true;
  comms_.clear();
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (!runs_[b]) continue;
    const BlockTemplate& block = catalogue_[static_cast<int32_t>(b)];
    for (const int32_t comm : profiles_[b]->comms) comms_.push_back(&block.comms[comm]);
  }
  int64_t bytes = 0;
  for (const Communicator& c : CommunicatorsOf(plan_->mesh, comms_, overhead_.communicators)) {
    bytes += CommunicatorBytes(overhead_.communicators, c);
  }
  return bytes;
}

PlanOrder& StageMemory::Order() {
  if (order_ == nullptr) order_ = &orders_.Of(*plan_);
  return *order_;
}

Footprint StageMemory::Of(int64_t stage) {
  Outline(stage);
  const Peak peak = FindPeak(outline_, profiles_, &parts_);
  return FootprintOf(outline_.written, peak, BufferBytes(), overhead_, CapacityAt(stage));
}

int64_t StageMemory::CapacityAt(int64_t stage) const {
  if (overhead_.capacities.empty()) return overhead_.capacity_bytes;
  return CapacityOf(overhead_, plan_->mesh, StageOf(plan_->mesh, stage));
}

void StageMemory::Place(int64_t stage, Footprint* footprint) {
  Outline(stage, Order().Placed(stage));
  std::vector<NamedBlock> named(blocks_.size());
  for (const Instance& instance : outline_.written.instances) {
    NamedBlock& block = named[instance.block];
    if (block.block != nullptr) continue;
    block.block = &catalogue_[instance.block].block;
    Known& known = *blocks_[instance.block];
    if (known.names.empty()) known.names = names_.NumbersOf(*block.block);
    block.names = &known.names;
  }
  footprint->Place(ReplayAllocator(outline_, named, names_.size(), overhead_.allocator,
                                   footprint->segment_room()));
}

int64_t StageMemory::HostBytes(int64_t stage) {
  Outline(stage);
  int64_t live = outline_.written.host_bytes, highest = live;
  ForEachIssued(outline_, [&](const Instance& instance, int32_t) {
    live += catalogue_[instance.block].block.host_bytes * instance.layer_count;
    highest = std::max(highest, live);
    return true;
  });
  return highest;
}

}  // namespace plancast
