#ifndef PLANCAST_STRATEGY_FRAMEWORK_LIMITS_H_
#define PLANCAST_STRATEGY_FRAMEWORK_LIMITS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "strategy/short_form.h"

namespace plancast {

// How many micro-batches the pipeline of a framework takes (proto/software_profile.proto).
enum class PipelineBatches { kAny, kGroups, kWholeGroups, kRounds, kWarmUp };
inline constexpr auto kPipelineBatchesNames =
    NamesOf<PipelineBatches>("any", "groups", "whole_groups", "rounds", "warm_up");

// What of the strategy language a framework has, as its software profile says it: searches
// try nothing else, and launchers refuse the rest. A plan that is asked for by name is
// simulated all the same.
struct FrameworkLimits {
  std::set<int64_t> zero;           // stages of ZeRO; empty: all
  std::set<std::string> recompute;  // modes (`full` of `full:2`); empty: all
  // Sets of ops that searches try to run again, each alone and the first ones together.
  std::vector<std::string> recompute_words;
  bool tp = true, pp = true, ep = true, cp = true, vpp = true;
  std::set<std::string> cp_types;  // by name; empty: all
  std::optional<bool> sp;          // with tp > 1: always or never; absent: either
  bool unsharded_tp = true;        // tp with zero=0
  bool tp_beside = false;          // overlap=tp is tried, of models without experts
  bool data_beside = false;        // overlap=grad, with zero=1 to 3 grad+param, is what is tried
  bool pairs = false;              // overlap=ep; with pp where vpp > 1, not with recompute=full
  PipelineBatches pipeline_batches = PipelineBatches::kAny;

  // `framework NAME has no zero=1`: why it cannot run the plan, or empty if it can. With the
  // micro-batches of each rank, if they are known.
  std::string WhyNot(const ShortForm& plan, absl::string_view name,
                     std::optional<int64_t> micro_batches = std::nullopt) const;
  // Of its pipeline alone, or empty.
  std::string WhyNotSoMany(const ShortForm& plan, absl::string_view name,
                           int64_t micro_batches) const;
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_FRAMEWORK_LIMITS_H_
