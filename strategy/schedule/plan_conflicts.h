#ifndef PLANCAST_STRATEGY_SCHEDULE_PLAN_CONFLICTS_H_
#define PLANCAST_STRATEGY_SCHEDULE_PLAN_CONFLICTS_H_

#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Ways in which a pipeline runs that not everything goes with.
enum class PipelineMode : uint8_t {
  kSplitBackward,     // gradients of weights are a pass of their own
  kTurns,             // virtual stages are not placed in a loop
  kTwoCopies,         // of the model
  kPostValidated,     // StepTime
  kInBackward,        // StepTime
  kSpreadVocabulary,  // vocab1, vocab2, interlaced
  kPairs,             // of forward and backward passes
};

// What of a plan may not go with them. Those that options and profile do not show are for the
// caller to say.
enum class PlanTrait : uint8_t {
  kShardsGradients,  // zero 2 or 3, of the plan or of a node
  kOffloadsActivations,
  kOffloadsOptimizer,
  kOffloadsParameters,
  kPrefetchesParameters,  // overlap=param
  kFreshGradients,        // of the profile
  kChunks,                // vpp > 1, of layers that do not turn back
  kOtherSchedule,         // than those beside which stages meet for the vocabulary
  kCuts,                  // `stages`
  kSyncsEach,             // gradients reduced in each micro-batch
  kJoinedLayers,          // that run again, or are sharded, together
  kOtherStepTime,         // than at the end
  kMakesPairs,            // Mode::kPairs
  // By the caller:
  kRanks,             // nodes or homes on some ranks
  kStagePlaces,       // stages with meshes or devices of their own
  kNodeHomes,         // nodes with homes of their own
  kMovesActivations,  // nodes whose activations have one
  kSharedByChunks,    // gradients are sharded, and chunks of a stage share a parameter
  kUntrained,         // some weights are not trained
  kNodes,             // below the root
};

// Refuses, in words, the first trait of a plan that does not go with one of its modes: one table
// (plan_conflicts.cc) says which. `more`: traits that the caller knows of.
absl::Status CheckConflicts(const PlanOptions& options, const SoftwareProfile& profile,
                            const std::set<PlanTrait>& more = {});

// The table: whether a plan with this trait can run so.
bool GoesWith(PlanTrait trait, PipelineMode mode);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_PLAN_CONFLICTS_H_
