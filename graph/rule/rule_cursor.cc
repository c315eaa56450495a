#include "graph/rule/rule_cursor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

constexpr absl::string_view kKeywords[] = {"param", "save", "fused", "factors", "where",
                                           "and",   "max",  "size",  "random",  "let"};

}  // namespace

const RuleToken& RuleCursor::Peek(int ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

RuleToken RuleCursor::Next() {
  RuleToken token = Peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool RuleCursor::Accept(absl::string_view word) {
  if (!Peek().Is(word)) return false;
  Next();
  return true;
}

void RuleCursor::SkipNewlines() {
  while (Peek().kind == RuleToken::Kind::kNewline) Next();
}

absl::Status RuleCursor::ErrorAt(const RuleToken& token, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", token.line, ", column ", token.column, ": ", message));
}

std::string RuleCursor::Quote(const RuleToken& token) {
  if (token.kind == RuleToken::Kind::kEnd) return "the end of the text";
  if (token.kind == RuleToken::Kind::kNewline) return "the end of the line";
  return absl::StrCat("`", token.text, "`");
}

absl::Status RuleCursor::Expect(absl::string_view word) {
  if (Accept(word)) return absl::OkStatus();
  return ErrorAt(Peek(), absl::StrCat("expected `", word, "` before ", Quote(Peek()), "."));
}

absl::StatusOr<RuleToken> RuleCursor::ExpectName(absl::string_view what) {
  if (Peek().kind != RuleToken::Kind::kName) {
    return ErrorAt(Peek(), absl::StrCat("expected ", what, " before ", Quote(Peek()), "."));
  }
  if (std::find(std::begin(kKeywords), std::end(kKeywords), Peek().text) != std::end(kKeywords)) {
    return ErrorAt(Peek(), absl::StrCat("expected ", what, ", but ", Quote(Peek()),
                                        " is a word of the rule language."));
  }
  return Next();
}

absl::StatusOr<int64_t> RuleCursor::ExpectWhole(bool minus) {
  const RuleToken number = Next();
  if (number.kind != RuleToken::Kind::kNumber || number.number > kMaxWhole ||
      number.number != static_cast<int64_t>(number.number)) {
    return ErrorAt(number, absl::StrCat("expected a whole number instead of ", Quote(number), "."));
  }
  return static_cast<int64_t>(number.number) * (minus ? -1 : 1);
}

}  // namespace plancast
