#ifndef PLANCAST_GRAPH_RULE_RULE_DRAFT_H_
#define PLANCAST_GRAPH_RULE_RULE_DRAFT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// The parts of a rule while its text is read, by name.
struct RuleDraft {
  std::string name, fused;
  std::vector<std::string> factors;
  std::vector<RuleTensor> tensors;
  std::vector<bool> has_dims;  // by tensor: its dim list is known
  std::vector<int> inputs, outputs, saves;
  std::vector<Statement> statements;

  absl::StatusOr<OpRule> Build() &&;

  int FindTensor(absl::string_view tensor) const;  // -1: none
  int AddTensor(RuleTensor tensor);
  int FindOrAddFactor(absl::string_view factor);
  std::string ElementText(absl::string_view tensor, const std::vector<int>& dims) const;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_DRAFT_H_
