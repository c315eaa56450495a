#include "strategy/finetune/lora_directive.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

std::string LoraDirective::DebugString() const {
  return absl::StrCat("rank=", rank, " on ", absl::StrJoin(on, "+"),
                      dropout > 0 ? absl::StrCat(" dropout=", dropout) : "",
                      base.empty() ? "" : absl::StrCat(" base=", base));
}

absl::Status LoraDirective::Check() const {
  constexpr int64_t kMostRank = 1 << 20;
  if (rank < 1 || rank > kMostRank) {
    return absl::InvalidArgumentError(absl::StrCat("`lora` has rank ", rank,
                                                   ". Give a rank of 1 or more, as in ",
                                                   "{rank: 16, on: [qkv, proj]}."));
  }
  if (on.empty()) {
    return absl::InvalidArgumentError(
        "`lora` names no ops. Say which products get adapters, as in on: [qkv, proj].");
  }
  if (!(dropout >= 0 && dropout < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`lora` has dropout ", dropout, ". Give the share of values that are dropped, 0 to 1."));
  }
  if (!base.empty() && base != "nf4") {
    return absl::InvalidArgumentError(
        absl::StrCat("`lora` has base `", base,
                     "`; a frozen base is `nf4`, or as the model's type if nothing is said."));
  }
  return absl::OkStatus();
}

bool NamesOp(absl::string_view on, absl::string_view op) {
  if (op == on) return !on.empty();
  return !on.empty() && absl::EndsWith(op, absl::StrCat(".", on));
}

}  // namespace plancast
