#include "planner/fit/short_orders.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/program_plan.h"
#include "gtest/gtest.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

// A plan's order with so many micro-batches, and all that it is made of.
class Orders {
 public:
  Orders(Schedule schedule, int64_t pp, int64_t vpp, int64_t micro_batches, VocabParallel vocab) {
    options_.schedule = schedule;
    options_.pp = pp;
    options_.vpp = vpp;
    options_.micro_batches = micro_batches;
    options_.vocab_parallel = vocab;
    request_.options = &options_;
    plan_.request = &request_;
    plan_.placement = PlacementOf(options_);
  }

  void ExpectEnough() {
    const int64_t few = EnoughMicroBatches(options_);
    if (few == options_.micro_batches) return;
    PlanOrder made(plan_.Schedule(few), options_.pp);
    PlanOrder all(plan_.Schedule(options_.micro_batches), options_.pp);
    const std::string text = absl::StrCat(
        kScheduleNames[options_.schedule], " ", kVocabParallelNames[options_.vocab_parallel],
        " pp=", options_.pp, " vpp=", options_.vpp, " micro-batches ", options_.micro_batches);
    EXPECT_EQ(made.Shrinks(), all.Shrinks()) << text;
    for (int64_t s = 0; s < options_.pp; ++s) {
      EXPECT_EQ(s > 0 && made.AsBefore(s), s > 0 && all.AsBefore(s)) << text << " stage " << s;
      EXPECT_EQ(made.Steps(s).steps, all.Steps(s).steps) << text << " stage " << s;
      EXPECT_EQ(made.Steps(s).turn_begin, all.Steps(s).turn_begin) << text << " stage " << s;
      EXPECT_EQ(made.Placed(s).steps, all.Placed(s).steps) << text << " stage " << s;
      EXPECT_EQ(made.Placed(s).turn_end, all.Placed(s).turn_end) << text << " stage " << s;
    }
    fewer_ = true;
  }
  bool fewer() const { return fewer_; }

 private:
  PlanOptions options_;
  CompileRequest request_;
  ProgramPlan plan_;
  bool fewer_ = false;
};

TEST(ShortOrders, FewMicroBatchesOfARuleAreEnough) {
  int fewer = 0;
  for (const Schedule schedule :
       {Schedule::kNone, Schedule::k1f1b, Schedule::kEager1f1b, Schedule::kInterleaved,
        Schedule::kZbH1, Schedule::kZb1p, Schedule::kZb2p, Schedule::kZbV, Schedule::kZbVHalf,
        Schedule::kZbVMin, Schedule::kDualPipe, Schedule::kDualPipeV, Schedule::kHanayo,
        Schedule::kChimera}) {
    for (const int64_t p : {1, 2, 3, 4, 5, 8, 12, 16, 24}) {
      if ((p == 1) != (schedule == Schedule::kNone)) continue;
      const bool even = RunsBothWays(schedule) || Turns(schedule);
      if (even && p % 2 != 0) continue;
      for (const int64_t v : {1, 2, 4, 6}) {
        const bool fits = schedule == Schedule::kInterleaved ? v > 1
                          : schedule == Schedule::kHanayo    ? v % 2 == 0
                                                             : v == UsualChunks(schedule);
        if (!fits) continue;
        for (const int64_t more : {5, 6, 7, 8, 16, 40, 41, 42, 43, 101}) {
          Orders orders(schedule, p, v, 4 * p + more, VocabParallel::kEnds);
          orders.ExpectEnough();
          fewer += orders.fewer() ? 1 : 0;
          Orders rounds(schedule, p, v, (6 + more) * p, VocabParallel::kEnds);
          rounds.ExpectEnough();
          fewer += rounds.fewer() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(fewer, 1000);
}

TEST(ShortOrders, SoTheyAreWithASpreadVocabulary) {
  for (const VocabParallel how :
       {VocabParallel::kVocab1, VocabParallel::kVocab2, VocabParallel::kInterlaced}) {
    for (const int64_t p : {2, 3, 4, 8, 16}) {
      for (const int64_t more : {9, 10, 23, 50}) {
        Orders orders(Schedule::k1f1b, p, 1, 4 * p + more, how);
        orders.ExpectEnough();
        EXPECT_TRUE(orders.fewer());
        if (how == VocabParallel::kInterlaced || p % 2 != 0) continue;
        for (const Schedule schedule : {Schedule::kZbVHalf, Schedule::kZbVMin}) {
          Orders turns(schedule, p, 2, 4 * p + more, how);
          turns.ExpectEnough();
        }
      }
    }
  }
}

TEST(ShortOrders, OtherRulesNeedAll) {
  PlanOptions options;
  options.pp = 4;
  options.micro_batches = 500;
  for (const Schedule schedule : {Schedule::kGpipe, Schedule::kBreadthFirst, Schedule::kOngoing}) {
    options.schedule = schedule;
    EXPECT_EQ(EnoughMicroBatches(options), 500);
  }
  options.schedule = Schedule::kInterleaved;
  options.micro_batches = 501;  // in groups of four and five
  EXPECT_EQ(EnoughMicroBatches(options), 501);
}

}  // namespace
}  // namespace plancast
