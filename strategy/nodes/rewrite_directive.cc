#include "strategy/nodes/rewrite_directive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

constexpr absl::string_view kForms =
    "`split(all_reduce)`, `reorder(all_gather, past: OPS)`, `fuse(OPS with COMMS)` or `overlap(OP, "
    "COMM, pieces: N)`";

std::vector<std::string> Listed(absl::string_view text) {
  std::vector<std::string> items;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    items.emplace_back(absl::StripAsciiWhitespace(item));
  }
  return items;
}

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("`", text, "` ", why));
}

absl::StatusOr<CollectiveKind> KindOf(absl::string_view text, const std::string& name,
                                      const std::vector<CollectiveKind>& known) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : known) {
    names.emplace_back(kCollectiveKindNames[kind]);
    if (names.back() == name) return kind;
  }
  return Wrong(text, absl::StrCat("names `", name, "`; it is said of ", JoinQuoted(names), ".",
                                  DidYouMean(name, names)));
}

// `key: value` at the end of a list of arguments, taken off.
absl::string_view TakeOption(absl::string_view key, absl::string_view* arguments) {
  const size_t at = arguments->rfind(absl::StrCat(key, ":"));
  if (at == absl::string_view::npos) return "";
  const absl::string_view value =
      absl::StripAsciiWhitespace(arguments->substr(at + key.size() + 1));
  *arguments = absl::StripAsciiWhitespace(arguments->substr(0, at));
  absl::ConsumeSuffix(arguments, ",");
  *arguments = absl::StripAsciiWhitespace(*arguments);
  return value;
}

absl::Status ReadSplit(absl::string_view text, absl::string_view arguments, Rewrite* rewrite) {
  rewrite->along = std::string(TakeOption("along", &arguments));
  ASSIGN_OR_RETURN(const CollectiveKind kind,
                   KindOf(text, std::string(arguments), {CollectiveKind::kAllReduce}));
  rewrite->comms = {kind};
  return absl::OkStatus();
}

absl::Status ReadReorder(absl::string_view text, absl::string_view arguments, Rewrite* rewrite) {
  rewrite->ops = Listed(TakeOption("past", &arguments));
  if (rewrite->ops.empty()) {
    return Wrong(text, "does not say past which ops. Write `reorder(all_gather, past: OPS)`.");
  }
  ASSIGN_OR_RETURN(const CollectiveKind kind,
                   KindOf(text, std::string(arguments), {CollectiveKind::kAllGather}));
  rewrite->comms = {kind};
  return absl::OkStatus();
}

absl::Status ReadFuse(absl::string_view text, absl::string_view arguments, Rewrite* rewrite) {
  constexpr absl::string_view kWith = " with ";  // the last one: an op may be called so
  const size_t with = arguments.rfind(kWith);
  rewrite->ops = Listed(arguments.substr(0, with));
  const absl::string_view behind =
      with == absl::string_view::npos ? "" : arguments.substr(with + kWith.size());
  for (const std::string& name : Listed(behind)) {
    ASSIGN_OR_RETURN(rewrite->comms.emplace_back(),
                     KindOf(text, name,
                            {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                             CollectiveKind::kAllReduce}));
  }
  if (rewrite->ops.empty() || rewrite->comms.empty()) {
    return Wrong(text,
                 "does not say what runs with which collectives. Write `fuse(OPS with "
                 "COMMS)`.");
  }
  return absl::OkStatus();
}

absl::Status ReadOverlap(absl::string_view text, absl::string_view arguments, Rewrite* rewrite) {
  const absl::string_view pieces = TakeOption("pieces", &arguments);
  if (pieces != "tuned" && (!absl::SimpleAtoi(pieces, &rewrite->pieces) || rewrite->pieces < 1)) {
    return Wrong(text, "does not say in how many pieces: `pieces: 8`, or `pieces: tuned`.");
  }
  const std::vector<std::string> names = Listed(arguments);
  if (names.size() != 2) return Wrong(text, "takes an op and one collective.");
  rewrite->ops = {names[0]};
  ASSIGN_OR_RETURN(const CollectiveKind kind,
                   KindOf(text, names[1],
                          {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
                           CollectiveKind::kAllToAll, CollectiveKind::kAllGather}));
  rewrite->comms = {kind};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Rewrite> ParseRewrite(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  const size_t open = rest.find('(');
  if (open == absl::string_view::npos || !absl::ConsumeSuffix(&rest, ")")) {
    return Wrong(text, absl::StrCat("is no rewrite. Write ", kForms, "."));
  }
  const absl::string_view name = absl::StripAsciiWhitespace(rest.substr(0, open));
  const absl::string_view arguments = absl::StripAsciiWhitespace(rest.substr(open + 1));
  Rewrite rewrite;
  if (name == "split") {
    rewrite.kind = Rewrite::Kind::kSplit;
    RETURN_IF_ERROR(ReadSplit(text, arguments, &rewrite));
  } else if (name == "reorder") {
    rewrite.kind = Rewrite::Kind::kReorder;
    RETURN_IF_ERROR(ReadReorder(text, arguments, &rewrite));
  } else if (name == "fuse") {
    rewrite.kind = Rewrite::Kind::kFuse;
    RETURN_IF_ERROR(ReadFuse(text, arguments, &rewrite));
  } else if (name == "overlap") {
    rewrite.kind = Rewrite::Kind::kOverlap;
    RETURN_IF_ERROR(ReadOverlap(text, arguments, &rewrite));
  } else {
    return Wrong(text, absl::StrCat("is no rewrite. Write ", kForms, "."));
  }
  return rewrite;
}

std::string Rewrite::DebugString() const {
  std::vector<std::string> kinds;
  for (const CollectiveKind comm : comms) kinds.emplace_back(kCollectiveKindNames[comm]);
  const std::string collectives = absl::StrJoin(kinds, ", "), listed = absl::StrJoin(ops, ", ");
  switch (kind) {
    case Kind::kSplit:
      return absl::StrCat("split(", collectives, along.empty() ? "" : ", along: ", along, ")");
    case Kind::kReorder:
      return absl::StrCat("reorder(", collectives, ", past: ", listed, ")");
    case Kind::kFuse:
      return absl::StrCat("fuse(", listed, " with ", collectives, ")");
    case Kind::kOverlap:
      break;
  }
  return absl::StrCat("overlap(", listed, ", ", collectives,
                      ", pieces: ", pieces == 0 ? "tuned" : absl::StrCat(pieces), ")");
}

std::string DebugString(const std::vector<Rewrite>& rewrites) {
  return absl::StrJoin(rewrites, "; ", [](std::string* out, const Rewrite& rewrite) {
    absl::StrAppend(out, rewrite.DebugString());
  });
}

}  // namespace plancast
