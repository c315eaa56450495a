#include "interop/timeline/trace_scanner.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

using absl::string_view;

constexpr size_t kLongestString = 1 << 16;
// How far apart lines may be where events are one a line.
constexpr size_t kLongestLine = 1 << 14;
constexpr string_view kOpeningQuote = "\xe2\x80\x9c", kClosingQuote = "\xe2\x80\x9d";

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// Of `\uXXXX` at `place`.
bool CodeUnit(string_view raw, size_t place, uint32_t& unit) {
  if (raw.substr(place, 2) != "\\u" || raw.size() < place + 6) return false;
  unit = 0;
  for (char c : raw.substr(place + 2, 4)) {
    if (!absl::ascii_isxdigit(c)) return false;
    unit =
        unit * 16 + static_cast<uint32_t>(absl::ascii_isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return true;
}

}  // namespace

std::string Unescape(string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    uint32_t unit = 0, low = 0;
    if (CodeUnit(raw, i, unit)) {
      i += 5;
      if (unit >= 0xd800 && unit < 0xdc00 && CodeUnit(raw, i + 1, low) && low >= 0xdc00 &&
          low < 0xe000) {
        i += 6;
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      } else if (unit >= 0xd800 && unit < 0xe000) {
        unit = 0xfffd;  // half of a pair
      }
      AppendUtf8(unit, out);
      continue;
    }
    constexpr string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const size_t which = kLetters.find(raw[i + 1]);
    if (which == string_view::npos) {
      out += raw[i];
      continue;
    }
    out += kMeanings[which];
    ++i;
  }
  return out;
}

void TraceScanner::Advance(size_t to) {
  to = std::min(to, text_.size());
  line_ += std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                      text_.begin() + static_cast<ptrdiff_t>(to), '\n');
  at_ = to;
}

void TraceScanner::SkipSpace() {
  while (!AtEnd() && absl::ascii_isspace(text_[at_])) Take();
}

void TraceScanner::SkipCommas() {
  SkipSpace();
  for (int commas = 0; Peek() == ','; ++commas) {
    if (commas == 1) problems_.Mend(line_, "a comma too many");
    Take();
    SkipSpace();
  }
}

size_t TraceScanner::QuoteAt(size_t place) const {
  if (place >= text_.size()) return 0;
  if (text_[place] == '"') return 1;
  const string_view three = text_.substr(place, 3);
  return three == kOpeningQuote || three == kClosingQuote ? 3 : 0;
}

bool TraceScanner::DelimiterAfter(size_t place) const {
  constexpr int kMostSpaces = 16;
  for (int i = 0; i < kMostSpaces && place < text_.size(); ++i, ++place) {
    if (text_[place] != ' ' && text_[place] != '\t') break;
  }
  return place >= text_.size() || string_view(":,}]\r\n").find(text_[place]) != string_view::npos;
}

size_t TraceScanner::Closing(size_t begin, bool curly) const {
  const size_t limit = std::min(text_.size(), begin + kLongestString);
  for (size_t i = begin; i < limit && text_[i] != '\n'; ++i) {
    if (text_[i] == '\\' && !curly) {
      ++i;
      continue;
    }
    const size_t quote = QuoteAt(i);
    if (quote == 0) continue;
    // A string in straight quotes may hold curly ones.
    if (curly ? DelimiterAfter(i + quote) : quote == 1) return i;
  }
  return string_view::npos;
}

bool TraceScanner::Quoted(std::string& word, std::string& why) {
  const size_t opening = QuoteAt(at_);
  const size_t begin = at_ + opening;
  size_t end = Closing(begin, opening == 3);
  bool curly = opening == 3;
  if (!curly && (end == string_view::npos || !DelimiterAfter(end + 1))) {
    end = Closing(begin, true);  // perhaps its closing quote is a curly one
    curly = true;
  }
  if (end == string_view::npos) {
    why = absl::StrCat("a string does not end: `", text_.substr(at_, 20), "`");
    // What was looked through is not looked through again.
    const size_t line_end = NextLine() - 1;
    Advance(std::min(line_end, at_ + kLongestString));
    return false;
  }
  if (curly) problems_.Mend(line_, "curly quotes");
  word = Unescape(text_.substr(begin, end - begin));
  Advance(end + QuoteAt(end));
  return true;
}

bool TraceScanner::Word(std::string& word, bool& quoted, std::string& why) {
  quoted = QuoteAt(at_) > 0;
  if (quoted) return Quoted(word, why);
  size_t end = at_;
  while (end < text_.size() && end - at_ < kLongestString &&
         string_view(":,{}[]\"\r\n").find(text_[end]) == string_view::npos && QuoteAt(end) == 0) {
    ++end;
  }
  word = std::string(absl::StripAsciiWhitespace(text_.substr(at_, end - at_)));
  if (word.empty()) {
    why = AtEnd() ? "the file ends in it"
                  : absl::StrCat("`", text_.substr(at_, 1), "` is in the way");
    return false;
  }
  Advance(end);
  return true;
}

size_t TraceScanner::NextLine() {
  if (next_line_ <= at_) {
    const size_t end = text_.find('\n', at_);
    next_line_ = end == string_view::npos ? text_.size() + 1 : end + 1;
  }
  return next_line_;
}

void TraceScanner::SkipLine() { Advance(NextLine()); }

void TraceScanner::SkipToNextEvent() {
  if (NextLine() <= at_ + kLongestLine) return Advance(NextLine());
  const size_t next = text_.find("{\"", at_ + 1);
  Advance(next == string_view::npos ? text_.size() : next);
}

}  // namespace plancast
