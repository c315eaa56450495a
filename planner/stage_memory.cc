#include "planner/stage_memory.h"

#include <algorithm>

#include "executor/memory/allocator_replay.h"
#include "executor/memory/communicators.h"

namespace plancast {
namespace {

constexpr size_t kMostBodies = 1024;  // of plans, before all are forgotten

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

// Micro-batches with which a program begins as with all of them, as far as
// ReplayAllocator goes: until the warm-up passes and three more have gone back, by when as
// many again have begun.
int64_t UntilPlaced(const PlanOptions& options) {
  const int64_t all = options.micro_batches, pp = options.pp;
  switch (options.schedule) {
    case Schedule::kNone:
      return std::min<int64_t>(all, 5);
    case Schedule::k1f1b:
      return std::min(all, 2 * pp + 3);
    case Schedule::kInterleaved:
      return all % pp == 0 ? std::min(all, 7 * pp) : all;
    default:
      return all;
  }
}

}  // namespace

void StageMemory::Begin(const ProgramPlan& plan) {
  plan_ = &plan;
  inputs_ = plan.inputs();
  periodic_ = nullptr;
  placed_ = nullptr;
  Keep(plan.bodies);
  catalogue_.Clear();
  profiles_.clear();
  blocks_.clear();
  own_.clear();
}

void StageMemory::Keep(const std::shared_ptr<const PlanBodies>& bodies) {
  if (seen_.size() >= kMostBodies) {
    seen_.clear();
    kept_.clear();
    of_block_.clear();
    of_bodies_.clear();
    names_ = TensorNames();
  }
  if (!seen_.insert(bodies.get()).second) return;
  kept_.push_back(bodies);
  for (const auto& body : bodies->bodies) {
    for (const BlockTemplate* block : {&body->blocks.forward, &body->blocks.backward}) {
      const auto [it, inserted] = of_block_.try_emplace(block, nullptr);
      if (!inserted) continue;
      of_bodies_.push_back({ProfileOf(block->block, overhead_.allocator), {}});
      it->second = &of_bodies_.back();
    }
  }
}

void StageMemory::KnowNew() {
  for (int32_t b = static_cast<int32_t>(blocks_.size()); b < catalogue_.size(); ++b) {
    const auto shared = of_block_.find(&catalogue_[b]);
    if (shared != of_block_.end()) {
      blocks_.push_back(shared->second);
    } else {
      own_.push_back({ProfileOf(catalogue_[b].block, overhead_.allocator), {}});
      blocks_.push_back(&own_.back());
    }
    profiles_.push_back(&blocks_.back()->profile);
  }
}

void StageMemory::Outline(int64_t stage, const PipelineSchedule& schedule) {
  OutlineStageProgram(inputs_, stage, schedule.OfStage(stage), &catalogue_, &outline_);
  KnowNew();
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

Footprint StageMemory::Of(int64_t stage) {
  if (periodic_ == nullptr) {
    periodic_ =
        std::make_unique<PipelineSchedule>(plan_->Schedule(UntilPeriodic(*inputs_.options)));
  }
  Outline(stage, *periodic_);
  const Peak peak = FindPeak(outline_, profiles_, &parts_);
  return FootprintOf(outline_.written, peak, BufferBytes(), overhead_);
}

void StageMemory::Place(int64_t stage, Footprint* footprint) {
  if (placed_ == nullptr) {
    placed_ = std::make_unique<PipelineSchedule>(plan_->Schedule(UntilPlaced(*inputs_.options)));
  }
  Outline(stage, *placed_);
  std::vector<NamedBlock> named(blocks_.size());
  for (const Instance& instance : outline_.written.instances) {
    NamedBlock& block = named[instance.block];
    if (block.block != nullptr) continue;
    block.block = &catalogue_[instance.block].block;
    Known& known = *blocks_[instance.block];
    if (known.names.empty()) known.names = names_.NumbersOf(*block.block);
    block.names = &known.names;
  }
  footprint->Place(
      ReplayAllocator(outline_, named, names_.size(), overhead_.allocator, footprint->room));
}

int64_t StageMemory::HostBytes(int64_t stage) {
  Of(stage);
  int64_t live = outline_.written.host_bytes, highest = live;
  ForEachIssued(outline_, [&](const Instance& instance, int32_t) {
    live += catalogue_[instance.block].block.host_bytes * instance.layer_count;
    highest = std::max(highest, live);
    return true;
  });
  return highest;
}

}  // namespace plancast
