#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strategy/strategy_tree.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTree[] = R"json({
  "plan": "dp=2,tp=4",
  "nodes": {
    "": {"split": {"dp": ["batch"]}},
    "head": {"split": {"tp": []}},
    "layers.*.attn": {"split": {"dp": ["batch"], "tp": ["heads", ".k"]}, "recompute": "full", "home": "shard(dp)", "bucket": "25MB"}
  }
}
)json";

TEST(StrategyJsonTest, ReadsAndPrintsATree) {
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(kTree, "tree.json"));
  EXPECT_EQ(tree.ToJson(), kTree);
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_EQ(tree.DebugString(),
            "plan dp=2,tp=4\n"
            "root { split dp: batch; split tp: heads | ffn | shared_ffn | expert_ffn | vocab }\n"
            "head { split tp: - }\n"
            "layers.*.attn { split dp: batch; split tp: heads | .k; recompute: full; "
            "home: shard(dp); bucket: 25MB }\n");
}

TEST(StrategyJsonTest, APlanAloneIsATree) {
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree,
                       StrategyTree::FromJson(R"({"plan": "tp=4"})", "tree.json"));
  EXPECT_EQ(tree, StrategyTree::FromShortForm(*ParseShortForm("tp=4")));
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
}

TEST(StrategyJsonTest, OneDimNeedsNoList) {
  EXPECT_EQ(*StrategyTree::FromJson(R"({"nodes": {"head": {"split": {"tp": "vocab"}}}})", "a"),
            *StrategyTree::FromJson(R"({"nodes": {"head": {"split": {"tp": ["vocab"]}}}})", "b"));
}

TEST(StrategyJsonTest, UnitsAreReadAndPrinted) {
  constexpr char kUnits[] = R"json({
  "plan": "zero=3,unit=2",
  "nodes": {
    "layers[0:4]": {"unit": 4}
  }
}
)json";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(kUnits, "tree.json"));
  EXPECT_EQ(tree.ToJson(), kUnits);
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_THAT(tree.DebugString(), HasSubstr("layers[0:4] { unit: 4 }\n"));
  EXPECT_TRUE(tree.SaysUnits());
  EXPECT_THAT(tree.Explain("layers.3.mlp", 8), IsOkAndHolds(HasSubstr("unit: 4")));
  EXPECT_THAT(tree.Explain("layers.4.mlp", 8),
              IsOkAndHolds(AllOf(HasSubstr("unit: 2"), HasSubstr("from root\n"))));
  EXPECT_THAT(tree.Explain("head"), IsOkAndHolds(Not(HasSubstr("unit"))));
}

TEST(StrategyJsonTest, TheRootSaysUnitsAsThePlanDoes) {
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree,
                       StrategyTree::FromJson(R"({"nodes": {"": {"unit": 3}}})", "tree"));
  EXPECT_EQ(tree.PlanOfRoot().unit, 3);
  EXPECT_FALSE(tree.SaysUnits());
}

TEST(StrategyJsonTest, PiecesAreReadAndPrinted) {
  constexpr char kPieces[] = R"json({
  "plan": "tp=8",
  "nodes": {
    "": {"micro_batches": 16, "max_ongoing": [2, 1]},
    "head": {"micro_batches": 8, "max_ongoing": 1},
    "layers.*": {"micro_batches": 2},
    "layers.*.mlp": {"micro_batches": 4},
    "layers.3.mlp": {"micro_batches": 1}
  }
}
)json";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(kPieces, "tree.json"));
  EXPECT_EQ(tree.ToJson(), kPieces);
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_EQ(tree.PlanOfRoot().accum, 16);
  EXPECT_THAT(tree.Explain("head.loss"), IsOkAndHolds(HasSubstr("micro_batches: 8, 1 at once")));
  // Pieces of pieces: of nodes as deep as each other the most specific one decides.
  ASSERT_OK_AND_ASSIGN(const Resolved mlp, tree.Resolve("layers.*.mlp.fc1"));
  ASSERT_EQ(mlp.pieces.size(), 2);
  EXPECT_EQ(mlp.pieces[0].directive.micro_batches, 4);
  EXPECT_EQ(mlp.pieces[1].directive.micro_batches, 2);
  ASSERT_OK_AND_ASSIGN(const Resolved third, tree.Resolve("layers.3.mlp.fc1"));
  EXPECT_EQ(third.pieces[0].directive.micro_batches, 1);
}

