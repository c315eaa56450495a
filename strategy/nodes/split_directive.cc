#include "strategy/nodes/split_directive.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

bool HasNumber(absl::string_view entry) { return absl::StrContains(entry, '/'); }

// `heads|ffn`, or nothing.
absl::StatusOr<std::vector<std::string>> ParseDims(absl::string_view text,
                                                   absl::string_view entry) {
  std::vector<std::string> dims;
  if (text.empty() && HasNumber(entry)) return dims;
  for (const absl::string_view dim : absl::StrSplit(text, '|')) {
    dims.emplace_back(absl::StripAsciiWhitespace(dim));
    if (!dims.back().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("`", entry,
                     "` has an empty dim. Write dims in order of preference, as in `heads|ffn`; a "
                     "level that cuts nothing is `/2`, an axis that cuts nothing an empty list."));
  }
  return dims;
}

absl::StatusOr<SplitLevel> ParseLevel(absl::string_view entry) {
  SplitLevel level;
  const size_t slash = entry.find('/');
  const absl::string_view dims = absl::StripAsciiWhitespace(entry.substr(0, slash));
  ASSIGN_OR_RETURN(level.dims, ParseDims(dims, entry));
  if (slash == absl::string_view::npos) return level;
  if (!absl::SimpleAtoi(entry.substr(slash + 1), &level.parts) || level.parts < 1 ||
      level.parts > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", entry, "` has no number of ranks behind its slash. Write `",
                     dims.empty() ? "heads" : dims, "/4` for a level of four."));
  }
  return level;
}

}  // namespace

std::string SplitLevel::DebugString() const {
  const std::string text = absl::StrJoin(dims, "|");
  return parts == 0 ? text : absl::StrCat(text, "/", parts);
}

absl::StatusOr<SplitDirective> SplitDirective::Parse(absl::string_view axis,
                                                     const std::vector<std::string>& entries) {
  SplitDirective split(std::string(axis), {});
  if (std::none_of(entries.begin(), entries.end(), HasNumber)) {
    for (const std::string& entry : entries) {
      ASSIGN_OR_RETURN(const std::vector<std::string> dims, ParseDims(entry, entry));
      std::vector<std::string>& all = split.levels[0].dims;
      all.insert(all.end(), dims.begin(), dims.end());
    }
    return split;
  }
  split.levels.clear();
  std::string without;
  for (const std::string& entry : entries) {
    ASSIGN_OR_RETURN(split.levels.emplace_back(), ParseLevel(entry));
    if (split.levels.back().parts > 0) continue;
    if (!without.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", without, "` and `", entry, "` are levels of `", axis,
          "` without a number; one may leave it out. Dims of one level in order of preference are "
          "written `",
          without, "|", entry, "/4`."));
    }
    without = entry;
  }
  return split;
}

std::vector<std::string> SplitDirective::Entries() const {
  if (!is_hierarchy()) return levels[0].dims;
  std::vector<std::string> entries;
  for (const SplitLevel& level : levels) entries.push_back(level.DebugString());
  return entries;
}

bool SplitDirective::cuts_nothing() const {
  return std::all_of(levels.begin(), levels.end(),
                     [](const SplitLevel& level) { return level.dims.empty(); });
}

absl::StatusOr<std::vector<int64_t>> SplitDirective::Sizes(int64_t ranks) const {
  std::vector<int64_t> sizes;
  int64_t left = ranks;
  bool divides = true, open = false;
  for (const SplitLevel& level : levels) {
    sizes.push_back(level.parts);
    open = open || level.parts == 0;
    divides = divides && (level.parts == 0 || left % level.parts == 0);
    if (divides && level.parts > 0) left /= level.parts;
  }
  if (!divides || (!open && left != 1)) {
    std::vector<int64_t> said;
    for (const int64_t size : sizes) {
      if (size > 0) said.push_back(size);
    }
    std::string hint = absl::StrCat(". Write levels whose product is ", ranks);
    if (divides) {
      absl::StrAppend(&hint, "; a last level `/", left, "` cuts nothing");
    } else if (!open && levels.size() > 1) {
      absl::StrAppend(&hint, ", or leave one number out: that level has the ranks that are left");
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "`", DebugString(), "` cuts axis `", axis, "` into ", absl::StrJoin(said, " x "),
        " parts, and it has ", ranks, ranks == 1 ? " rank" : " ranks", hint, "."));
  }
  for (int64_t& size : sizes) size = size == 0 ? left : size;
  return sizes;
}

std::string SplitDirective::DebugString() const {
  if (is_hierarchy()) return absl::StrJoin(Entries(), ", ");
  return levels[0].dims.empty() ? "-" : absl::StrJoin(levels[0].dims, " | ");
}

}  // namespace plancast
