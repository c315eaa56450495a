#include "graph/rule/rule_draft.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

absl::StatusOr<OpRule> RuleDraft::Build() && {
  return OpRule::Create(std::move(name), std::move(factors), std::move(tensors), std::move(inputs),
                        std::move(outputs), std::move(statements), std::move(saves),
                        std::move(fused));
}

int RuleDraft::FindTensor(absl::string_view tensor) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].name == tensor) return static_cast<int>(t);
  }
  return -1;
}

int RuleDraft::AddTensor(RuleTensor tensor) {
  tensors.push_back(std::move(tensor));
  has_dims.push_back(false);
  return static_cast<int>(tensors.size()) - 1;
}

int RuleDraft::FindOrAddFactor(absl::string_view factor) {
  for (size_t f = 0; f < factors.size(); ++f) {
    if (factors[f] == factor) return static_cast<int>(f);
  }
  factors.emplace_back(factor);
  return static_cast<int>(factors.size()) - 1;
}

std::string RuleDraft::ElementText(absl::string_view tensor, const std::vector<int>& dims) const {
  return absl::StrCat(
      tensor, "[",
      absl::StrJoin(dims, ",", [&](std::string* out, int f) { out->append(factors[f]); }), "]");
}

}  // namespace plancast
