#include "strategy/nodes/stage_cuts.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// stem (conv1, act1) -> four layers (a, b.fc) -> head (shape, fc)
ModelGraph Net() {
  ModelBuilder model("net");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", 4));
  EXPECT_OK(model.AddDim("hidden", 8));
  const std::vector<std::string> dims = {"batch", "seq", "hidden"};
  const OpRulePtr same =
      std::make_shared<const OpRule>(*OpRule::Parse("same(x) -> (y) { y[b,s,h] = x[b,s,h] }"));
  const auto module = [&](const std::string& name, const std::vector<std::string>& ops) {
    ModuleBuilder body = model.Module(name);
    EXPECT_OK(name == "stem" ? body.Input("x", DType::kCompute, dims) : body.InPort("x", dims));
    std::string last = "x";
    for (const std::string& op : ops) {
      if (op == "shape") {
        EXPECT_OK(body.Call(op, same, {last}, {op + ".y"}, {}));
      } else {
        EXPECT_OK(body.Parameter(op + ".w", {"hidden", "hidden"}));
        EXPECT_OK(body.Call(op, "linear", {last, op + ".w"}, {op + ".y"}));
      }
      last = op + ".y";
    }
    EXPECT_OK(body.OutPort(last));
    return body;
  };
  EXPECT_OK(model.Append("stem", module("stem", {"conv1", "conv2"})));
  EXPECT_OK(model.Append("layers", module("layer", {"a", "b.fc"}), 4));
  EXPECT_OK(model.Append("head", module("head", {"shape", "fc"})));
  return *model.Build();
}

using Paths = std::vector<std::vector<std::string>>;

std::vector<StageNodes> Stages(const Paths& paths) {
  std::vector<StageNodes> stages;
  for (const std::vector<std::string>& nodes : paths) stages.push_back({nodes});
  return stages;
}

std::vector<ModelCut> CutsOf(const Paths& stages) {
  const auto cuts = StageCuts(Net(), Stages(stages));
  EXPECT_OK(cuts);
  return cuts.ok() ? *cuts : std::vector<ModelCut>();
}

std::string ErrorOf(const Paths& stages) {
  return std::string(StageCuts(Net(), Stages(stages)).status().message());
}

TEST(StageCutsTest, NodesAreModulesLayersRangesAndOps) {
  EXPECT_THAT(CutsOf({{"stem", "layers", "head"}}), IsEmpty());
  EXPECT_THAT(CutsOf({{"stem", "layers[0:2]"}, {"layers[2:]", "head"}}),
              ElementsAre(ModelCut{1, 2, 0}));
  EXPECT_THAT(CutsOf({{"stem.conv1"},
                      {"stem.conv2", "layers.0", "layers.1.a"},
                      {"layers.1.b", "layers[2,3]", "head"}}),
              ElementsAre(ModelCut{0, 0, 1}, ModelCut{1, 1, 1}));
}

TEST(StageCutsTest, SaysWhatIsMissingDoubledOutOfOrderOrNothing) {
  EXPECT_EQ(
      ErrorOf({{"stem", "layers[0:2]"}, {"layers[3:]", "head"}}),
      "`stages`: no stage holds `layers.2.a` to `layers.2.b.fc`, 2 ops. Stages are all of the "
      "model: add them to `stages[0]` or the next.");
  EXPECT_EQ(ErrorOf({{"stem", "layers[0:3]"}, {"layers[2:]", "head"}}),
            "`stages[1]`: `layers[2:]` has `layers.2.a`, which `layers[0:3]` of `stages[0]` has "
            "already. Every op is on one stage: leave it out of one.");
  EXPECT_EQ(ErrorOf({{"stem", "layers[::2]"}, {"layers[1::2]", "head"}}),
            "`stages[0]`: `layers[::2]` has `layers.2.a`, which follows `layers.1.b.fc` of "
            "`stages[1]`. Stages are pieces of the model, one behind the other: list them in its "
            "order.");
  EXPECT_EQ(ErrorOf({{"layers", "head"}, {"stem"}}),
            "`stages[1]`: `stem` has `stem.conv1`, with which the model begins. List the stages in "
            "the order of the model.");
  EXPECT_EQ(ErrorOf({{"stem", "layers"}, {"haed"}}),
            "`stages[1]`: nothing in the model is at `haed`. Did you mean `head`?");
  EXPECT_EQ(ErrorOf({{"stem", "layers[0:4]"}, {"layers[4:8]", "head"}}),
            "`stages[1]`: `layers[4:8]`: `layers` has no layer 4: it has 4, 0 to 3, or -4 to -1 "
            "from the end.");
}

TEST(StageCutsTest, RefusesAStageThatOnlyRenamesTensors) {
  EXPECT_EQ(ErrorOf({{"stem", "layers"}, {"head.shape"}, {"head.fc"}}),
            "`stages[1]` has no work: `head.shape` only give tensors another shape. Add what comes "
            "before or after.");
}

TEST(StageCutsTest, TextOfStagesNamesTheirFirstAndLastOps) {
  const ModelGraph graph = Net();
  EXPECT_EQ(StagesText(graph, {{0, 0, 1}, {1, 2, 1}}),
            "stem.conv1 | stem.conv2..layers.2.a | layers.2.b.fc..head.fc");
}

}  // namespace
}  // namespace plancast
