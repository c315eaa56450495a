#include "strategy/framework_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

std::string FrameworkLimits::WhyNotSoMany(const ShortForm& plan, absl::string_view name,
                                          int64_t micro_batches) const {
  const int64_t stages = plan.pp.value_or(1), chunks = plan.vpp.value_or(1);
  if (pipeline_batches == PipelineBatches::kAny || stages == 1) return "";
  const std::string schedule = plan.schedule.value_or(chunks > 1 ? "interleaved" : "1f1b");
  const bool in_rounds = pipeline_batches == PipelineBatches::kRounds;
  if (schedule == "interleaved" && chunks > 1) {
    const auto lacks = [&](absl::string_view where) {
      return absl::StrCat(name, " has no interleaved schedule where ", where);
    };
    if (pipeline_batches == PipelineBatches::kGroups) {
      return micro_batches >= stages ? "" : lacks("there are fewer micro-batches than stages");
    }
    if (in_rounds) {
      const int64_t rounds = std::max<int64_t>(1, micro_batches / stages);
      return micro_batches % rounds == 0 ? ""
                                         : lacks("rounds of at least pp micro-batches are unlike");
    }
    return micro_batches % stages == 0 ? "" : lacks("micro-batches are no multiple of pp");
  }
  if (pipeline_batches == PipelineBatches::kWarmUp) {
    if (schedule != "1f1b" || micro_batches >= stages - 1) return "";
    return absl::StrCat(name, " has no schedule=1f1b with fewer than pp-1 micro-batches");
  }
  const bool both_ways = schedule == "dualpipev";
  const bool fills = both_ways || schedule == "1f1b" || schedule == "gpipe";
  if (!in_rounds || !fills || micro_batches >= (both_ways ? 2 : 1) * stages) return "";
  return absl::StrCat(name, " has no schedule=", schedule, " with fewer micro-batches than stages");
}

std::string FrameworkLimits::WhyNot(const ShortForm& plan, absl::string_view name,
                                    std::optional<int64_t> micro_batches) const {
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
  return micro_batches.has_value() ? WhyNotSoMany(plan, name, *micro_batches) : "";
}

}  // namespace plancast
