#include "strategy/framework_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

std::string FrameworkLimits::WhyNot(const ShortForm& plan, absl::string_view name) const {
  const auto lacks = [&](const auto&... what) { return absl::StrCat(name, " has no ", what...); };
  const int64_t tp_ranks = plan.tp.value_or(1), stage = plan.zero.value_or(0);
  if (!tp && tp_ranks > 1) return lacks("tp");
  if (!pp && plan.pp.value_or(1) > 1) return lacks("pp");
  if (!vpp && plan.vpp.value_or(1) > 1) return lacks("vpp");
  if (!ep && plan.ep.value_or(1) > 1) return lacks("ep");
  const bool cuts_sequence = plan.cp.value_or(1) > 1;
  if (!cp && cuts_sequence) return lacks("cp");
  const std::string type = plan.cp_type.value_or("");
  if (cuts_sequence && !type.empty() && !cp_types.empty() &&
      cp_types.count(type.substr(0, type.find(':'))) == 0) {
    return lacks("cp_type=", type);
  }
  if (!zero.empty() && zero.count(stage) == 0) return lacks("zero=", stage);
  if (sp.has_value() && tp_ranks > 1 && plan.sp != *sp) {
    return lacks(*sp ? "tp without sp" : "sp");
  }
  if (!unsharded_tp && tp_ranks > 1 && stage == 0) return lacks("tp with zero=0");
  const std::string mode = plan.recompute.value_or("none");
  if (!recompute.empty() && recompute.count(mode) == 0) return lacks("recompute=", mode);
  if (std::count(plan.overlap.begin(), plan.overlap.end(), "ep") > 0) {
    if (!pairs) return lacks("overlap=ep");
    if (plan.pp.value_or(1) > 1 && plan.vpp.value_or(1) == 1) {
      return lacks("overlap=ep with pp and without vpp");
    }
    if (mode == "full") return lacks("overlap=ep with recompute=full");
  }
  return "";
}

}  // namespace plancast
