#ifndef PLANCAST_PLANNER_SEARCH_SPACE_H_
#define PLANCAST_PLANNER_SEARCH_SPACE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/search/condition.h"
#include "strategy/choose_plan.h"
#include "strategy/context/choose_context_parallel.h"
#include "strategy/framework_limits.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

namespace plancast {

// Some positive integers: all (`*`), or a union of closed ranges. `1|2|4..8`.
struct NumberSet {
  bool any = false;
  std::vector<std::pair<int64_t, int64_t>> ranges;

  bool Contains(int64_t value) const;
  // The values said one by one (`3`, not `1..3`).
  std::vector<int64_t> Singles() const;
  std::string DebugString() const;

  friend bool operator==(const NumberSet& a, const NumberSet& b) {
    return a.any == b.any && a.ranges == b.ranges;
  }
};

// A set of plans to compare, `tp=1|2|4|8,pp=1..16,mb=*`. What is not said has
// the default given here.
struct SearchSpace {
  std::optional<NumberSet> dp;   // default: whatever tp and pp leave
  std::optional<NumberSet> tp;   // default: up to SearchBounds::most_tp(); `*`: of all devices
  std::optional<NumberSet> pp;   // default `*`: divisors of the devices, up to the layers
  std::optional<NumberSet> vpp;  // default `*`: chunks that cut the layers evenly
  std::optional<NumberSet> mb;   // default: 1|2|4|8; `*`: divisors of the batch
  std::optional<NumberSet> ep;   // default `*`: what divides the experts and their ranks
  // Default: of sequences from kLongSequence tokens on `*`: what is left of the devices. Of shorter
  // ones 1, and of models without experts, where neither tp nor mb is said, also 2 and 4 with tp of
  // most_tp() and mb=1: samples that stages could not hold without recomputation otherwise.
  std::optional<NumberSet> cp;
  std::vector<std::string> cp_types;   // default, with cp > 1: ring_zigzag, allgather, ulysses
  std::vector<std::string> recompute;  // default: none, selective, the usual sets, full
  std::vector<int64_t> zero;           // default: 0 to 3
  // Ranks that share a sharded copy. Default: all of dp, and with zero=3 also those of one domain
  // of fast links; `*`: all divisors of dp from 2 on.
  std::optional<NumberSet> hsdp;
  std::vector<bool> sp;  // default: with tp > 1 only true
  // Layers of stages: `even` (the default: as the plan has them that says nothing), `balanced`
  // (BalancedLayers), `*` (Layouts), or said one by one, `13+14x7`.
  std::vector<std::string> layouts;
  std::vector<std::string> orders;  // of mesh axes, or `*`; default: as the plan has it
  // Other keys of the short form, each with its alternatives as written, e.g.
  // `attn=flash|unfused`.
  std::vector<std::pair<std::string, std::vector<std::string>>> others;
  std::optional<PlanCondition> where;  // of these plans, those of which it holds
};

// What the defaults of a space depend on, and what is left out of any.
struct SearchBounds {
  int64_t gpus_per_domain = 1;
  FrameworkLimits limits = {};
  std::string framework = {};      // whose limits they are
  std::set<Overlap> overlap = {};  // its own, where a plan says nothing
  // What `selective:*` stands for, each `selective:WORD+WORD`, and those of them that are tried
  // where a space does not say recompute.
  std::vector<std::string> recompute_sets = {}, usual_sets = {};

  // Of tp where the space does not say it: published runs hardly ever have more than 8, in
  // domains of 72 GPUs neither.
  int64_t most_tp() const { return std::min<int64_t>(gpus_per_domain, 8); }
};

// Errors name the key, what it may be and the nearest known key.
absl::StatusOr<SearchSpace> ParseSearchSpace(absl::string_view text);
// Canonical text with the defaults written out; `ep` of models with experts only.
std::string PrintSearchSpace(const SearchSpace& space, const SearchBounds& bounds, bool experts,
                             int64_t seq);

// Context-parallel ranks that share a short sequence, and whether a space that says no cp tries
// them.
NumberSet CutsOfSamples();
bool CutsSamples(const SearchSpace& space, const SearchBounds& bounds, bool experts);

// The values of these keys, defaults within the bounds where the space says none.
std::vector<std::string> RecomputesOf(const SearchSpace& space, const SearchBounds& bounds);
std::vector<int64_t> ZerosOf(const SearchSpace& space, const SearchBounds& bounds);
std::vector<bool> SpsOf(const SearchSpace& space, const SearchBounds& bounds);
std::vector<std::string> CpTypesOf(const SearchSpace& space);

// Whether an alternative of a space means that the key is not said: `none` of those that have no
// such word.
bool IsUnsaid(absl::string_view key, absl::string_view value);

// `full:*`, `every:*` and `uniform:*` with the numbers that differ where a stage has so many
// layers, `selective:*` with the sets of the bounds.
std::vector<std::string> RecomputesOn(const std::vector<std::string>& said, int64_t layers,
                                      const SearchBounds& bounds);
// The layouts of so many virtual stages, as text of the short form; empty: not said. `*`: equal
// ones, the balanced one, and those where the first and the last stage have up to two layers less
// than the others.
std::vector<std::string> LayoutsOn(const std::vector<std::string>& said, int64_t stages,
                                   const PlanContext& context);
// The orders of mesh axes. `*`: all in which tp is the fastest, of axes with several ranks.
std::vector<std::string> OrdersOn(const std::vector<std::string>& said, int64_t dp, int64_t cp,
                                  int64_t pp);

// The plans of a space that are worth a compilation, in a fixed order (tp, pp,
// vpp, mb, recompute, zero, sp, ep, others: outermost first), and how many were
// left out for which reason. dp is always written; cp and its type come after ep.
struct Enumeration {
  std::vector<ShortForm> plans;
  std::map<std::string, int64_t> excluded;  // reason -> plans
};

// `context.global_batch` must be set. Equal plans said twice (zero=1 with
// dp=1, sp with tp=1, vpp with pp=1) are listed once and not counted. Errors: more than a
// million plans, and a batch of more tokens than anyone trains on in a step.
absl::StatusOr<Enumeration> EnumeratePlans(const SearchSpace& space, const PlanContext& context,
                                           const SearchBounds& bounds);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_SPACE_H_
