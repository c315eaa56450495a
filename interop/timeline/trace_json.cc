#include "interop/timeline/trace_json.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "interop/timeline/trace_scanner.h"

namespace plancast {
namespace {

using absl::string_view;

constexpr size_t kLongestText = size_t{1} << 30;
constexpr int kDeepest = 16;
constexpr size_t kLongestKept = 1 << 13;  // bytes of a string
constexpr size_t kMostArgs = 10'000;      // of one event
constexpr int64_t kPsPerUs = 1'000'000;
constexpr int128 kLatestUs = int128{1} << 62;

// Exact for plain decimals, whose digits below a picosecond are rounded off.
bool ParseMicroseconds(string_view text, int128& ps) {
  const bool negative = !text.empty() && text.front() == '-';
  string_view digits = negative ? text.substr(1) : text;
  int128 whole = 0;
  size_t i = 0;
  for (; i < digits.size() && absl::ascii_isdigit(digits[i]); ++i) {
    whole = whole * 10 + (digits[i] - '0');
    if (whole > kLatestUs) return false;
  }
  if (i > 0 && (i == digits.size() || digits[i] == '.')) {
    int64_t fraction = 0;
    int places = 0;
    bool up = false;
    for (++i; i < digits.size() && absl::ascii_isdigit(digits[i]); ++i, ++places) {
      if (places < 6) fraction = fraction * 10 + (digits[i] - '0');
      if (places == 6) up = digits[i] >= '5';
    }
    for (; places < 6; ++places) fraction *= 10;
    if (i >= digits.size()) {
      ps = whole * kPsPerUs + fraction + (up ? 1 : 0);
      if (negative) ps = -ps;
      return true;
    }
  }
  double us = 0;
  if (!absl::SimpleAtod(text, &us) || !std::isfinite(us) || std::fabs(us) > 4e18) return false;
  ps = static_cast<int128>(std::llround(us)) * kPsPerUs;
  if (std::fabs(us) < 9e12) ps = std::llround(us * kPsPerUs);
  return true;
}

class Reader {
 public:
  explicit Reader(string_view text) : scanner_(text, file_.problems) {}

  TraceFile Run() {
    while (true) {
      scanner_.SkipCommas();
      if (scanner_.AtEnd()) break;
      const char c = scanner_.Peek();
      if (c == '[' || c == ']') {
        scanner_.Take();
      } else if (c == '}' && open_wrappers_ > 0) {
        --open_wrappers_;
        scanner_.Take();
      } else if (c == '{') {
        ReadObject();
      } else {
        const size_t begin = scanner_.place();
        const int64_t line = scanner_.line();
        if (open_wrappers_ > 0 && SkipWrapperField()) continue;
        scanner_.SkipLine();
        file_.problems.Add(line, absl::StrCat("no event: `", Shown(scanner_.From(begin)), "`"));
      }
    }
    return std::move(file_);
  }

 private:
  static std::string Shown(string_view text) {
    text = absl::StripAsciiWhitespace(text.substr(0, text.find('\n')));
    return absl::StrCat(text.substr(0, 60), text.size() > 60 ? "..." : "");
  }

  // An event, or the object around the list of them.
  void ReadObject() {
    const size_t begin = scanner_.place();
    TraceEvent event;
    event.line = scanner_.line();
    fields_ = 0;
    std::string why;
    switch (ReadFields(event, why)) {
      case Ending::kWrapper:
        return;
      case Ending::kBroken:
        file_.problems.Add(event.line, absl::StrCat(why, ": `", Shown(scanner_.From(begin)), "`"));
        return scanner_.SkipToNextEvent();
      case Ending::kWhole:
        break;
    }
    if (fields_ == 0) return;  // NCCL ends its lists with a bare {}
    if (why.empty() && event.phase == 0) why = "an object without `ph`";
    if (why.empty() && !event.has_time && event.phase != 'M') why = "an event without `ts`";
    if (!why.empty()) {
      file_.problems.Add(event.line, absl::StrCat(why, ": `", Shown(scanner_.From(begin)), "`"));
      return;
    }
    file_.events.push_back(std::move(event));
  }

