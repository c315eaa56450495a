#ifndef PLANCAST_COMPILER_GRAPH_ASSEMBLY_H_
#define PLANCAST_COMPILER_GRAPH_ASSEMBLY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/lower_block.h"
#include "graph/execution_graph.h"

namespace plancast {

// Collects blocks, distinct kernels and communications, and rendezvous into an
// execution graph.
class GraphAssembly {
 public:
  // Takes over the memory of `recycled`, nothing of what it says.
  explicit GraphAssembly(const DeviceMesh& mesh, ExecutionGraph recycled = {});

  // The block under `key`, made from `make()` if it is not there yet.
  template <typename Make>
  int32_t Block(const std::string& key, Make&& make) {
    auto [it, inserted] = block_of_key_.try_emplace(key, 0);
    if (inserted) it->second = Add(std::forward<Make>(make)());
    return it->second;
  }

  // The rendezvous of `slot`, a small number that the caller gives it; each
  // caller joins it as a party.
  int32_t Join(int64_t slot, int32_t program, int32_t instance);

  // A program to be written, empty; it joins the graph by AddProgram.
  Program TakeProgram();
  void AddProgram(Program program) { graph_.programs.push_back(std::move(program)); }

  const ExecutionGraph& graph() const { return graph_; }
  ExecutionGraph Finish() && { return std::move(graph_); }

 private:
  int32_t Add(const BlockTemplate& block);

  ExecutionGraph graph_;
  std::vector<Program> recycled_;
  absl::flat_hash_map<std::string, int32_t> block_of_key_;
  std::vector<int32_t> rendezvous_of_slot_;  // -1: none yet
  absl::flat_hash_map<KernelSpec, int32_t> kernel_ids_;
  absl::flat_hash_map<CommSpec, int32_t> comm_ids_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_GRAPH_ASSEMBLY_H_
