#ifndef PLANCAST_GRAPH_RULE_OP_RULE_H_
#define PLANCAST_GRAPH_RULE_OP_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "graph/rule/expr.h"

namespace plancast {

// An op said in index notation; the only source of its legal splits, FLOPs,
// bytes, owed collectives and backward op. Text form:
//
//   softmax(x) -> (y) {
//     m[i]:f32 max= x[i,j]
//     z[i]:f32 += exp(x[i,j] - m[i])
//     y[i,j] = exp(x[i,j] - m[i]) / z[i]
//     save y
//   }
//
// - `T[i,j]` is an element of tensor T; the names in brackets are factors,
//   shared by the whole rule. Every tensor has one fixed dim list: one factor
//   per dim.
// - A statement computes its target over the box of all its factors (those on
//   either side), restricted by `where` (e.g. `where t <= s`). Factors that
//   are missing on the left are reduced with `+=` or `max=`.
// - An equality in `where` is an index map: `x[b,p] ... where p == 2 * i + k - 1`,
//   or shorter `x[b,2 * i + k - 1]`, reads x at that position. Positions outside
//   the tensor are no points of the statement, so sums take them as zero
//   (padding) and maxima leave them out. docs/op_rules.md has examples.
// - `where r follows s` promises that a table sends slots r where tokens s are
//   (graph/rule/expr.h): routed factors.
// - `[i == l[b]]` is 1 where the integer tensor element equals the index, else
//   0 (embedding lookup, target logit). `random()` is a fresh random value per
//   point (dropout masks).
// - `h[b,t,n] scan(t)= a[b,t,n] * previous + u[b,t,n]` is a recurrence along t,
//   linear in the state before (zero at first), so that parts of t combine;
//   `scan(t, reverse)` runs from the end, `scan(t, before)` keeps the state that each
//   step comes from.
// - `y[b,i] opaque(b)= x[b,j] * w[k]` stands for any function of the tensors read, one
//   for each b: the other factors cannot be cut, and no FLOPs are known.
// - A tensor may carry an element type (`:f32`, `:u8`, `:i64`); the default is
//   the compute type. Parameters are marked `param w` in the argument list.
// - `save` lists what the backward op may read (inputs, outputs or
//   intermediates); anything else it needs must be recomputable from these
//   inside the op (verified by Differentiate).
// - `fused NAME` says that all statements are one kernel of cost family NAME
//   (`attention`); a split factor that several of its statements reduce owes one
//   combined reduction: with the online-softmax combiner where it is one, and else
//   packed where the statistics do not wait for each other.
struct RuleTensor {
  enum class Role : uint8_t { kInput, kOutput, kIntermediate };
  std::string name;
  Role role = Role::kIntermediate;
  bool parameter = false;
  DType dtype = DType::kCompute;
  std::vector<int> factors;  // one per dim, indices into OpRule::factors()
};

enum class Combine : uint8_t { kAssign, kSum, kMax, kScan, kOpaque };

// How a recurrence walks: along `factor`, from its end if reversed; it keeps every
// state, or with `before` the one that each step came from.
struct ScanOrder {
  int factor = -1;
  bool reversed = false, before = false;
};

struct Statement {
  int target = -1;  // tensor index
  Combine combine = Combine::kAssign;
  Expr value;
  std::vector<int> factors;  // the box: all factors on either side
  std::vector<int> reduced;  // those neither on the left nor fixed by an index map
  std::vector<Condition> where;
  ScanOrder scan;              // of kScan
  std::vector<int> pointwise;  // of kOpaque: at each index of these it is a function of its own
};

class OpRule {
 public:
  static absl::StatusOr<OpRule> Parse(absl::string_view text);
  // For rules made by programs (Differentiate); verifies.
  static absl::StatusOr<OpRule> Create(std::string name, std::vector<std::string> factors,
                                       std::vector<RuleTensor> tensors, std::vector<int> inputs,
                                       std::vector<int> outputs, std::vector<Statement> statements,
                                       std::vector<int> saves, std::string fused);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& factors() const { return factors_; }
  const std::vector<RuleTensor>& tensors() const { return tensors_; }
  const std::vector<int>& inputs() const { return inputs_; }  // tensor indices, argument order
  const std::vector<int>& outputs() const { return outputs_; }
  const std::vector<Statement>& statements() const { return statements_; }
  const std::vector<int>& saves() const { return saves_; }
  // Empty, or the cost family of the one kernel that runs all statements.
  const std::string& fused() const { return fused_; }

  // By factor: the first factor of its class. Factors that index maps and promises
  // tie to each other (graph/rule/expr.h) are one class; a cut of one cuts them all.
  const std::vector<int>& ties() const { return ties_; }
  bool has_ties() const { return has_ties_; }
  // False for factors that an opaque statement takes whole.
  bool may_cut(int factor) const { return may_cut_[factor]; }

  absl::StatusOr<int> FindFactor(absl::string_view name) const;
  absl::StatusOr<int> FindTensor(absl::string_view name) const;

  // Canonical text; Parse(DebugString()) gives an equal rule.
  std::string DebugString() const;

 private:
  OpRule() = default;

  std::string name_;
  std::vector<std::string> factors_;
  std::vector<RuleTensor> tensors_;
  std::vector<int> inputs_, outputs_;
  std::vector<Statement> statements_;
  std::vector<int> saves_;
  std::string fused_;
  std::vector<int> ties_;
  std::vector<bool> may_cut_;
  bool has_ties_ = false;
};

using OpRulePtr = std::shared_ptr<const OpRule>;

// The backward op that yields the gradients of the inputs named `wrt`. Its
// inputs are, in order: gradients of the outputs (`d_y`), then the tensors it
// reads from the save list (by their forward names); its outputs are `d_x` for
// each x in `wrt`, in that order. Factor names are those of the forward rule.
// A value the backward needs that is neither saved nor recomputable from saved
// ones is an error naming both. The gradient through a `max=` goes to the values
// that are the maximum if it is an output (pooling), and is taken as zero if not
// (valid where the result does not depend on the shift, as in softmax).
absl::StatusOr<OpRule> Differentiate(const OpRule& rule, absl::Span<const std::string> wrt);

// Which differentiable inputs (not integer typed) the rule has.
std::vector<std::string> DifferentiableInputs(const OpRule& rule);

// The shipped rules, by name (`linear`, `rms_norm`, ...), from
// graph/rule/rules/*.rules; `conv2d(stride=2, pad=1)` binds `let` attributes, and
// `relu(rank=4)` how many dims `...` stands for. Unknown name: error with
// suggestion.
absl::StatusOr<OpRulePtr> FindRule(absl::string_view call);
// The same for inputs with these numbers of dims, which say what `...` stands for
// unless the call binds `rank`.
absl::StatusOr<OpRulePtr> FindRule(absl::string_view call, absl::Span<const int64_t> input_ranks);
std::vector<std::string> RuleNames();

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_OP_RULE_H_
