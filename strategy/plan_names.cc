#include "strategy/plan_names.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

// `grad+param`, or `none`.
template <typename Enum, size_t n>
std::string TextOf(const EnumNames<Enum, n>& names, const std::set<Enum>& values) {
  if (values.empty()) return "none";
  return absl::StrJoin(values, "+",
                       [&](std::string* out, Enum value) { absl::StrAppend(out, names[value]); });
}

}  // namespace

std::string PrintRecompute(Recompute recompute, const std::vector<std::string>& ops) {
  const absl::string_view name = kRecomputeNames[recompute];
  return ops.empty() ? std::string(name) : absl::StrCat(name, ":", absl::StrJoin(ops, "+"));
}

std::string OverlapText(const std::set<Overlap>& overlap) { return TextOf(kOverlapNames, overlap); }

std::string OffloadText(const std::set<Offload>& offload) { return TextOf(kOffloadNames, offload); }

std::optional<int64_t> AxisSize(const ShortForm& form, absl::string_view axis) {
  if (axis == "dp") return form.dp;
  if (axis == "tp") return form.tp.value_or(1);
  if (axis == "pp") return form.pp.value_or(1);
  if (axis == "cp") return form.cp.value_or(1);
  if (axis == "ep") return form.ep.value_or(1);
  if (axis == "etp") return form.etp.value_or(form.tp.value_or(1));
  return std::nullopt;
}

}  // namespace plancast
