#include "tests/fuzz/native/structure.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace plancast {
namespace {

using absl::string_view;

// How far ends are looked for.
constexpr size_t kReach = 20'000;

// The first place from a drawn one on, round the end, where `wanted` is true;
// npos if it is near nowhere.
template <typename Wanted>
size_t DrawPlace(string_view text, FuzzRandom& random, Wanted wanted) {
  if (text.empty()) return string_view::npos;
  const size_t start = random.Below(text.size());
  for (size_t i = 0; i < std::min(text.size(), kReach); ++i) {
    const size_t at = (start + i) % text.size();
    if (wanted(text[at])) return at;
  }
  return string_view::npos;
}

Region Bracketed(string_view text, size_t open) {
  const char close = text[open] == '{' ? '}' : text[open] == '[' ? ']' : ')';
  int depth = 0;
  for (size_t i = open; i < std::min(text.size(), open + kReach); ++i) {
    if (text[i] == text[open]) ++depth;
    if (text[i] == close && --depth == 0) return {open, i + 1};
  }
  return {open, open + 1};
}

// The tag, or with what it encloses.
Region Element(string_view text, size_t open, bool whole) {
  const size_t tag_end = text.find('>', open);
  if (tag_end == string_view::npos || tag_end - open > kReach) return {open, open + 1};
  const Region tag = {open, tag_end + 1};
  if (!whole || text[tag_end - 1] == '/' || text[open + 1] == '/') return tag;
  size_t name_end = open + 1;
  while (name_end < tag_end && !absl::ascii_isspace(text[name_end])) ++name_end;
  const string_view name = text.substr(open + 1, name_end - open - 1);
  int depth = 0;
  for (size_t i = open; i < std::min(text.size(), open + kReach); ++i) {
    if (text[i] != '<') continue;
    const bool closing = text.substr(i + 1, 1) == "/";
    if (text.substr(i + (closing ? 2 : 1), name.size()) != name) continue;
    const size_t end = text.find('>', i);
    if (end == string_view::npos) break;
    if (!closing && text[end - 1] != '/') ++depth;
    if (closing && --depth == 0) return {open, end + 1};
  }
  return tag;
}

Region Line(string_view text, FuzzRandom& random) {
  const size_t at = random.Below(text.size());
  const size_t before = at == 0 ? string_view::npos : text.rfind('\n', at - 1);
  size_t end = at;
  for (size_t lines = 1 + random.Small(6); lines > 0 && end < text.size(); --lines) {
    const size_t next = text.find('\n', end);
    end = next == string_view::npos ? text.size() : next + 1;
  }
  return {before == string_view::npos ? 0 : before + 1, end};
}

}  // namespace

Region DrawRegion(string_view text, FuzzRandom& random) {
  if (text.empty()) return {};
  switch (random.Below(4)) {
    case 0: {
      const size_t at =
          DrawPlace(text, random, [](char c) { return c == '{' || c == '[' || c == '('; });
      if (at != string_view::npos) return Bracketed(text, at);
      break;
    }
    case 1: {
      const size_t at = DrawPlace(text, random, [](char c) { return c == '<'; });
      if (at != string_view::npos && at + 1 < text.size()) {
        return Element(text, at, !random.OneIn(3));
      }
      break;
    }
    case 2: {
      const size_t at = DrawPlace(text, random, [](char c) { return c == '"'; });
      if (at == string_view::npos) break;
      const size_t end = text.find('"', at + 1);
      return {at, end == string_view::npos ? at + 1 : end + 1};
    }
    default:
      break;
  }
  return Line(text, random);
}

Region DrawNumber(string_view text, FuzzRandom& random) {
  const size_t at = DrawPlace(text, random, [](char c) { return absl::ascii_isdigit(c); });
  if (at == string_view::npos) return {};
  Region number = {at, at};
  while (number.begin > 0 && absl::ascii_isdigit(text[number.begin - 1])) --number.begin;
  if (number.begin > 0 && text[number.begin - 1] == '-') --number.begin;
  while (number.end < text.size() &&
         (absl::ascii_isdigit(text[number.end]) || text[number.end] == '.')) {
    ++number.end;
  }
  return number;
}

Region DrawWord(string_view text, FuzzRandom& random) {
  const auto in_word = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  const size_t at = DrawPlace(text, random, in_word);
  if (at == string_view::npos) return {};
  Region word = {at, at};
  while (word.begin > 0 && in_word(text[word.begin - 1])) --word.begin;
  while (word.end < text.size() && in_word(text[word.end])) ++word.end;
  return word;
}

}  // namespace plancast
