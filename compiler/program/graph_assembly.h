#ifndef PLANCAST_COMPILER_PROGRAM_GRAPH_ASSEMBLY_H_
#define PLANCAST_COMPILER_PROGRAM_GRAPH_ASSEMBLY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/lower/lower_block.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Collects blocks of a catalogue, their distinct kernels and communications,
// programs and rendezvous into an execution graph. May be used for one plan after
// the other; each takes over the memory of the one before.
class GraphAssembly {
 public:
  // Begins a graph on `mesh`, with nothing in it.
  void Begin(const DeviceMesh& mesh, const Skew& skew = {});
  // Begins a graph that has the programs of the one before, block by block, as far
  // as they had come: `Keep` says so of one program after the other.
  void BeginAlike(const DeviceMesh& mesh, const Skew& skew = {});
  // What follows lies on a mesh of its own, ExecutionGraph::stage_meshes' next, and numbers of
  // blocks are those of another catalogue.
  void BeginStage(const DeviceMesh& mesh, int64_t shift);
  // What follows is what runs at one of so many places: its numbers of blocks are those of another
  // catalogue, and it meets programs of the same place only, but in slot 0.
  void BeginPlace(int64_t place, int64_t places);
  int AddReshard(Reshard reshard) {
    graph_.reshards.push_back(std::move(reshard));
    return static_cast<int>(graph_.reshards.size()) - 1;
  }
  void OverlapIterations(bool overlap) { graph_.overlaps_iterations = overlap; }
  // Whether the host waits for every task but messages between stages (HostCallsOfOps::blocking).
  void BlockLaunches(bool block) { blocks_launches_ = block; }
  // How many programs the graph has, those to be kept included.
  int32_t programs() const { return static_cast<int32_t>(graph_.programs.size()); }

  // The block of the graph for number `number` of a catalogue, whose template is
  // `block`; added at its first use.
  int32_t Block(int32_t number, const BlockTemplate& block);
  // The rendezvous of `slot`, a small number that the caller gives it; each
  // caller joins it as a party.
  int32_t Join(int64_t slot, int32_t program, int32_t instance);

  // A program to be written, empty; it joins the graph by AddProgram.
  Program TakeProgram();
  void AddProgram(Program program);
  // Keeps program `program` of the graph before. `block_of`: number -> template.
  template <typename BlockOf>
  void Keep(int32_t program, const BlockOf& block_of) {
    while (static_cast<int32_t>(graph_.blocks.size()) < blocks_after_[program]) {
      Add(block_of(number_of_block_[graph_.blocks.size()]));
    }
  }
  Program& program(int32_t index) { return graph_.programs[index]; }

  const ExecutionGraph& graph() const { return graph_; }
  ExecutionGraph Finish() && { return std::move(graph_); }

 private:
  void ForgetBlocks();
  void Add(const BlockTemplate& block);

  ExecutionGraph graph_;
  bool blocks_launches_ = false;
  int stage_mesh_ = -1;  // of what is added
  int64_t place_ = 0, places_ = 1;
  std::vector<Program> spare_programs_;
  std::vector<plancast::Block> spare_blocks_;
  std::vector<int32_t> block_of_number_;  // -1: not in the graph yet
  std::vector<int32_t> number_of_block_;
  std::vector<int32_t> blocks_after_;        // per program: blocks when it was complete
  std::vector<int32_t> rendezvous_of_slot_;  // -1: none yet
  absl::flat_hash_map<KernelSpec, int32_t> kernel_ids_;
  absl::flat_hash_map<CommSpec, int32_t> comm_ids_;
  std::vector<int32_t> kernels_, comms_;  // of a template that is added
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_GRAPH_ASSEMBLY_H_
