#include "compiler/graph_assembly.h"

#include <algorithm>
#include <iterator>
#include <vector>

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

GraphAssembly::GraphAssembly(const DeviceMesh& mesh, ExecutionGraph recycled)
    : graph_(std::move(recycled)), recycled_(std::move(graph_.programs)) {
  graph_.mesh = mesh;
  graph_.kernels.clear();
  graph_.comms.clear();
  graph_.blocks.clear();
  graph_.programs.clear();
  graph_.rendezvous.clear();
}

Program GraphAssembly::TakeProgram() {
  if (recycled_.empty()) return {};
  Program program = std::move(recycled_.back());
  recycled_.pop_back();
  program.where.clear();
  program.instances.clear();
  program.joins.clear();
  std::fill(std::begin(program.static_bytes), std::end(program.static_bytes), 0);
  return program;
}

int32_t GraphAssembly::Add(const BlockTemplate& block) {
  std::vector<int32_t> kernels, comms;
  for (const KernelSpec& k : block.kernels) {
    kernels.push_back(InternIn(k, &kernel_ids_, &graph_.kernels));
  }
  for (const CommSpec& c : block.comms) comms.push_back(InternIn(c, &comm_ids_, &graph_.comms));
  graph_.blocks.push_back(block.block);
  plancast::Block& added = graph_.blocks.back();
  for (int32_t t = 0; t < added.size(); ++t) {
    added.spec[t] = (added.kind[t] == TaskKind::kKernel ? kernels : comms)[added.spec[t]];
  }
  return static_cast<int32_t>(graph_.blocks.size()) - 1;
}

int32_t GraphAssembly::Join(int64_t slot, int32_t program, int32_t instance) {
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
