// Whole bodies in the prime field: what devices do for a layer, relayouts included, equals what
// one device does, whatever nodes split.

#include "tests/compiler/body/plan_oracle.h"
#include "tests/compiler/body/check_bodies.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/plan_bodies.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

TransformerConfig Small(std::mt19937_64& random) {
  TransformerConfig config;
  config.name = "small";
  config.layers = 2;
  config.hidden = 8;
  config.heads = 4;
  config.kv_heads = 4 >> (random() % 2);
  config.head_dim = 2;
  config.ffn = 8;
  config.vocab = 8;
  config.seq = 8;
  config.max_positions = 8;
  config.mlp = random() % 2 ? Mlp::kGelu : Mlp::kSwiglu;
  config.norm = random() % 2 ? Norm::kLayerNorm : Norm::kRmsNorm;
  config.position = random() % 2 ? Position::kLearned : Position::kRope;
  config.parallel_residual = random() % 4 == 0;
  return config;
}

TEST(PlanOracleTest, TransformersEqualOneDevice) {
  const uint64_t seed = TestSeed(3);
  std::mt19937_64 random(seed);
  size_t loops = 0;
  for (int i = 0; i < 48 && !HasFailure(); ++i) {
    PlanUnderTest plan = PlanUnderTest::Of(Small(random), random() % 2 == 0, random() % 2 == 0);
    plan.Dp(random() % 2 + 1).Tp(2).MicroBatches(2, 1);
    if (random() % 2) plan.Sp();
    if (random() % 2) plan.Recomputing(Recompute::kFull);
    for (const char* path : {"layers.*.attn", "layers[1]", "layers.*.mlp"}) {
      const std::vector<std::vector<std::string>> splits = {
          {"seq"}, {"heads", "ffn"}, {}, {"hidden"}};
      if (random() % 3 == 0) plan.Split(path, "tp", splits[random() % splits.size()]);
    }
    if (random() % 2) {  // parts of keys and values, of rows of products
      LoopDirective& loop = (*plan.tree().Node(""))->loop;
      loop.communicate[LoopDirective::kAll] = LoopDirective::kAll;
      const int how = static_cast<int>(random() % 4);
      if (how > 1) loop.rotate[LoopDirective::kAll] = {"tp"};
      if (how == 1) loop.pieces[LoopDirective::kAll] = 2;
    }
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i, ": ", plan.tree().ToJson()));
    ASSERT_OK_AND_ASSIGN(const CheckedBodies checked, CheckBodies(plan.Request(), seed + i));
    EXPECT_EQ(checked.wrong, "");
    loops += checked.loops;
  }
  EXPECT_GT(loops, 8);
}

// A plan with one wrong step is found.
TEST(PlanOracleTest, FindsWhatIsMissing) {
  std::mt19937_64 random(1);
  PlanUnderTest plan = PlanUnderTest::Of(Small(random));
  plan.Tp(2).MicroBatches(2, 1);
  Session session;
  const auto compiled = CompileBodies(plan.Request(), session, nullptr);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const BoundModel& bound = (*compiled)->bound;
  int found = 0;
  for (size_t b = 0; b < bound.bodies.size(); ++b) {
    for (const bool backward : {false, true}) {
      const BodyPlan& whole = (*compiled)->bodies[b]->plan;
      const size_t steps = (backward ? whole.backward : whole.forward).size();
      for (size_t s = 0; s < steps; ++s) {
        BodyPlan broken = whole;
        PlanStep& step = (backward ? broken.backward : broken.forward)[s];
        if (step.kind != PlanStep::Kind::kRelayout) continue;
        // An all-reduce that is left out: every device goes on with its own part.
        step.relayout.steps.clear();
        EXPECT_NE(PlanOracle(bound.graph, bound.mesh, bound.bodies[b], broken, 5).Check(), "");
        ++found;
      }
    }
  }
  EXPECT_GT(found, 3);
}

}  // namespace
}  // namespace plancast
