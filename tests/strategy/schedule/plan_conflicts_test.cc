// What goes with what: each way of running a pipeline with each trait of a plan.

#include "strategy/schedule/plan_conflicts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr PipelineMode kModes[] = {PipelineMode::kSplitBackward, PipelineMode::kTurns,
                                   PipelineMode::kTwoCopies,     PipelineMode::kPostValidated,
                                   PipelineMode::kInBackward,    PipelineMode::kSpreadVocabulary,
                                   PipelineMode::kPairs};
constexpr int kTraits = static_cast<int>(PlanTrait::kNodes) + 1;

PlanOptions PlanOf(PipelineMode mode) {
  PlanOptions options;
  options.pp = 4;
  options.schedule = Schedule::k1f1b;
  options.micro_batches = 8;
  switch (mode) {
    case PipelineMode::kSplitBackward:
      options.schedule = Schedule::kZbH1;
      break;
    case PipelineMode::kTurns:
      options.schedule = Schedule::kHanayo;
      options.vpp = 2;
      break;
    case PipelineMode::kTwoCopies:
      options.schedule = Schedule::kChimera;
      break;
    case PipelineMode::kPostValidated:
      options.optimizer = StepTime::kPostValidated;
      break;
    case PipelineMode::kInBackward:
      options.optimizer = StepTime::kInBackward;
      break;
    case PipelineMode::kSpreadVocabulary:
      options.vocab_parallel = VocabParallel::kVocab2;
      break;
    case PipelineMode::kPairs:
      options.overlap.insert(Overlap::kEp);
      break;
  }
  return options;
}

// As far as options and profile show it.
void Give(PlanTrait trait, PlanOptions* o, SoftwareProfile* profile, std::set<PlanTrait>* more) {
  switch (trait) {
    case PlanTrait::kShardsGradients:
      o->zero = 2;
      break;
    case PlanTrait::kOffloadsActivations:
      o->offload.insert(Offload::kActivations);
      break;
    case PlanTrait::kOffloadsOptimizer:
      o->offload.insert(Offload::kOptimizer);
      break;
    case PlanTrait::kOffloadsParameters:
      o->offload.insert(Offload::kParameters);
      break;
    case PlanTrait::kPrefetchesParameters:
      o->overlap.insert(Overlap::kParam);
      break;
    case PlanTrait::kFreshGradients:
      profile->update.fresh_gradients = true;
      break;
    case PlanTrait::kChunks:
      o->vpp = 2;
      break;
    case PlanTrait::kOtherSchedule:
      o->schedule = Schedule::kGpipe;
      break;
    case PlanTrait::kCuts:
      o->cuts.emplace_back();
      break;
    case PlanTrait::kSyncsEach:
      o->sync_each = true;
      break;
    case PlanTrait::kJoinedLayers:
      o->unit_layers = 2;
      break;
    case PlanTrait::kOtherStepTime:
      o->optimizer = StepTime::kPostValidated;
      break;
    default:
      more->insert(trait);
  }
}

// A trait that would say another mode than the one asked about.
bool IsAMode(PlanTrait trait) {
  return trait == PlanTrait::kOtherSchedule || trait == PlanTrait::kOtherStepTime;
}

TEST(PlanConflictsTest, EachPairIsRefusedAsTheTableSays) {
  int refused = 0;
  for (const PipelineMode mode : kModes) {
    for (int t = 0; t < kTraits; ++t) {
      const auto trait = static_cast<PlanTrait>(t);
      if (IsAMode(trait) && mode != PipelineMode::kSpreadVocabulary) continue;
      SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " trait " << t);
      PlanOptions options = PlanOf(mode);
      SoftwareProfile profile;
      std::set<PlanTrait> more;
      Give(trait, &options, &profile, &more);
      const absl::Status status = CheckConflicts(options, profile, more);
      if (GoesWith(trait, mode)) {
        EXPECT_OK(status);
        continue;
      }
      ++refused;
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                                   AllOf(StartsWith("not supported yet: "), HasSubstr(" with "),
                                         AnyOf(HasSubstr(", or use "), HasSubstr(", or leave ")),
                                         EndsWith("."))));
    }
  }
  EXPECT_GT(refused, 30);
}

TEST(PlanConflictsTest, EveryTraitIsInTheTable) {
  for (int t = 0; t < kTraits; ++t) {
    bool any = false;
    for (const PipelineMode mode : kModes) {
      any = any || !GoesWith(static_cast<PlanTrait>(t), mode);
    }
    EXPECT_TRUE(any) << t;
  }
}

TEST(PlanConflictsTest, PlansWithoutAModeAreNotAsked) {
  PlanOptions options;
  options.zero = 3;
  EXPECT_OK(CheckConflicts(options, SoftwareProfile(), {PlanTrait::kRanks, PlanTrait::kNodeHomes}));
}

TEST(PlanConflictsTest, SaysWhatAndWhatToDo) {
  PlanOptions options = PlanOf(PipelineMode::kPostValidated);
  options.overlap.insert(Overlap::kParam);
  EXPECT_EQ(std::string(CheckConflicts(options, SoftwareProfile(), {}).message()),
            "not supported yet: overlap=param with optimizer=post-validated. Leave `param` out of "
            "`overlap`, or use optimizer=at-end.");
}

TEST(PlanConflictsTest, SaysWhyWhereThereIsAReason) {
  PlanOptions options = PlanOf(PipelineMode::kSpreadVocabulary);
  options.vpp = 2;
  EXPECT_EQ(std::string(CheckConflicts(options, SoftwareProfile()).message()),
            "not supported yet: vpp=2 with vocab_parallel=vocab2, which has no order for such "
            "chunks of layers. Use vpp=1, or schedule=zbvhalf, or use vocab_parallel=redis.");
}

TEST(PlanConflictsTest, LayersMayTurnBackBesideASpreadVocabularyThatIsVisited) {
  PlanOptions options = PlanOf(PipelineMode::kSpreadVocabulary);
  options.vpp = 2;
  for (const Schedule schedule : {Schedule::kZbVHalf, Schedule::kZbVMin, Schedule::kZbV}) {
    options.schedule = schedule;
    for (const VocabParallel how :
         {VocabParallel::kVocab1, VocabParallel::kVocab2, VocabParallel::kInterlaced}) {
      options.vocab_parallel = how;
      const bool visits = schedule != Schedule::kZbV && how != VocabParallel::kInterlaced;
      EXPECT_EQ(CheckConflicts(options, SoftwareProfile()).ok(), visits)
          << kScheduleNames[schedule] << " " << kVocabParallelNames[how];
    }
  }
}

}  // namespace
}  // namespace plancast
