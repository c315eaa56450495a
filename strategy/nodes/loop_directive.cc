#include "strategy/nodes/loop_directive.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"

namespace plancast {

absl::Status LoopDirective::Settle() {
  std::set<std::string> loops;
  for (const auto& [loop, axes] : rotate) {
    if (axes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`rotate: {", loop,
                       ": []}` names no axis. Name those over which parts are "
                       "handed on, as in `rotate: {",
                       loop, ": cp}`."));
    }
    const std::vector<std::string> known = {"dp", "cp", "tp"};
    for (const std::string& axis : axes) {
      if (std::find(known.begin(), known.end(), axis) != known.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("`rotate: {", loop, ": ", axis, "}`: parts are handed on over ",
                       JoinQuoted(known), ".", DidYouMean(axis, known)));
    }
    loops.insert(loop);
  }
  for (const auto& [loop, count] : pieces) {
    if (count < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("`pieces: {", loop, ": ", count, "}` are none. Give 1 or more."));
    }
    if (!loops.insert(loop).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", loop, "` turns, so that it has a part for each rank, and `pieces` says ", count,
          ". Leave one of the two out."));
    }
  }
  for (const std::string& loop : loops) {
    const bool fetched = std::any_of(communicate.begin(), communicate.end(),
                                     [&](const auto& said) { return said.second == loop; });
    if (fetched) continue;
    if (!communicate.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", loop,
                       "` is turned or cut in pieces, and `communicate` fetches nothing "
                       "in it. Say `communicate: {TENSOR: ",
                       loop,
                       "}`, or leave `communicate` "
                       "out."));
    }
    if (loops.size() > 1) {
      return absl::InvalidArgumentError(
          "several loops are turned or cut in pieces: say what is fetched in which, as in "
          "`communicate: {x: k}`.");
    }
    communicate[kAll] = loop;
  }
  return absl::OkStatus();
}

std::string LoopDirective::DebugString() const {
  std::map<std::string, std::vector<std::string>> at;
  for (const auto& [tensor, loop] : communicate) at[loop].push_back(tensor);
  std::vector<std::string> parts;
  for (const auto& [loop, tensors] : at) {
    parts.push_back(absl::StrCat(absl::StrJoin(tensors, ", "), " at ", loop));
  }
  for (const auto& [loop, axes] : rotate) {
    parts.push_back(absl::StrCat(loop, " over ", absl::StrJoin(axes, ", ")));
  }
  for (const auto& [loop, count] : pieces) parts.push_back(absl::StrCat(loop, " in ", count));
  return absl::StrJoin(parts, "; ");
}

}  // namespace plancast
