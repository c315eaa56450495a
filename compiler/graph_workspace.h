#ifndef PLANCAST_COMPILER_GRAPH_WORKSPACE_H_
#define PLANCAST_COMPILER_GRAPH_WORKSPACE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "compiler/compiler.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/session.h"
#include "graph/execution/execution_graph.h"
#include "strategy/plan_options.h"

namespace plancast {

// The graph of one plan of many, made in place of the one before: in its memory,
// and with its programs where the two plans differ only in what blocks hold (sizes
// of shards, recomputation, groups). The same graph as Compile's.
class GraphWorkspace {
 public:
  // Errors: as Compile; the graph is then good for nothing but to be replaced.
  absl::Status Compile(const CompileRequest& request, Session& session);
  const ExecutionGraph& graph() const { return assembly_.graph(); }

 private:
  // What says in which order the stages do what, beyond what a draft shows.
  struct Order {
    Schedule schedule = Schedule::kNone;
    std::string table;
    std::vector<int64_t> most_ongoing;
    int64_t pp = 0, vpp = 0, micro_batches = 0;
    bool transfers_block = false;
    VocabParallel vocab_parallel = VocabParallel::kEnds;
    bool pairs = false;

    friend bool operator==(const Order& a, const Order& b) {
      return a.schedule == b.schedule && a.table == b.table && a.most_ongoing == b.most_ongoing &&
             a.pp == b.pp && a.vpp == b.vpp && a.micro_batches == b.micro_batches &&
             a.transfers_block == b.transfers_block && a.vocab_parallel == b.vocab_parallel &&
             a.pairs == b.pairs;
    }
  };

  Order order_;
  BlockCatalogue catalogue_;
  // Each program with few micro-batches (ProgramWriter): two plans of one order
  // whose drafts are equal have equal programs.
  std::vector<Program> drafts_;
  std::vector<bool> like_before_;  // per program: like that of the stage before
  Program draft_;
  GraphAssembly assembly_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_GRAPH_WORKSPACE_H_
