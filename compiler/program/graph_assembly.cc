#include "compiler/program/graph_assembly.h"

#include <algorithm>
#include <iterator>

namespace plancast {
namespace {

template <typename Spec>
int32_t InternIn(const Spec& spec, absl::flat_hash_map<Spec, int32_t>* ids,
                 std::vector<Spec>* table) {
  auto [it, inserted] = ids->try_emplace(spec, static_cast<int32_t>(table->size()));
  if (inserted) table->push_back(spec);
  return it->second;
}

}  // namespace

void GraphAssembly::Begin(const DeviceMesh& mesh, const Skew& skew) {
  graph_.skew = skew;
  ForgetBlocks();
  graph_.mesh = mesh;
  graph_.stage_meshes.clear();
  graph_.reshards.clear();
  stage_mesh_ = -1;
  place_ = 0, places_ = 1;
  graph_.rendezvous.clear();
  for (Program& program : graph_.programs) spare_programs_.push_back(std::move(program));
  graph_.programs.clear();
  block_of_number_.clear();
  number_of_block_.clear();
  blocks_after_.clear();
  rendezvous_of_slot_.clear();
}

void GraphAssembly::BeginAlike(const DeviceMesh& mesh, const Skew& skew) {
  graph_.skew = skew;
  ForgetBlocks();
  graph_.mesh = mesh;
}

void GraphAssembly::ForgetBlocks() {
  for (plancast::Block& block : graph_.blocks) spare_blocks_.push_back(std::move(block));
  graph_.blocks.clear();
  graph_.kernels.clear();
  graph_.comms.clear();
  kernel_ids_.clear();
  comm_ids_.clear();
}

Program GraphAssembly::TakeProgram() {
  if (spare_programs_.empty()) return {};
  Program program = std::move(spare_programs_.back());
  spare_programs_.pop_back();
  program.where.clear();
  program.instances.clear();
  program.joins.clear();
  std::fill(std::begin(program.static_bytes), std::end(program.static_bytes), 0);
  program.host_bytes = 0;
  return program;
}

void GraphAssembly::BeginStage(const DeviceMesh& mesh, int64_t shift) {
  stage_mesh_ = static_cast<int>(graph_.stage_meshes.size());
  graph_.stage_meshes.push_back({mesh, shift});
  block_of_number_.clear();
}

void GraphAssembly::BeginPlace(int64_t place, int64_t places) {
  place_ = place;
  places_ = places;
  block_of_number_.clear();
}

void GraphAssembly::AddProgram(Program program) {
  program.stage_mesh = stage_mesh_;
  graph_.programs.push_back(std::move(program));
  blocks_after_.push_back(static_cast<int32_t>(graph_.blocks.size()));
}

int32_t GraphAssembly::Block(int32_t number, const BlockTemplate& block) {
  if (number >= static_cast<int32_t>(block_of_number_.size())) {
    block_of_number_.resize(number + 1, -1);
  }
  int32_t& known = block_of_number_[number];
  if (known < 0) {
    known = static_cast<int32_t>(graph_.blocks.size());
    number_of_block_.push_back(number);
    Add(block);
  }
  return known;
}

void GraphAssembly::Add(const BlockTemplate& block) {
  kernels_.clear();
  comms_.clear();
  for (const KernelSpec& k : block.kernels) {
    kernels_.push_back(InternIn(k, &kernel_ids_, &graph_.kernels));
  }
  for (const CommSpec& c : block.comms) {
    if (stage_mesh_ < 0 || c.kind == CollectiveKind::kReshard || IsOnHost(c.kind)) {
      comms_.push_back(InternIn(c, &comm_ids_, &graph_.comms));
      continue;
    }
    CommSpec own = c;
    own.stage_mesh = stage_mesh_;
    comms_.push_back(InternIn(own, &comm_ids_, &graph_.comms));
  }
  graph_.blocks.emplace_back();
  plancast::Block& added = graph_.blocks.back();
  if (!spare_blocks_.empty()) {
    added = std::move(spare_blocks_.back());
    spare_blocks_.pop_back();
  }
  added = block.block;
  for (int32_t t = 0; t < added.size(); ++t) {
    added.spec[t] = (added.kind[t] == TaskKind::kKernel ? kernels_ : comms_)[added.spec[t]];
    // Messages between stages wait as the schedule lets them (CanBlock): two neighbours that both
    // waited for what they send would wait for ever.
    if (blocks_launches_ && t != added.rendezvous_task) {
      added.flags[t] |= plancast::Block::kHostSync;
    }
  }
}

int32_t GraphAssembly::Join(int64_t slot, int32_t program, int32_t instance) {
  if (slot > 0) slot = 1 + (slot - 1) * places_ + place_;
  if (slot >= static_cast<int64_t>(rendezvous_of_slot_.size())) {
    rendezvous_of_slot_.resize(slot + 1, -1);
  }
  int32_t& index = rendezvous_of_slot_[slot];
  if (index < 0) {
    index = static_cast<int32_t>(graph_.rendezvous.size());
    graph_.rendezvous.emplace_back();
  }
  graph_.rendezvous[index].parties.push_back({program, instance});
  return index;
}

}  // namespace plancast
