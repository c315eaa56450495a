#ifndef PLANCAST_STRATEGY_PLAN_NAMES_H_
#define PLANCAST_STRATEGY_PLAN_NAMES_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

// The words of the strategy language for the enumerations of PlanOptions. An
// unknown word gives nullopt: where a user wrote it, the parser has answered.

namespace plancast {

absl::string_view RecomputeName(Recompute recompute);
// With sets of ops: `selective:core_attn+moe_act`.
std::string PrintRecompute(Recompute recompute, const std::vector<std::string>& ops);
std::optional<Recompute> FindRecompute(absl::string_view name);

// `none` where there is no pipeline.
absl::string_view ScheduleName(Schedule schedule);
std::optional<Schedule> FindSchedule(absl::string_view name);

absl::string_view AttentionName(Attention attention);
std::optional<Attention> FindAttention(absl::string_view name);

absl::string_view OverlapName(Overlap overlap);
std::optional<Overlap> FindOverlap(absl::string_view name);
// `grad+param`, or `none`.
std::string OverlapText(const std::set<Overlap>& overlap);

std::optional<Offload> FindOffload(absl::string_view name);
std::string OffloadText(const std::set<Offload>& offload);

// What the short form says about the size of a mesh axis. dp is derived from
// the machine where it is not said; the other axes are 1.
std::optional<int64_t> AxisSize(const ShortForm& form, absl::string_view axis);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PLAN_NAMES_H_
