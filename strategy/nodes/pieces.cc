#include "strategy/nodes/pieces.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

absl::Status PiecesDirective::Check() const {
  if (empty()) return absl::OkStatus();
  if (micro_batches < 1) {
    return absl::InvalidArgumentError(
        "`max_ongoing` is of pieces, and there are none. Say `micro_batches` beside it, as in "
        "`{micro_batches: 8, max_ongoing: 1}`.");
  }
  if (max_ongoing.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("`max_ongoing: [", absl::StrJoin(max_ongoing, ", "),
                     "]` lists stages, and a node is on one. Give one number."));
  }
  if (max_ongoing.empty() || (max_ongoing[0] >= 1 && max_ongoing[0] <= micro_batches)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "`max_ongoing: ", max_ongoing[0], "` of ", micro_batches,
      " pieces. Give 1 (each goes back at once) to ", micro_batches, " (all go forward first)."));
}

std::string PiecesDirective::DebugString() const {
  if (max_ongoing.empty()) return absl::StrCat(micro_batches);
  return absl::StrCat(micro_batches, ", ", absl::StrJoin(max_ongoing, "+"), " at once");
}

}  // namespace plancast
