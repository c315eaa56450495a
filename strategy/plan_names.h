#ifndef PLANCAST_STRATEGY_PLAN_NAMES_H_
#define PLANCAST_STRATEGY_PLAN_NAMES_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

// Texts of plan options in the strategy language.

namespace plancast {

// `none`; with sets of ops: `selective:core_attn+moe_act`.
std::string PrintRecompute(Recompute recompute, const std::vector<std::string>& ops);
// `grad+param`, or `none`.
std::string OverlapText(const std::set<Overlap>& overlap);
std::string OffloadText(const std::set<Offload>& offload);

// What the short form says about the size of a mesh axis. dp is derived from
// the machine where it is not said; the other axes are 1.
std::optional<int64_t> AxisSize(const ShortForm& form, absl::string_view axis);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PLAN_NAMES_H_
