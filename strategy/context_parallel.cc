#include "strategy/context_parallel.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/suggest.h"

namespace plancast {

absl::StatusOr<ContextParallel> ContextParallel::Parse(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::optional<CpType> type = kCpTypeNames.Find(parts.first);
  const bool number = parts.first.size() != text.size();
  ContextParallel said;
  if (!type.has_value() || (number && type != CpType::kHybrid)) {
    const std::vector<std::string> known = {"ring", "ring_zigzag", "allgather", "ulysses",
                                            "hybrid:A"};
    return absl::InvalidArgumentError(absl::StrCat("`", text, "` is not one of ", JoinQuoted(known),
                                                   ".", DidYouMean(text, known)));
  }
  said.type = *type;
  if (type != CpType::kHybrid) return said;
  if (!absl::SimpleAtoi(parts.second, &said.head_ranks) || said.head_ranks < 1 ||
      said.head_ranks > 1'000'000) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text,
        "` does not say over how many neighbouring ranks heads are cut. Write `hybrid:2`."));
  }
  return said;
}

std::string ContextParallel::DebugString() const {
  std::string text(kCpTypeNames[type]);
  if (type == CpType::kHybrid) absl::StrAppend(&text, ":", head_ranks);
  return text;
}

std::vector<std::string> ContextParallel::Cuts() const {
  const std::string seq = mirrored() ? "zigzag(seq)" : "seq";
  const std::string slots = mirrored() ? "zigzag(slots)" : "slots";  // of experts, as their tokens
  switch (type) {
    case CpType::kUlysses:
      return {"kv_seq:heads", seq, slots};
    case CpType::kHybrid:
      return {absl::StrCat(seq, "|", slots),
              absl::StrCat("kv_seq:heads|", seq, "|", slots, "/", head_ranks)};
    default:
      return {seq, slots};
  }
}

}  // namespace plancast
