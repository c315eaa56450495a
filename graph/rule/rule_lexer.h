#ifndef PLANCAST_GRAPH_RULE_RULE_LEXER_H_
#define PLANCAST_GRAPH_RULE_RULE_LEXER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

struct RuleToken {
  enum class Kind : uint8_t { kName, kNumber, kSymbol, kNewline, kEnd };
  Kind kind = Kind::kEnd;
  absl::string_view text;  // points into the source
  double number = 0;
  int line = 1, column = 1;

  bool Is(absl::string_view word) const {
    return (kind == Kind::kSymbol || kind == Kind::kName) && text == word;
  }
};

// Words of the rule language. `#` starts a comment that runs to the end of the
// line; a line break or `;` is a kNewline; the last token is kEnd.
absl::StatusOr<std::vector<RuleToken>> LexRules(absl::string_view source);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_LEXER_H_
