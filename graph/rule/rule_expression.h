#ifndef PLANCAST_GRAPH_RULE_RULE_EXPRESSION_H_
#define PLANCAST_GRAPH_RULE_RULE_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/rule/expr.h"
#include "graph/rule/rule_cursor.h"
#include "graph/rule/rule_draft.h"

namespace plancast {

// Reads the right-hand sides of statements, by recursive descent.
class ExpressionParser : protected RuleCursor {
 protected:
  static constexpr int kMaxOperators = 2000;  // of one statement

  explicit ExpressionParser(std::vector<RuleToken> tokens) : RuleCursor(std::move(tokens)) {}
  virtual ~ExpressionParser() = default;

  // The value of a statement; `previous` is the state before only in recurrences.
  absl::StatusOr<Expr> ParseValue(bool scan);

  // [b,s,h] after the name of `tensor`, which fixes its dims or must repeat them.
  virtual absl::Status ParseDims(const RuleToken& name, int tensor) = 0;
  // The factors that `...` stands for.
  virtual absl::StatusOr<std::vector<int>> EllipsisFactors() = 0;

  const int64_t* FindLet(absl::string_view name) const;  // null: no such attribute
  absl::Status UnknownTensor(const RuleToken& name);

  RuleDraft rule_;  // being read
  std::vector<std::pair<std::string, int64_t>> lets_;
  int operators_ = 0;  // in the statement being read

 private:
  // Operands joined by + and -, or by * and /.
  absl::StatusOr<Expr> ParseChain(int depth, bool sum);
  absl::StatusOr<Expr> ParseUnary(int depth);
  absl::StatusOr<Expr> ParseAtom(int depth);
  absl::StatusOr<Expr> ParseElement(const RuleToken& name);
  absl::StatusOr<Expr> ParseIndicator();
  absl::Status UnknownFunction(const RuleToken& name);

  bool in_scan_ = false;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_EXPRESSION_H_
