#include "graph/rule/rule_lexer.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// Length of the decimal number that `text` begins with, 0 if none does.
size_t NumberLength(absl::string_view text) {
  size_t i = 0, digits = 0;
  while (i < text.size() && absl::ascii_isdigit(text[i])) ++i, ++digits;
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && absl::ascii_isdigit(text[i])) ++i, ++digits;
  }
  if (digits == 0) return 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t j = i + 1;
    if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
    const size_t first = j;
    while (j < text.size() && absl::ascii_isdigit(text[j])) ++j;
    if (j > first) i = j;
  }
  return i;
}

size_t SymbolLength(absl::string_view text) {
  if (text.substr(0, 3) == "...") return 3;
  for (absl::string_view two : {"->", "+=", "==", "<="}) {
    if (text.substr(0, 2) == two) return 2;
  }
  return absl::string_view("()[]{},:+-*/=<").find(text[0]) == absl::string_view::npos ? 0 : 1;
}

}  // namespace

absl::StatusOr<std::vector<RuleToken>> LexRules(absl::string_view source) {
  std::vector<RuleToken> tokens;
  int line = 1;
  size_t line_start = 0, i = 0;
  auto emit = [&](RuleToken::Kind kind, size_t length) {
    RuleToken token;
    token.kind = kind;
    token.text = source.substr(i, length);
    token.line = line;
    token.column = static_cast<int>(i - line_start) + 1;
    i += length;
    tokens.push_back(token);
  };
  while (i < source.size()) {
    const char c = source[i];
    if (c == '#') {
      while (i < source.size() && source[i] != '\n') ++i;
    } else if (c == '\n') {
      emit(RuleToken::Kind::kNewline, 1);
      ++line;
      line_start = i;
    } else if (c == ';') {
      emit(RuleToken::Kind::kNewline, 1);
    } else if (absl::ascii_isspace(c)) {
      ++i;
    } else if (IsNameStart(c)) {
      size_t length = 1;
      while (i + length < source.size() && IsNamePart(source[i + length])) ++length;
      emit(RuleToken::Kind::kName, length);
    } else if (const size_t digits = NumberLength(source.substr(i)); digits > 0) {
      double value = 0;
      if (!absl::SimpleAtod(source.substr(i, digits), &value) || value > 1e300) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", line, ", column ", i - line_start + 1, ": number `",
                         source.substr(i, digits), "` is out of range."));
      }
      emit(RuleToken::Kind::kNumber, digits);
      tokens.back().number = value;
    } else if (const size_t length = SymbolLength(source.substr(i)); length > 0) {
      emit(RuleToken::Kind::kSymbol, length);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line, ", column ", i - line_start + 1, ": unexpected character `",
          source.substr(i, 1), "`. Rules are written with names, numbers and ()[]{},:+-*/=<."));
    }
  }
  emit(RuleToken::Kind::kEnd, 0);
  return tokens;
}

}  // namespace plancast
