#ifndef PLANCAST_STRATEGY_CONTEXT_CHOOSE_CONTEXT_PARALLEL_H_
#define PLANCAST_STRATEGY_CONTEXT_CHOOSE_CONTEXT_PARALLEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// From how many tokens on searches and advice cut a sequence over cp, if nobody says.
inline constexpr int64_t kLongSequence = 16'384;

// Of the model; 0: unknown or decided elsewhere, and not checked.
struct AttentionSizes {
  int64_t heads = 0, seq = 0;
  bool has_sequence = true;
};

// Settles how attention works over cp ranks, behind the mesh and tensor parallelism. `notes`: what
// has no effect; null: nobody reads it. Errors: a model without a sequence, a sequence that does
// not divide, fewer heads than a type cuts, hybrids that do not fit cp.
absl::Status ChooseContextParallel(const ShortForm& form, const AttentionSizes& model,
                                   const SoftwareProfile& profile, PlanOptions* options,
                                   std::vector<std::string>* notes);

// Why overlap=cp changes nothing, to go on with `overlap=cp has no effect`; empty: it takes effect.
std::string IdleContextOverlap(const PlanOptions& options, const SoftwareProfile& profile);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_CONTEXT_CHOOSE_CONTEXT_PARALLEL_H_
