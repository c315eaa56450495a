#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "planner/search/space.h"
#include "strategy/context_parallel.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

// The text form of a search space.

namespace plancast {
namespace {

constexpr absl::string_view kKeys[] = {"dp",           "tp",        "pp",       "vpp",
                                       "mb",           "recompute", "zero",     "sp",
                                       "schedule",     "attn",      "overlap",  "bucket",
                                       "first_bucket", "layout",    "order",    "vocab_parallel",
                                       "offload",      "cp",        "cp_type",  "ep",
                                       "etp",          "hsdp",      "reshard",  "sync",
                                       "prefetch",     "unit",      "optimizer"};
constexpr int64_t kLargest = 1'000'000;

absl::Status Bad(absl::string_view key, absl::string_view value, absl::string_view right) {
  return absl::InvalidArgumentError(
      absl::StrCat("space: `", key, "=", value, "` is not understood. ", right));
}

absl::StatusOr<int64_t> ParseNumber(absl::string_view key, absl::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1 || number > kLargest) {
    return Bad(key, text,
               absl::StrCat("Write whole numbers from 1 to ", kLargest, ", as `", key, "=1|2|4`, `",
                            key, "=1..8` or `", key, "=*`."));
  }
  return number;
}

absl::StatusOr<NumberSet> ParseNumbers(absl::string_view key, absl::string_view text) {
  NumberSet set;
  for (absl::string_view part : absl::StrSplit(text, '|')) {
    part = absl::StripAsciiWhitespace(part);
    if (part == "*") {
      set.any = true;
      continue;
    }
    std::pair<absl::string_view, absl::string_view> ends = {part, part};
    if (size_t dots = part.find(".."); dots != absl::string_view::npos) {
      ends = {part.substr(0, dots), part.substr(dots + 2)};
    }
    ASSIGN_OR_RETURN(int64_t low, ParseNumber(key, ends.first));
    ASSIGN_OR_RETURN(int64_t high, ParseNumber(key, ends.second));
    if (low > high) {
      return Bad(key, part, absl::StrCat("A range goes up: `", key, "=", high, "..", low, "`."));
    }
    set.ranges.emplace_back(low, high);
  }
  if (set.any) set.ranges.clear();
  return set;
}

std::vector<std::string> Alternatives(absl::string_view text) {
  std::vector<std::string> out;
  for (absl::string_view part : absl::StrSplit(text, '|')) {
    std::string value(absl::StripAsciiWhitespace(part));
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(std::move(value));
  }
  return out;
}

absl::Status ParseSwitches(absl::string_view text, std::vector<bool>& out) {
  for (const std::string& value : Alternatives(text)) {
    if (value == "*") {
      out = {false, true};
    } else if (value == "0" || value == "1") {
      out.push_back(value == "1");
    } else {
      return Bad("sp", value, "Write `sp=0`, `sp=1` or `sp=*`.");
    }
  }
  return absl::OkStatus();
}

absl::Status ParseZero(absl::string_view text, std::vector<int64_t>& out) {
  for (const std::string& value : Alternatives(text)) {
    if (value == "*") {
      out = {0, 1, 2, 3};
    } else if (value.size() == 1 && value[0] >= '0' && value[0] <= '3') {
      out.push_back(value[0] - '0');
    } else {
      return Bad("zero", value, "Write `zero=0|1|2|3`, some of them, or `zero=*`.");
    }
  }
  return absl::OkStatus();
}

// What `*` stands for: every word, alone or beside those that go with it.
struct Words {
  absl::string_view key, all;
};
constexpr Words kWords[] = {
    {"attn", "flash|unfused"},
    {"offload",
     "none|optimizer|optimizer+param|activations|optimizer+activations|"
     "optimizer+param+activations"},
    {"optimizer", "at-end|post-validated|in-backward"},
    {"overlap", "none|grad|grad+param|grad+tp|grad+param+tp"},
    {"reshard", "on|off"},
    {"schedule",
     "gpipe|1f1b|interleaved|eager-1f1b|breadth-first|zbh1|zb1p|zb2p|zbv|zbvhalf|zbvmin|dualpipe|"
     "dualpipev|hanayo|chimera|search"},
    {"sync", "each|last"},
    {"vocab_parallel", "none|redis|vocab1|vocab2|interlaced"}};

absl::Status ParseOther(absl::string_view key, absl::string_view value, SearchSpace& space) {
  if (value == "*") {
    for (const Words& words : kWords) {
      if (words.key == key) value = words.all;
    }
  }
  std::vector<std::string> values = Alternatives(value);
  for (const std::string& alternative : values) {
    if (IsUnsaid(key, alternative)) continue;
    if ((key == "layout" && (alternative == "even" || alternative == "balanced")) ||
        ((key == "layout" || key == "order") && alternative == "*")) {
      continue;
    }
    RETURN_IF_ERROR(ParseShortForm(absl::StrCat(key, "=", alternative)).status()) << "space";
  }
  if (key == "layout") {
    space.layouts = std::move(values);
  } else if (key == "order") {
    space.orders = std::move(values);
  } else {
    space.others.emplace_back(std::string(key), std::move(values));
  }
  return absl::OkStatus();
}

absl::Status ParseRecompute(absl::string_view text, std::vector<std::string>& out) {
  for (const std::string& value : Alternatives(text)) {
    if (value == "*") {
      out = std::vector<std::string>(kRecomputeNames.begin(), kRecomputeNames.end());
      return absl::OkStatus();
    }
    if (value == "full:*" || value == "every:*" || value == "uniform:*" || value == "selective:*") {
      out.push_back(value);
      continue;
    }
    if (!ParseShortForm(absl::StrCat("recompute=", value)).ok()) {
      return Bad("recompute", value,
                 "Write `recompute=none|selective|full`, some of them, `selective:WORD`, `full:N`, "
                 "`every:N` or `uniform:N`, each also with `*` in place of what follows, or "
                 "`recompute=*`.");
    }
    out.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status ParseKey(absl::string_view key, absl::string_view value, SearchSpace& space) {
  struct Numeric {
    absl::string_view key;
    std::optional<NumberSet> SearchSpace::*field;
  };
  static constexpr Numeric kNumeric[] = {{"dp", &SearchSpace::dp}, {"tp", &SearchSpace::tp},
                                         {"pp", &SearchSpace::pp}, {"vpp", &SearchSpace::vpp},
                                         {"mb", &SearchSpace::mb}, {"ep", &SearchSpace::ep},
                                         {"cp", &SearchSpace::cp}, {"hsdp", &SearchSpace::hsdp}};
  for (const Numeric& numeric : kNumeric) {
    if (key != numeric.key) continue;
    ASSIGN_OR_RETURN(space.*numeric.field, ParseNumbers(key, value));
    return absl::OkStatus();
  }
  if (key == "recompute") return ParseRecompute(value, space.recompute);
  if (key == "zero") return ParseZero(value, space.zero);
  if (key == "sp") return ParseSwitches(value, space.sp);
  if (key == "cp_type") {
    for (const std::string& type : Alternatives(value)) {
      RETURN_IF_ERROR(ContextParallel::Parse(type).status()) << "space: `cp_type`";
      space.cp_types.push_back(type);
    }
    return absl::OkStatus();
  }
  return ParseOther(key, value, space);
}

void PrintNumbers(absl::string_view key, const std::optional<NumberSet>& set,
                  absl::string_view otherwise, std::vector<std::string>& parts) {
  parts.push_back(absl::StrCat(key, "=", set ? set->DebugString() : std::string(otherwise)));
}

}  // namespace

bool NumberSet::Contains(int64_t value) const {
  if (any) return true;
  return std::any_of(ranges.begin(), ranges.end(), [value](const auto& range) {
    return range.first <= value && value <= range.second;
  });
}

std::vector<int64_t> NumberSet::Singles() const {
  std::vector<int64_t> out;
  for (const auto& [low, high] : ranges) {
    if (low == high) out.push_back(low);
  }
  return out;
}

std::string NumberSet::DebugString() const {
  if (any) return "*";
  return absl::StrJoin(ranges, "|", [](std::string* out, const auto& range) {
    absl::StrAppend(out, range.first);
    if (range.second != range.first) absl::StrAppend(out, "..", range.second);
  });
}

bool IsUnsaid(absl::string_view key, absl::string_view value) {
  return value == "none" && (key == "offload" || key == "vocab_parallel");
}

bool IsKey(absl::string_view text) {
  return std::find(std::begin(kKeys), std::end(kKeys), text) != std::end(kKeys);
}

// `tp=1,2,4`: a comma begins the next key, and `2` is none but a value of the last.
absl::Status CheckCommas(const std::vector<absl::string_view>& items, size_t at) {
  const absl::string_view item = items[at];
  const bool value = item == "*" || (!item.empty() && absl::ascii_isdigit(item[0])) ||
                     item == "none" || item == "selective" || item == "full";
  if (at == 0 || !value || items[at - 1].find('=') == absl::string_view::npos) {
    return absl::OkStatus();
  }
  size_t end = at;
  while (end < items.size() && items[end].find('=') == absl::string_view::npos &&
         !IsKey(items[end])) {
    ++end;
  }
  const std::vector<absl::string_view> values(items.begin() + at - 1, items.begin() + end);
  return absl::InvalidArgumentError(absl::StrCat("space: `", absl::StrJoin(values, ","),
                                                 "`: values are joined by `|`. Write `",
                                                 absl::StrJoin(values, "|"), "`."));
}

absl::StatusOr<SearchSpace> ParseSearchSpace(absl::string_view text) {
  SearchSpace space;
  std::vector<absl::string_view> seen;
  std::vector<absl::string_view> items = absl::StrSplit(text, ',', absl::SkipWhitespace());
  for (absl::string_view& item : items) item = absl::StripAsciiWhitespace(item);
  for (size_t at = 0; at < items.size(); ++at) {
    const absl::string_view item = items[at];
    const size_t equals = item.find('=');
    absl::string_view key = absl::StripAsciiWhitespace(item.substr(0, equals));
    absl::string_view value = equals == absl::string_view::npos
                                  ? "1"
                                  : absl::StripAsciiWhitespace(item.substr(equals + 1));
    if (!IsKey(key)) {
      RETURN_IF_ERROR(CheckCommas(items, at));
      const std::vector<std::string> keys(std::begin(kKeys), std::end(kKeys));
      return absl::InvalidArgumentError(
          absl::StrCat("space: no key `", key, "`.", Offer(key, keys), " docs/cli.md has all."));
    }
    if (equals == absl::string_view::npos && key != "sp") {
      return Bad(key, "", absl::StrCat("Give it values: `", key, "=1|2|4`."));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: `", key, "` is given twice. Join the values: `", key, "=1|2`."));
    }
    seen.push_back(key);
    RETURN_IF_ERROR(ParseKey(key, value, space));
  }
  return space;
}

NumberSet CutsOfSamples() { return {false, {{1, 1}, {2, 2}, {4, 4}}}; }

bool CutsSamples(const SearchSpace& space, const SearchBounds& bounds, bool experts) {
  const bool open = !space.tp && !space.mb && !space.cp;
  return open && bounds.limits.cp && !experts && bounds.most_tp() > 1;
}

std::string PrintSearchSpace(const SearchSpace& space, const SearchBounds& bounds, bool experts,
                             int64_t seq) {
  std::vector<std::string> parts;
  if (space.dp) PrintNumbers("dp", space.dp, "", parts);
  PrintNumbers("tp", space.tp, NumberSet{false, {{1, bounds.most_tp()}}}.DebugString(), parts);
  PrintNumbers("pp", space.pp, "*", parts);
  PrintNumbers("vpp", space.vpp, "*", parts);
  PrintNumbers("mb", space.mb, "1|2|4|8", parts);
  if (experts || space.ep) PrintNumbers("ep", space.ep, "*", parts);
  const bool searches = seq >= kLongSequence && bounds.limits.cp;
  const bool cuts = seq > 0 && CutsSamples(space, bounds, experts);
  if (space.cp || searches || cuts) {
    const std::string some =
        absl::StrCat(CutsOfSamples().DebugString(), " (with tp=", bounds.most_tp(), " and mb=1)");
    PrintNumbers("cp", space.cp, searches ? "*" : some, parts);
    parts.push_back(absl::StrCat("cp_type=", absl::StrJoin(CpTypesOf(space), "|")));
  }
  parts.push_back(absl::StrCat("recompute=", absl::StrJoin(RecomputesOf(space, bounds), "|")));
  parts.push_back(absl::StrCat("zero=", absl::StrJoin(ZerosOf(space, bounds), "|")));
  if (space.hsdp) PrintNumbers("hsdp", space.hsdp, "", parts);
  parts.push_back(absl::StrCat("sp=", absl::StrJoin(SpsOf(space, bounds), "|")));
  if (!space.layouts.empty()) {
    parts.push_back(absl::StrCat("layout=", absl::StrJoin(space.layouts, "|")));
  }
  if (!space.orders.empty()) {
    parts.push_back(absl::StrCat("order=", absl::StrJoin(space.orders, "|")));
  }
  for (const auto& [key, values] : space.others) {
    parts.push_back(absl::StrCat(key, "=", absl::StrJoin(values, "|")));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace plancast
