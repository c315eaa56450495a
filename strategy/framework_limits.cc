#include "strategy/framework_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

std::string FrameworkLimits::LacksSoMany(const ShortForm& plan, int64_t micro_batches) const {
  const int64_t stages = plan.pp.value_or(1), chunks = plan.vpp.value_or(1);
  if (pipeline_batches == PipelineBatches::kAny || stages == 1) return "";
  const std::string schedule = plan.schedule.value_or(chunks > 1 ? "interleaved" : "1f1b");
  if (schedule == "interleaved" && chunks > 1) {
    if (pipeline_batches == PipelineBatches::kWholeGroups) {
      return micro_batches % stages == 0
                 ? ""
                 : "interleaved schedule where micro-batches are no multiple of pp";
    }
    const int64_t rounds = std::max<int64_t>(1, micro_batches / stages);
    return micro_batches % rounds == 0
               ? ""
               : "interleaved schedule where rounds of at least pp micro-batches are unlike";
  }
  if (pipeline_batches != PipelineBatches::kRounds) return "";
  const bool both_ways = schedule == "dualpipev";
  if (!both_ways && schedule != "1f1b" && schedule != "gpipe") return "";
  if (micro_batches >= (both_ways ? 2 : 1) * stages) return "";
  return absl::StrCat("schedule=", schedule, " with fewer micro-batches than stages");
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
  if (micro_batches.has_value()) {
    const std::string so_many = LacksSoMany(plan, *micro_batches);
    if (!so_many.empty()) return lacks(so_many);
  }
  return "";
}

}  // namespace plancast
