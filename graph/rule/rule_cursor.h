#ifndef PLANCAST_GRAPH_RULE_RULE_CURSOR_H_
#define PLANCAST_GRAPH_RULE_RULE_CURSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/rule/rule_lexer.h"

namespace plancast {

// Walks over the tokens of a rule text. Errors begin with the place and quote
// the word that is there.
class RuleCursor {
 public:
  static constexpr double kMaxWhole = 1e15;

  // `tokens` end with kEnd.
  explicit RuleCursor(std::vector<RuleToken> tokens) : tokens_(std::move(tokens)) {}

  const RuleToken& Peek(int ahead = 0) const;
  RuleToken Next();
  bool Accept(absl::string_view word);  // takes it if it is next
  void SkipNewlines();

  absl::Status Expect(absl::string_view word);
  // A name that is no word of the language; `what` says what it would be.
  absl::StatusOr<RuleToken> ExpectName(absl::string_view what);
  absl::StatusOr<int64_t> ExpectWhole(bool minus);

  static absl::Status ErrorAt(const RuleToken& token, absl::string_view message);
  static std::string Quote(const RuleToken& token);

 private:
  std::vector<RuleToken> tokens_;
  size_t position_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_CURSOR_H_