  enum class Ending { kWhole, kWrapper, kBroken };

  // `why` of a whole object: a field of it cannot be used.
  Ending ReadFields(TraceEvent& event, std::string& why) {
    scanner_.Take();
    while (true) {
      scanner_.SkipCommas();
      const char c = scanner_.Peek();
      if (c == '}') {
        scanner_.Take();
        return Ending::kWhole;
      }
      if (c == '{' || c == ']') {
        file_.problems.Mend(scanner_.line(), "a closing bracket that is missing");
        return Ending::kWhole;
      }
      std::string key, broken;
      if (!ReadKey(key, broken)) {
        why = broken;
        return Ending::kBroken;
      }
      if (key == "traceEvents" && scanner_.Peek() == '[') {
        ++open_wrappers_;
        scanner_.Take();
        return Ending::kWrapper;
      }
      if (!ReadField(key, event, why, broken)) {
        why = broken;
        return Ending::kBroken;
      }
      ++fields_;
    }
  }

  bool ReadKey(std::string& key, std::string& why) {
    bool quoted = false;
    if (!scanner_.Word(key, quoted, why)) return false;
    if (!quoted) file_.problems.Mend(scanner_.line(), "an unquoted key");
    scanner_.SkipSpace();
    if (scanner_.Peek() != ':') {
      why = absl::StrCat("no `:` after `", key.substr(0, 40), "`");
      return false;
    }
    scanner_.Take();
    scanner_.SkipSpace();
    return true;
  }

  bool ReadField(const std::string& key, TraceEvent& event, std::string& why, std::string& broken) {
    std::vector<TraceArg> values;
    if (!ReadValue("", 0, values, broken)) return false;
    if (key == "args") {
      event.args = std::move(values);
      return true;
    }
    if (values.size() != 1 || !values.front().key.empty()) {
      if (key == "id2" && !values.empty()) event.id = values.front().value;
      for (const TraceArg& value : values) {
        file_.ours |= key == "otherData" && value.key == "writer" && value.value == "plancast";
      }
      return true;  // a list or an object that means nothing to us
    }
    SetField(key, values.front().value, event, why);
    return true;
  }

  void SetField(const std::string& key, std::string& value, TraceEvent& event, std::string& why) {
    int128 ps = 0;
    if (key == "ts" || key == "dur") {
      if (!ParseMicroseconds(value, ps) ||
          (key == "dur" && (ps < 0 || ps > std::numeric_limits<int64_t>::max()))) {
        why = absl::StrCat("`", key, "` is `", value.substr(0, 40), "`");
      } else if (key == "ts") {
        event.start_ps = ps;
        event.has_time = true;
      } else {
        event.duration_ps = static_cast<int64_t>(ps);
      }
    } else if (key == "ph") {
      event.phase = value.empty() ? '\0' : value.front();
    } else if (key == "name") {
      event.name = std::move(value);
    } else if (key == "cat") {
      event.category = std::move(value);
    } else if (key == "id") {
      event.id = std::move(value);
    } else if (key == "scope") {
      event.scope = std::move(value);
    } else if (key == "pid") {
      event.process = std::move(value);
    } else if (key == "tid") {
      event.thread = std::move(value);
    }
  }

  // Appends what the value holds, under `prefix`.
  bool ReadValue(const std::string& prefix, int depth, std::vector<TraceArg>& values,
                 std::string& why) {
    const char c = scanner_.Peek();
    if (c == '{' || c == '[') {
      if (depth == kDeepest) {
        why = absl::StrCat("nested more than ", kDeepest, " deep");
        return false;
      }
      scanner_.Take();
      return c == '{' ? ReadMembers(prefix, depth, values, why)
                      : ReadItems(prefix, depth, values, why);
    }
    if (values.size() == kMostArgs) {
      why = absl::StrCat("more than ", kMostArgs, " values");
      return false;
    }
    TraceArg value;
    value.key = prefix;
    if (!scanner_.Word(value.value, value.quoted, why)) return false;
    Cut(value.value);
    if (!value.quoted && value.value != "true" && value.value != "false" && value.value != "null" &&
        !IsJsonNumber(value.value)) {
      file_.problems.Mend(scanner_.line(), "an unquoted value");
      value.quoted = true;
    }
    values.push_back(std::move(value));
    return true;
  }

