#ifndef PLANCAST_GRAPH_RULE_BACKWARD_VALUES_H_
#define PLANCAST_GRAPH_RULE_BACKWARD_VALUES_H_

#include <vector>

#include "absl/status/status.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// How a backward op gets at the forward values it reads: a saved one is an
// input, any other is computed again from saved ones. Where `y = e / z` was
// kept with z, e is y * z; otherwise the forward statement runs again.
class BackwardValues {
 public:
  explicit BackwardValues(const OpRule& rule) : rule_(rule), state_(rule.tensors().size()) {}

  // Makes forward tensor `tensor` available. The error names it, and the
  // tensor that would have to be saved.
  absl::Status Need(int tensor);

  bool IsSaved(int tensor) const;
  // The statements to run first, over forward tensors, in order.
  const std::vector<Statement>& statements() const { return statements_; }

 private:
  enum class State : uint8_t { kUnknown, kReady };

  // The statement that gives `tensor` back from a kept quotient, if any.
  bool InvertQuotient(int tensor, Statement* statement) const;

  const OpRule& rule_;
  std::vector<State> state_;
  std::vector<Statement> statements_;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_BACKWARD_VALUES_H_
