#include "compiler/body/differentiate.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/bind/bind.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A differentiated body with what its indices mean.
struct Result {
  BoundModel bound;
  DifferentiatedBody body;

  // `B fc2`, `W fc2`, `R act`, ...
  std::vector<std::string> Backward() const {
    std::vector<std::string> steps;
    for (const OpStep& step : body.backward) {
      const char* part = step.part == Part::kBackward     ? "B "
                         : step.part == Part::kWeightGrad ? "W "
                                                          : "R ";
      steps.push_back(absl::StrCat(part, bound.graph.bodies[0].ops[step.op].name));
    }
    return steps;
  }
  std::vector<std::string> Saved() const {
    std::vector<std::string> names;
    for (const TensorRef& ref : body.saved) {
      names.push_back(FactsOf(bound.graph, bound.graph.bodies[0], ref).name);
    }
    return names;
  }
};

Result Differentiated(PlanUnderTest& plan, const std::set<std::string>& fusions = {}) {
  Result result;
  absl::StatusOr<BoundModel> bound = Bind(plan.graph(), plan.tree(), plan.options());
  EXPECT_OK(bound.status());
  result.bound = *std::move(bound);
  Session session;
  absl::StatusOr<DifferentiatedBody> body =
      DifferentiateBody(result.bound.graph, result.bound.bodies[0], fusions, session);
  EXPECT_OK(body.status());
  result.body = *std::move(body);
  return result;
}

PlanUnderTest Mlp() {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"ffn", 16}});
  BodyWriter& body = plan.Segment("layers", 2);
  int x = body.Op1("norm", "rms_norm", {body.InPort("x", {"batch", "seq", "hidden"})});
  x = body.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  body.Fusion("bias_gelu");
  x = body.Op1("bias", "bias_add", {x}, {{"h", "ffn"}});
  x = body.Op1("act", "gelu", {x});
  body.Fusion("");
  body.OutPort(body.Op1("fc2", "linear", {x}, {{"k", "ffn"}}));
  return plan;
}

TEST(DifferentiateTest, GoesBackwardInputGradientsFirst) {
  PlanUnderTest plan = Mlp();
  EXPECT_THAT(Differentiated(plan).Backward(),
              ElementsAre("B fc2", "W fc2", "B act", "B bias", "W bias", "B fc1", "W fc1", "B norm",
                          "W norm"));
}

TEST(DifferentiateTest, AKernelMayGiveTheGradientsOfInputAndParametersTogether) {
  PlanUnderTest plan = Mlp();
  EXPECT_THAT(Differentiated(plan, {"parameter_gradients"}).Backward(),
              ElementsAre("B fc2", "W fc2", "B act", "B bias", "B fc1", "W fc1", "B norm"));
}

TEST(DifferentiateTest, SavesWhatBackwardStepsReadOnce) {
  PlanUnderTest plan = Mlp();
  EXPECT_THAT(Differentiated(plan).Saved(),
              UnorderedElementsAre("act.y", "bias.y", "norm.y", "x", "norm/rstd"));
}

TEST(DifferentiateTest, AFusedKernelBuildsItsInputAgain) {
  PlanUnderTest plan = Mlp();
  EXPECT_THAT(Differentiated(plan, {"bias_gelu"}).Saved(),
              UnorderedElementsAre("act.y", "fc1.y", "norm.y", "x", "norm/rstd"));
}

TEST(DifferentiateTest, FullRecomputeSavesTheInputAndReplaysFirst) {
  PlanUnderTest plan = Mlp();
  plan.Recomputing(Recompute::kFull);
  const Result result = Differentiated(plan);
  EXPECT_THAT(result.Saved(), ElementsAre("x"));
  const std::vector<std::string> steps = result.Backward();
  EXPECT_THAT(std::vector<std::string>(steps.begin(), steps.begin() + 5),
              ElementsAre("R norm", "R fc1", "R bias", "R act", "R fc2"));
}

// As a checkpointed module: what others read of it stays, what is inside goes.
TEST(DifferentiateTest, RecomputedOpsAreReplayedBeforeTheirFirstGradient) {
  PlanUnderTest plan = Mlp();
  for (const char* path : {"layers.*.bias", "layers.*.act"}) {
    ASSERT_OK_AND_ASSIGN(Directives * node, plan.tree().Node(path));
    node->recompute = Recompute::kFull;
  }
  const Result result = Differentiated(plan);
  EXPECT_THAT(result.Saved(), UnorderedElementsAre("act.y", "fc1.y", "norm.y", "x", "norm/rstd"));
  const std::vector<std::string> steps = result.Backward();
  EXPECT_THAT(std::vector<std::string>(steps.begin(), steps.begin() + 5),
              ElementsAre("B fc2", "W fc2", "R bias", "R act", "B act"));
}

TEST(DifferentiateTest, InputsOfTheModelWantNoGradient) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"vocab", 32}});
  BodyWriter& body = plan.Segment("embedding");
  body.OutPort(
      body.Op1("tokens", "embedding", {body.Input("ids", DType::kInt64, {"batch", "seq"})}));
  const Result result = Differentiated(plan);
  EXPECT_THAT(result.Backward(), ElementsAre("W tokens"));
  EXPECT_THAT(result.Saved(), IsEmpty());  // the ids are fed in again
}

TEST(DifferentiateTest, AResultThatNobodyReadsIsTheLoss) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"vocab", 32}});
  BodyWriter& body = plan.Segment("head");
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  const int logits = body.Op1("logits", "linear", {x}, {{"n", "vocab"}});
  body.Op("loss", "cross_entropy", {logits, body.Input("ids", DType::kInt64, {"batch", "seq"})});
  const Result result = Differentiated(plan);
  ASSERT_FALSE(result.body.backward.empty());
  EXPECT_THAT(result.body.backward[0].seeds, ElementsAre(0));
}

}  // namespace
}  // namespace plancast