  std::string Under(const std::string& prefix, string_view key) {
    std::string path = prefix.empty() ? std::string(key) : absl::StrCat(prefix, ".", key);
    Cut(path);
    return path;
  }

  // So that what is written of it can be read again, escapes and all.
  void Cut(std::string& text) {
    if (text.size() <= kLongestKept) return;
    size_t end = kLongestKept;
    while ((text[end] & 0xc0) == 0x80) --end;  // in a character
    text.resize(end);
    file_.problems.Mend(scanner_.line(), "a string of more than 8 KiB, which is cut");
  }

  bool ReadMembers(const std::string& prefix, int depth, std::vector<TraceArg>& values,
                   std::string& why) {
    while (true) {
      scanner_.SkipCommas();
      if (scanner_.Peek() == '}') {
        scanner_.Take();
        return true;
      }
      std::string key;
      if (!ReadKey(key, why) || !ReadValue(Under(prefix, key), depth + 1, values, why)) {
        return false;
      }
    }
  }

  bool ReadItems(const std::string& prefix, int depth, std::vector<TraceArg>& values,
                 std::string& why) {
    for (int64_t i = 0;; ++i) {
      scanner_.SkipCommas();
      if (scanner_.Peek() == ']') {
        scanner_.Take();
        return true;
      }
      if (!ReadValue(Under(prefix, absl::StrCat(i)), depth + 1, values, why)) return false;
    }
  }

  // What stands beside `traceEvents`.
  bool SkipWrapperField() {
    if (scanner_.Peek() != '"') return false;
    std::string key, why;
    std::vector<TraceArg> values;
    if (!ReadKey(key, why)) return false;
    if (key == "traceEvents" && scanner_.Peek() == '[') return true;
    return ReadValue("", 0, values, why);
  }

  TraceFile file_;
  TraceScanner scanner_;
  int open_wrappers_ = 0;
  int fields_ = 0;  // of the object that is read
};

}  // namespace

bool IsJsonNumber(string_view text) {
  size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - begin;
  };
  const size_t first = i;
  const size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (i < text.size() && text[i] == '.' && (++i, digits() == 0)) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

void TraceProblems::Add(int64_t line, std::string reason) {
  ++count;
  if (shown.size() < kMostShown) shown.push_back({line, ToUtf8(reason)});  // words may be cut
}

void TraceProblems::Mend(int64_t line, string_view kind) {
  const auto at = mended.find(std::string(kind));
  if (at == mended.end()) {
    mended.emplace(std::string(kind), std::make_pair(int64_t{1}, line));
  } else {
    ++at->second.first;
  }
}

absl::StatusOr<TraceFile> ReadTraceFile(string_view text, string_view what) {
  if (text.size() > kLongestText) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has ", text.size(), " bytes; 1 GiB is read at most. Trace a shorter run."));
  }
  std::string mended;
  if (!IsUtf8(text)) {
    mended = ToUtf8(text);
    text = mended;
  }
  TraceFile file = Reader(text).Run();
  if (!mended.empty()) file.problems.Mend(1, "bytes that are no UTF-8");
  if (!file.events.empty()) return file;
  std::string reason = absl::StrCat(what, " has no trace event.");
  if (!file.problems.shown.empty()) {
    const TraceProblem& first = file.problems.shown.front();
    absl::StrAppend(&reason, " Line ", first.line, ": ", first.reason, ".");
  }
  absl::StrAppend(&reason, " A trace is JSON, [{\"name\": ..., \"ph\": \"X\", \"ts\": ...}, ...].");
  return absl::InvalidArgumentError(reason);
}

}  // namespace plancast
