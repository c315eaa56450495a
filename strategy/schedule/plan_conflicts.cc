#include "strategy/schedule/plan_conflicts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

using Mode = PipelineMode;
using Trait = PlanTrait;

// What a trait does not go with, and what to do instead.
struct Row {
  Trait trait;
  std::set<Mode> refused_with;
  absl::string_view what, remedy;  // `what` is empty where the plan has a word for it
  absl::string_view why = "";      // where it is not only left for later
};

const std::vector<Row>& Table() {
  static const auto* table = new std::vector<Row>{
      // Blocks that gather parameters and reduce gradients themselves.
      {Trait::kShardsGradients, {Mode::kInBackward}, "", "Use zero=1"},
      {Trait::kOffloadsActivations,
       {Mode::kSpreadVocabulary, Mode::kPairs},
       "offload=activations",
       "Leave it out"},
      {Trait::kOffloadsOptimizer,
       {Mode::kTwoCopies, Mode::kInBackward, Mode::kSpreadVocabulary},
       "offload=optimizer",
       "Leave it out"},
      {Trait::kOffloadsParameters, {Mode::kSpreadVocabulary}, "offload=param", "Leave it out"},
      {Trait::kPrefetchesParameters,
       {Mode::kPostValidated},
       "overlap=param",
       "Leave `param` out of `overlap`"},
      {Trait::kFreshGradients,
       {Mode::kSplitBackward, Mode::kSpreadVocabulary},
       "",
       "Use `--profile megatron-core`"},
      {Trait::kChunks,
       {Mode::kSpreadVocabulary},
       "",
       "Use vpp=1, or schedule=zbvhalf",
       "which has no order for such chunks of layers"},
      {Trait::kOtherSchedule,
       {Mode::kSpreadVocabulary},
       "",
       "Use schedule=1f1b, or zbvhalf or zbvmin with vocab1 or vocab2",
       "which is an order of its own"},
      {Trait::kCuts, {Mode::kSpreadVocabulary}, "`stages`", "Say what stages hold by `layout`"},
      {Trait::kSyncsEach, {Mode::kSpreadVocabulary}, "sync=each", "Use sync=last"},
      {Trait::kJoinedLayers,
       {Mode::kSpreadVocabulary},
       "layers that are joined",
       "Leave `uniform` and `unit` out"},
      {Trait::kOtherStepTime, {Mode::kSpreadVocabulary}, "", "Use optimizer=at-end"},
      {Trait::kMakesPairs,
       {Mode::kSpreadVocabulary},
       "pairs of forward and backward passes (`overlap=ep`)",
       "Leave `ep` out of `overlap`"},
      {Trait::kRanks,
       {Mode::kSpreadVocabulary, Mode::kPairs},
       "nodes on some ranks (`on`)",
       "Leave them out"},
      {Trait::kStagePlaces,
       {Mode::kTurns, Mode::kTwoCopies, Mode::kPostValidated, Mode::kInBackward,
        Mode::kSpreadVocabulary, Mode::kPairs},
       "stages with meshes or devices of their own",
       "Leave `mesh` and `devices` out of `stages`"},
      {Trait::kNodeHomes,
       {Mode::kTwoCopies, Mode::kInBackward, Mode::kSpreadVocabulary, Mode::kPairs},
       "nodes with homes of their own",
       "Leave them out"},
      {Trait::kMovesActivations,
       {Mode::kPairs},
       "activations with a home of their own",
       "Leave that home out"},
      {Trait::kSharedByChunks,
       {Mode::kTurns, Mode::kTwoCopies, Mode::kSpreadVocabulary},
       "",
       "Use zero=1",
       "for its gradient would be reduced behind one chunk and made again by the other"},
      {Trait::kUntrained,
       {Mode::kSpreadVocabulary},
       "weights that are not trained (`train`, `lora`)",
       "Leave them out"},
      {Trait::kNodes, {Mode::kSpreadVocabulary}, "nodes below the root", "Leave them out"},
  };
  return *table;
}

// Whether there is an order of its layers beside a vocabulary that is spread (VocabularySchedule).
bool TakesVisits(const PlanOptions& o) {
  const bool block = o.schedule == Schedule::kZbVHalf || o.schedule == Schedule::kZbVMin;
  return block && o.vocab_parallel != VocabParallel::kInterlaced;
}

