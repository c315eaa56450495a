#include "strategy/nodes/loop_directive.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"

namespace plancast {

absl::Status LoopDirective::Settle() {
  for (const auto& [loop, axes] : rotate) {
    if (axes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`rotate: {", loop, ": []}` names no axis. Name those over which parts are "
                       "handed on, as in `rotate: {", loop, ": cp}`."));
    }
    const std::vector<std::string> known = {"dp", "cp", "tp"};
    for (const std::string& axis : axes) {
      if (std::find(known.begin(), known.end(), axis) != known.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("`rotate: {", loop, ": ", axis, "}`: parts are handed on over ",
                       JoinQuoted(known), ".", DidYouMean(axis, known)));
    }
    const bool fetched = std::any_of(communicate.begin(), communicate.end(),
                                     [&l = loop](const auto& said) { return said.second == l; });
    if (fetched) continue;
    if (!communicate.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`rotate: {", loop, ": ...}` turns a loop in which `communicate` fetches "
                       "nothing. Say `communicate: {TENSOR: ", loop, "}`, or leave `communicate` "
                       "out."));
    }
    if (rotate.size() > 1) {
      return absl::InvalidArgumentError(
          "`rotate` turns several loops: say in which of them what is fetched, as in "
          "`communicate: {x: k}`.");
    }
    communicate[kAll] = loop;
    break;
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
  return absl::StrJoin(parts, "; ");
}

}  // namespace plancast