TEST(StrategyJsonTest, LevelsAreReadAndPrinted) {
  constexpr char kLevels[] = R"json({
  "plan": "tp=8",
  "nodes": {
    "layers.*": {"split": {"dp": ["batch"], "tp": ["heads|ffn/4", "seq"]}},
    "layers.0": {"split": {"tp": ["heads/2", "/4"]}}
  }
}
)json";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(kLevels, "tree.json"));
  EXPECT_EQ(tree.ToJson(), kLevels);
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_THAT(tree.DebugString(), HasSubstr("layers.* { split dp: batch; split tp: heads|ffn/4, "
                                            "seq }"));
  // Dims that are written as one entry are as if written one by one.
  EXPECT_EQ(
      *StrategyTree::FromJson(R"({"nodes": {"head": {"split": {"tp": "ffn | seq"}}}})", "a"),
      *StrategyTree::FromJson(R"({"nodes": {"head": {"split": {"tp": ["ffn", "seq"]}}}})", "b"));
}

struct Mistake {
  const char* json;
  const char* message;
};
class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamedWithItsPlace) {
  const absl::Status status = StrategyTree::FromJson(GetParam().json, "tree.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tree.json"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, MistakeTest,
    ::testing::Values(Mistake{"{", ""}, Mistake{"[]", ""}, Mistake{"", ""},
                      Mistake{R"({"plna": "tp=4"})",
                              "no key `plna` in a strategy; the keys are `plan`, "
                              "`nodes`, `load`, `stages`, `idle`. Did you mean `plan`?"},
                      Mistake{R"({"plan": 4})", "`plan` must be a string."},
                      Mistake{R"({"plan": "tpp=4"})", "no strategy key `tpp`"},
                      Mistake{R"({"nodes": []})", "`nodes` must be an object, as in"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": ["vocab/"]}}}})",
                              "`nodes[\"head\"].split.tp`: `vocab/` has no number of ranks"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": ["vocab/0"]}}}})",
                              "`vocab/0` has no number of ranks behind its slash. Write `vocab/4`"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": ["a/2", "b", "c"]}}}})",
                              "`b` and `c` are levels of `tp` without a number"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": [""]}}}})", "an empty dim"},
                      Mistake{R"({"nodes": {"head": 1}})", "`nodes[\"head\"]` must be an object"},
                      Mistake{R"({"nodes": {"a..b": {}}})", "`a..b` has an empty component"},
                      Mistake{R"({"nodes": {"head": {"splt": {}}}})", "Did you mean `split`?"},
                      Mistake{R"({"nodes": {"head": {"split": "tp"}}})", "must be an object"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": 4}}}})",
                              "`nodes[\"head\"].split.tp` must be a list of dims"},
                      Mistake{R"({"nodes": {"head": {"split": {"tp": [4]}}}})", "must be a string"},
                      Mistake{R"({"nodes": {"head": {"recompute": "some"}}})",
                              "no recompute mode `some`; there are `none`"},
                      Mistake{R"({"nodes": {"head": {"bucket": "-4"}}})",
                              "`-4` is not a size in bytes"},
                      Mistake{R"({"nodes": {"head": {"unit": 0.5}}})",
                              "`nodes[\"head\"].unit` must be a whole number above 0."},
                      Mistake{R"({"nodes": {"": {"train": "no"}}})",
                              "`nodes[\"\"].train` must be true or false."},
                      Mistake{R"({"nodes": {"": {"lora": 16}}})", "must be an object, as in"},
                      Mistake{R"({"nodes": {"": {"lora": {"rank": 16}}}})", "names no ops"},
                      Mistake{R"({"nodes": {"": {"lora": {"rank": 0, "on": ["qkv"]}}}})",
                              "has rank 0. Give a rank of 1 or more"},
                      Mistake{R"({"nodes": {"": {"lora": {"rank": 1.5, "on": "qkv"}}}})",
                              "must be a whole number"},
                      Mistake{R"({"nodes": {"": {"lora": {"rank": 4, "on": "qkv", "alpha": 8}}}})",
                              "the keys are `rank`, `on`, `dropout`, `base`"},
                      Mistake{R"({"nodes": {"": {"lora": {"rank": 4, "on": "q", "base": "fp8"}}}})",
                              "has base `fp8`; a frozen base is `nf4`"}),
    [](const ::testing::TestParamInfo<Mistake>& info) { return std::to_string(info.index); });

TEST(StrategyJsonTest, StagesRoundTripWithCanonicalPaths) {
  ASSERT_OK_AND_ASSIGN(
      const StrategyTree tree,
      StrategyTree::FromJson(
          R"({"plan": "pp=2", "stages": [{"nodes": ["stem", "layers[:8]"]}, {"nodes": "head"}]})",
          "tree.json"));
  ASSERT_EQ(tree.stages().size(), 2u);
  EXPECT_EQ(tree.stages()[0].nodes, (std::vector<std::string>{"stem", "layers[0:8]"}));
  EXPECT_EQ(tree.stages()[1].nodes, std::vector<std::string>{"head"});
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_FALSE(tree == StrategyTree::FromShortForm(tree.plan()));
  ASSERT_OK_AND_ASSIGN(const std::string text, tree.Explain("layers.3.fc"));
  EXPECT_THAT(text, HasSubstr("virtual stage: 0"));
  EXPECT_THAT(text, HasSubstr("from `stages[0]`, `layers[0:8]`"));
}

TEST(StrategyJsonTest, StagesThatAreNoneAreErrors) {
  const auto error = [](const std::string& plan, const std::string& stages) {
    const std::string json = R"({"plan": ")" + plan + R"(", "stages": )" + stages + "}";
    return std::string(StrategyTree::FromJson(json, "tree.json").status().message());
  };
  EXPECT_THAT(error("pp=2", R"([])"), HasSubstr("`stages` must be a list of stages"));
  EXPECT_THAT(error("pp=2", R"([{"nodes": []}])"), HasSubstr("`stages[0]` holds no nodes"));
  EXPECT_THAT(error("pp=2", R"([{"nodes": ["a..b"]}])"), HasSubstr("`stages[0]`: `a..b`"));
  EXPECT_THAT(error("pp=2", R"([{"nodes": [3]}])"), HasSubstr("`stages[0].nodes` must be"));
  EXPECT_THAT(error("pp=2", R"([{"node": "a"}])"), HasSubstr("Did you mean `nodes`?"));
  EXPECT_THAT(error("pp=2", R"([{}])"), HasSubstr("`stages[0]` must be an object with `nodes`"));
  EXPECT_THAT(error("pp=2", R"([{"nodes": "a", "mesh": {"dp": 0}}])"),
              HasSubstr("`stages[0].mesh.dp` must be a whole number above 0"));
  EXPECT_THAT(error("pp=2", R"([{"nodes": "a", "devices": "racks 1"}])"),
              HasSubstr("`racks 1` names no devices"));
  EXPECT_THAT(error("pp=2,layout=1+1", R"([{"nodes": "a"}])"),
              HasSubstr("both say what stages hold"));
}

TEST(StrategyJsonTest, TrainingRoundTrips) {
  const char* json = R"({"plan": "dp=8", "nodes": {
      "": {"lora": {"rank": 16, "on": ["qkv", "mlp.fc1"], "dropout": 0.05, "base": "nf4"}},
      "head": {"train": true}}})";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(json, "tree.json"));
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_EQ(tree.nodes().at("").lora, (LoraDirective{16, {"qkv", "mlp.fc1"}, 0.05, "nf4"}));
  EXPECT_FALSE(tree == StrategyTree::FromShortForm(tree.plan()));
}