bool Has(Trait trait, const PlanOptions& o, const SoftwareProfile& profile) {
  switch (trait) {
    case Trait::kShardsGradients:
      return o.most_zero() >= 2;
    case Trait::kOffloadsActivations:
      return o.offload.count(Offload::kActivations) > 0;
    case Trait::kOffloadsOptimizer:
      return o.offload.count(Offload::kOptimizer) > 0;
    case Trait::kOffloadsParameters:
      return o.offload.count(Offload::kParameters) > 0;
    case Trait::kPrefetchesParameters:
      return o.overlap.count(Overlap::kParam) > 0;
    case Trait::kFreshGradients:
      return profile.update.fresh_gradients;
    case Trait::kChunks:
      return o.vpp > 1 && !TakesVisits(o);
    case Trait::kOtherSchedule:
      return o.schedule != Schedule::k1f1b && !TakesVisits(o);
    case Trait::kCuts:
      return !o.cuts.empty();
    case Trait::kSyncsEach:
      return o.sync_each || o.sync_whole_each;
    case Trait::kJoinedLayers:
      return o.recompute_joined > 1 || o.unit_layers > 1;
    case Trait::kOtherStepTime:
      return o.optimizer != StepTime::kAtEnd;
    case Trait::kMakesPairs:
      return o.makes_pairs();
    default:
      return false;
  }
}

std::string What(const Row& row, const PlanOptions& o, const SoftwareProfile& profile) {
  const std::string zero = absl::StrCat("zero=", o.most_zero());
  switch (row.trait) {
    case Trait::kShardsGradients:
      return zero;
    case Trait::kSharedByChunks:
      return absl::StrCat(zero, " where chunks of one stage share a parameter (tied embeddings)");
    case Trait::kFreshGradients:
      return absl::StrCat("the profile ", profile.name,
                          ", whose gradients are made anew in every iteration,");
    case Trait::kChunks:
      return absl::StrCat("vpp=", o.vpp);
    case Trait::kOtherSchedule:
      return absl::StrCat("schedule=", kScheduleNames[o.schedule]);
    case Trait::kOtherStepTime:
      return absl::StrCat("optimizer=", kStepTimeNames[o.optimizer]);
    default:
      return std::string(row.what);
  }
}

std::set<Mode> ModesOf(const PlanOptions& o) {
  std::set<Mode> modes;
  if (o.splits_backward()) modes.insert(Mode::kSplitBackward);
  if (RunsBothWays(o.schedule) || Turns(o.schedule) || !o.schedule_table.empty()) {
    const StagePlacement placement = PlacementOf(o);
    if (!placement.Loops()) {
      modes.insert(placement.copies() > 1 ? Mode::kTwoCopies : Mode::kTurns);
    }
  }
  if (o.optimizer == StepTime::kPostValidated) modes.insert(Mode::kPostValidated);
  if (o.optimizer == StepTime::kInBackward) modes.insert(Mode::kInBackward);
  if (o.spreads_vocabulary()) modes.insert(Mode::kSpreadVocabulary);
  if (o.makes_pairs()) modes.insert(Mode::kPairs);
  return modes;
}

struct ModeText {
  std::string with, remedy;
};

ModeText TextOf(Mode mode, const PlanOptions& o) {
  const std::string schedule = o.schedule == Schedule::kTable
                                   ? "a table that says so"
                                   : absl::StrCat("schedule=", kScheduleNames[o.schedule]);
  switch (mode) {
    case Mode::kSplitBackward:
      return {absl::StrCat(schedule, ", which makes gradients of weights in a pass of their own"),
              "use schedule=1f1b"};
    case Mode::kTurns:
      return {absl::StrCat(schedule, ", whose layers turn back"), "use schedule=1f1b"};
    case Mode::kTwoCopies:
      return {absl::StrCat(schedule, ", whose stages hold two copies"), "use schedule=1f1b"};
    case Mode::kSpreadVocabulary:
      return {absl::StrCat("vocab_parallel=", kVocabParallelNames[o.vocab_parallel]),
              "use vocab_parallel=redis"};
    case Mode::kPairs:
      return {"pairs of forward and backward passes (`overlap=ep`)", "leave `ep` out of `overlap`"};
    default:
      return {absl::StrCat("optimizer=", kStepTimeNames[o.optimizer]), "use optimizer=at-end"};
  }
}

}  // namespace

bool GoesWith(PlanTrait trait, PipelineMode mode) {
  return std::none_of(Table().begin(), Table().end(), [&](const Row& row) {
    return row.trait == trait && row.refused_with.count(mode) > 0;
  });
}

absl::Status CheckConflicts(const PlanOptions& options, const SoftwareProfile& profile,
                            const std::set<PlanTrait>& more) {
  const std::set<Mode> modes = ModesOf(options);
  if (modes.empty()) return absl::OkStatus();
  for (const Row& row : Table()) {
    if (more.count(row.trait) == 0 && !Has(row.trait, options, profile)) continue;
    for (const Mode mode : row.refused_with) {
      if (modes.count(mode) == 0) continue;
      const ModeText text = TextOf(mode, options);
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: ", What(row, options, profile), " with ", text.with,
          row.why.empty() ? "" : ", ", row.why, ". ", row.remedy, ", or ", text.remedy, "."));
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
