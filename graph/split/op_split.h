#ifndef PLANCAST_GRAPH_SPLIT_OP_SPLIT_H_
#define PLANCAST_GRAPH_SPLIT_OP_SPLIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/device_mesh.h"
#include "graph/layout/domain.h"
#include "graph/layout/layout.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Which mesh axes cut which factor of a rule: `axes[f]` lists mesh axes,
// outermost (smallest index) first. An axis cuts at most one factor.
struct FactorSplit {
  std::vector<std::vector<int>> axes;  // indexed by factor
  std::vector<ShardPattern> patterns;  // indexed by factor; empty: all kBlock

  static FactorSplit None(const OpRule& rule) {
    return {std::vector<std::vector<int>>(rule.factors().size()), {}};
  }
  ShardPattern pattern(int factor) const {
    return patterns.empty() ? ShardPattern::kBlock : patterns[factor];
  }
};

// A reduction that a split owes inside the op, after statement `after`.
struct InnerReduction {
  enum class Combiner : uint8_t {
    kElementwise,    // by `reduction`
    kOnlineSoftmax,  // tensors[0] is a maximum m and the others are sums that carry the factor
                     // exp(-m): each device rescales its own by exp(m_local - m_global), and the
                     // sums are added, in one exchange
    kScan,           // tensors are states of recurrences: each device learns the decay over the
                     // parts before its own and the state at their end, and walks its part again
                     // from there
  };
  int after = 0;             // index into rule.statements()
  std::vector<int> tensors;  // the statistic; several for a combined one
  Reduction reduction = Reduction::kSum;
  Combiner combiner = Combiner::kElementwise;
  std::vector<int> axes;  // mesh axes to reduce over
};

absl::string_view CombinerName(const InnerReduction& reduction);  // `sum`, `scan`, ...

// What one statement runs over: blocks of the factors that have axes, with what
// later statements read beyond them.
struct StatementCut {
  std::vector<std::vector<int>> axes;  // by factor
  std::vector<Halo> halos;             // by factor
};

// What a split of an op means for its tensors.
struct OpPartition {
  std::vector<Layout> tensors;             // indexed like rule.tensors(); outputs may be Partial
  std::vector<InnerReduction> reductions;  // in statement order
  // By statement, if factors are tied to each other; else empty: every
  // statement runs over the parts that the split says.
  std::vector<StatementCut> statements;

  std::string DebugString(const OpRule& rule, const DeviceMesh& mesh) const;
};

// Derives the partition. Factors tied by index maps are cut together, whichever
// of them `split` names: tensors that are read along them are wanted with the
// halo that the maps reach over, so that a spatial split of a convolution owes a
// halo exchange, which is a relayout of its input. A reduced output that nothing in the rule reads
// stays Partial; a statistic that a later statement reads owes its reduction inside, unless every
// reader is linear in it and passes it on. `extents` are the global factor sizes. Errors: an axis
// used twice; a factor smaller than the number of parts (with the sizes that work).
absl::StatusOr<OpPartition> PartitionOp(const OpRule& rule, const FactorSplit& split,
                                        const DeviceMesh& mesh,
                                        const std::vector<int64_t>& extents);

// The indices of every factor that `device` of the mesh works on.
std::vector<IndexSet> DeviceIndices(const FactorSplit& split, const DeviceMesh& mesh,
                                    const std::vector<int64_t>& extents, int64_t device);

// The indices that `device` runs statement `statement` over.
std::vector<IndexSet> StatementIndices(const OpPartition& partition, const FactorSplit& split,
                                       const DeviceMesh& mesh, const std::vector<int64_t>& extents,
                                       int statement, int64_t device);

// The work of statements [begin, end) of the rule on a shard with these local
// factor sizes (the largest shard).
struct Contraction {
  int statement = 0;
  // Sizes of the GEMM view: batch factors are in both operands and the target,
  // m in the first operand and the target, n in the second and the target,
  // k are the reduced ones.
  int64_t batch = 1, m = 1, n = 1, k = 1;
  double flops = 0;  // 2 * lattice points of the domain
};

struct OpWork {
  // Statements that are sums of products of two tensors, with m, n and k
  // factors: matrix multiplications. A lookup (a product with an indicator)
  // and a dot product per element are not.
  std::vector<Contraction> contractions;
  // Lattice points of all other statements, lookups followed; twice those of sums of
  // products and of recurrences.
  double pointwise_ops = 0;
  double random_numbers = 0;  // drawn by those
  // Lattice points of sums of products over windows of two dims and more, each channel by itself
  // (depthwise convolutions, their gradients).
  double window_points = 0;
  // Border tensors: read from outside, needed outside (outputs, saved tensors
  // and what later statements read). An output that is an input under another
  // name and the input if nothing else reads it are left out: no kernel runs.
  std::vector<int> reads, writes;
  // Elements moved, parallel to reads and writes. A lookup reads the rows it
  // needs, at most the whole table.
  std::vector<double> read_elements, write_elements;
  // Parallel to reads: elements of one row, where rows of the tensor are summed up and then
  // gone over again in the same statements; else 0.
  std::vector<double> reread_rows;
};

OpWork WorkOf(const OpRule& rule, const std::vector<int64_t>& local_extents, int begin, int end);
// The same for given indices of each factor, whose place matters to conditions
// (`where t <= s` on a shard of s).
OpWork WorkOf(const OpRule& rule, const std::vector<IndexSet>& indices, int begin, int end);

// One device's part of a split op; device -1 stands for the largest part, as if it
// had neighbours on all sides.
struct OpShard {
  const OpPartition& partition;
  const FactorSplit& split;  // with tied factors cut together
  const DeviceMesh& mesh;
  const std::vector<int64_t>& extents;  // global
  int64_t device = -1;
};
// The same for rules with index maps, whose statements run over different parts:
// halos are read and computed besides the part itself.
OpWork WorkOf(const OpRule& rule, const OpShard& shard, int begin, int end);

// Whether some statement of the rule is a matrix multiplication.
bool HasContraction(const OpRule& rule);

// Lattice points of the statement's box that satisfy its `where`.
double DomainPoints(const Statement& statement, const std::vector<int64_t>& extents);

// `statement` only gives an input another name or view: `d_r[b,s] = d_y[b,s]`, or
// `y[b,f] = x[b,i,j] where f == size(j) * i + j`.
bool IsRenaming(const OpRule& rule, const Statement& statement);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_OP_SPLIT_H_