TEST(StrategyJsonTest, LoadsRoundTrip) {
  const char* json = R"({"plan": "ep=2", "load": {"experts": [1.5, 0.1]}})";
  ASSERT_OK_AND_ASSIGN(const StrategyTree tree, StrategyTree::FromJson(json, "tree.json"));
  EXPECT_EQ(tree.loads().at("experts"), (std::vector<double>{1.5, 0.1}));
  EXPECT_THAT(StrategyTree::FromJson(tree.ToJson(), "again"), IsOkAndHolds(tree));
  EXPECT_FALSE(tree == StrategyTree::FromShortForm(tree.plan()));
  for (const char* wrong : {R"({"load": {"experts": []}})", R"({"load": {"experts": ["a"]}})",
                            R"({"load": {"experts": 2}})"}) {
    EXPECT_FALSE(StrategyTree::FromJson(wrong, "tree.json").ok()) << wrong;
  }
}

// One range is a text, several are a list; only stages with places leave devices out.
TEST(StrategyJsonTest, IdleDevicesComeBack) {
  const auto read = [](const std::string& more) {
    return StrategyTree::FromJson(
        R"({"stages": [{"nodes": "a", "mesh": {"dp": 2}}, {"nodes": "b"}], "idle": )" + more + "}",
        "tree.json");
  };
  for (const char* idle : {R"("gpus 2-7")", R"(["gpu 2", "hosts 1-3"])"}) {
    ASSERT_OK_AND_ASSIGN(const StrategyTree tree, read(idle));
    EXPECT_THAT(tree.ToJson(), HasSubstr(std::string("\"idle\": ") + idle));
    ASSERT_OK_AND_ASSIGN(const StrategyTree again, StrategyTree::FromJson(tree.ToJson(), "again"));
    EXPECT_EQ(again, tree);
  }
  EXPECT_THAT(read("[3]").status().message(), HasSubstr("`idle[0]`"));
  EXPECT_THAT(read(R"("rack 2")").status().message(), HasSubstr("`idle`: `rack 2` names no"));
}

}  // namespace
}  // namespace plancast
