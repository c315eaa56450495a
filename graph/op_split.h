#ifndef PLANCAST_GRAPH_OP_SPLIT_H_
#define PLANCAST_GRAPH_OP_SPLIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "graph/layout.h"
#include "graph/op_rule.h"

namespace plancast {

// Which mesh axes cut which factor of a rule: `axes[f]` lists mesh axes,
// outermost first. An axis cuts at most one factor.
struct FactorSplit {
  std::vector<std::vector<int>> axes;  // indexed by factor

  static FactorSplit None(const OpRule& rule) {
    return {std::vector<std::vector<int>>(rule.factors().size())};
  }
};

// A reduction that a split owes inside the op, after statement `after`.
struct InnerReduction {
  int after = 0;               // index into rule.statements()
  std::vector<int> tensors;    // the statistic; several for a combined (online softmax) one
  Reduction reduction = Reduction::kSum;
  bool online_softmax = false;
  std::vector<int> axes;       // mesh axes to reduce over
};

// What a split of an op means for its tensors.
struct OpPartition {
  std::vector<Layout> tensors;             // indexed like rule.tensors(); outputs may be Partial
  std::vector<InnerReduction> reductions;  // in statement order

  std::string DebugString(const OpRule& rule, const DeviceMesh& mesh) const;
};

// Derives the partition. A reduced output that nothing in the rule reads stays
// Partial; a statistic that a later statement reads owes its reduction inside,
// unless every reader is linear in it and passes it on.
// `extents` are the global factor sizes. Errors: an axis used twice; a factor
// smaller than the number of parts (with the sizes that work).
absl::StatusOr<OpPartition> PartitionOp(const OpRule& rule, const FactorSplit& split,
                                        const DeviceMesh& mesh,
                                        const std::vector<int64_t>& extents);

// The work of statements [begin, end) of the rule on a shard with these local
// factor sizes (the largest shard).
struct Contraction {
  int statement = 0;
  // Sizes of the GEMM view: batch factors are in both operands and the target,
  // m in the first operand and the target, n in the second and the target,
  // k in both operands only.
  int64_t batch = 1, m = 1, n = 1, k = 1;
  double flops = 0;  // 2 * lattice points of the domain
};

struct OpWork {
  std::vector<Contraction> contractions;  // statements that are sums of products of two tensors
  double pointwise_ops = 0;               // lattice points of all other statements
  std::vector<int> reads, writes;         // border tensors: read from outside, needed outside
};

OpWork WorkOf(const OpRule& rule, const std::vector<int64_t>& local_extents, int begin, int end);

// Lattice points of the statement's box that satisfy its `where`.
double DomainPoints(const Statement& statement, const std::vector<int64_t>& extents);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_OP_SPLIT_H_
