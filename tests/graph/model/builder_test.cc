#include "graph/model/builder.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

ModelBuilder Sizes() {
  ModelBuilder model("mlp");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", 16));
  EXPECT_OK(model.AddDim("hidden", 8));
  EXPECT_OK(model.AddDim("ffn", 32));
  EXPECT_OK(model.AddDim("vocab", 100));
  return model;
}

ModuleBuilder Layer(const ModelBuilder& model) {
  ModuleBuilder layer = model.Module("layer");
  EXPECT_OK(layer.InPort("x", {"batch", "seq", "hidden"}));
  EXPECT_OK(layer.Parameter("w1", {"ffn", "hidden"}));
  EXPECT_OK(layer.Parameter("w2", {"hidden", "ffn"}));
  EXPECT_OK(layer.Call("fc1", "linear", {"x", "w1"}, {"u"}));
  ModuleBuilder::CallOptions options;
  options.fusion = "bias_gelu";
  EXPECT_OK(layer.Call("act", "gelu_tanh", {"u"}, {"a"}, options));
  EXPECT_OK(layer.Call("fc2", "linear", {"a", "w2"}, {"y"}));
  EXPECT_OK(layer.OutPort("y"));
  return layer;
}

ModuleBuilder Embedding(const ModelBuilder& model) {
  ModuleBuilder module = model.Module("embedding");
  EXPECT_OK(module.Input("ids", DType::kInt64, {"batch", "seq"}));
  EXPECT_OK(module.Parameter("table", {"vocab", "hidden"}));
  EXPECT_OK(module.Call("lookup", "embedding", {"ids", "table"}, {"x"}));
  EXPECT_OK(module.OutPort("x"));
  return module;
}

ModuleBuilder Head(const ModelBuilder& model) {
  ModuleBuilder module = model.Module("head");
  EXPECT_OK(module.InPort("x", {"batch", "seq", "hidden"}));
  EXPECT_OK(module.Input("labels", DType::kInt64, {"batch", "seq"}));
  EXPECT_OK(module.Parameter("w", {"vocab", "hidden"}));
  EXPECT_OK(module.Call("logits", "linear", {"x", "w"}, {"z"}));
  EXPECT_OK(module.Call("loss", "cross_entropy", {"z", "labels"}, {"loss"}));
  return module;
}

TEST(BuilderTest, CallsBindAttributesAndTakeRanksFromTensors) {
  ModelBuilder model("cnn");
  for (const auto& [name, size] : std::vector<std::pair<const char*, int64_t>>{
           {"batch", 0}, {"c", 8}, {"n", 16}, {"h", 32}, {"half", 16}, {"k", 3}, {"flat", 4096}}) {
    EXPECT_OK(model.AddDim(name, size));
  }
  ModuleBuilder stem = model.Module("stem");
  EXPECT_OK(stem.Input("x", DType::kCompute, {"batch", "c", "h", "h"}));
  EXPECT_OK(stem.Parameter("w", {"n", "c", "k", "k"}));
  ModuleBuilder::CallOptions positions;
  positions.factor_dims = {{"i", "half"}, {"j", "half"}};
  EXPECT_OK(stem.Call("conv", "conv2d(stride=2, pad=1)", {"x", "w"}, {"y"}, positions));
  EXPECT_OK(stem.Call("act", "relu6", {"y"}, {"z"}));
  EXPECT_EQ(stem.body().ops[1].factor_dims.size(), 4u);
  EXPECT_THAT(std::string(stem.Call("conv2", "conv2d(pad=1)", {"z", "w"}, {"v"}).message()),
              HasSubstr("factor `c` of `conv2d` is `n` (16) in `z`, but `c` (8) in `w`"));
  EXPECT_THAT(std::string(stem.Call("pool", "max_pool2d", {"z"}, {"v"}).message()),
              HasSubstr("do not say the size of factor `i`"));
  // Merged dims are as large as their parts.
  ModuleBuilder flat = stem;
  ModuleBuilder::CallOptions merged;
  merged.factor_dims = {{"f", "flat"}};
  EXPECT_OK(flat.Call("flatten", "flatten", {"z"}, {"v"}, merged));
  EXPECT_OK(model.Append("stem", flat));
  merged.factor_dims = {{"f", "h"}};
  EXPECT_OK(stem.Call("flatten", "flatten", {"z"}, {"v"}, merged));
  EXPECT_THAT(std::string(model.Append("wrong", stem).message()),
              HasSubstr("factor `f` of `flatten` is `h` (32), but its parts `c` `n` (16), `i` "
                        "`half` (16), `j` `half` (16) have 4096 points"));
}

TEST(BuilderTest, PlansBindReplicas) {
  ModelBuilder model("cnn");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("replicas", 0));
  EXPECT_OK(model.AddDim("replica_batch", 0));
  EXPECT_OK(model.AddDim("c", 8));
  ModuleBuilder module = model.Module("m");
  EXPECT_OK(module.Input("x", DType::kCompute, {"batch", "c"}));
  EXPECT_OK(module.Parameter("gamma", {"c"}));
  EXPECT_OK(module.Parameter("beta", {"c"}));
  ModuleBuilder::CallOptions groups;
  groups.factor_dims = {{"g", "replicas"}, {"b", "replica_batch"}};
  EXPECT_OK(module.Call("bn", "batch_norm_local", {"x", "gamma", "beta"}, {"y"}, groups));
  ASSERT_OK(model.Append("m", module));
  const ModelGraph graph = model.Build()->WithBatch(32, 4);
  EXPECT_OK(graph.Verify());
  EXPECT_EQ(graph.dims[*graph.FindDim("replicas")].size, 4);
  EXPECT_EQ(graph.dims[*graph.FindDim("replica_batch")].size, 8);
}

TEST(BuilderTest, BuildsAModel) {
  ModelBuilder model = Sizes();
  ASSERT_OK(model.Append("embedding", Embedding(model)));
  ASSERT_OK(model.Append("layers", Layer(model), 3));
  ASSERT_OK(model.Append("more", Layer(model)));
  ASSERT_OK(model.Append("head", Head(model)));
  absl::StatusOr<ModelGraph> graph = model.Build();
  ASSERT_OK(graph);
  EXPECT_EQ(graph->bodies.size(), 3u);  // equal layers share one
  EXPECT_EQ(graph->ParameterCount(), 100 * 8 + 4 * 2 * 8 * 32 + 100 * 8);
  ASSERT_OK(model.Tie("embedding", "table", "head", "w"));
  EXPECT_EQ(model.Build()->ParameterCount(), 100 * 8 + 4 * 2 * 8 * 32);
  EXPECT_EQ(model.Build()->DebugString(),
            "model mlp\n"
            "dims batch=0 seq=16 hidden=8 ffn=32 vocab=100\n"
            "embedding x 1 (body 0 `embedding`)\n"
            "  input ids:int64[batch,seq]\n"
            "  param table[vocab,hidden]\n"
            "  embedding.lookup: embedding(ids, table) -> (x)\n"
            "  out x[batch,seq,hidden]\n"
            "layers.* x 3 (body 1 `layer`)\n"
            "  param w1[ffn,hidden]\n"
            "  param w2[hidden,ffn]\n"
            "  in x[batch,seq,hidden]\n"
            "  layers.*.fc1: linear(x, w1) -> (u)\n"
            "  layers.*.act: gelu_tanh(u) -> (a) fusion=bias_gelu\n"
            "  layers.*.fc2: linear(a, w2) -> (y)\n"
            "  out y[batch,seq,hidden]\n"
            "more x 1 (body 1 `layer`)\n"
            "  param w1[ffn,hidden]\n"
            "  param w2[hidden,ffn]\n"
            "  in x[batch,seq,hidden]\n"
            "  more.fc1: linear(x, w1) -> (u)\n"
            "  more.act: gelu_tanh(u) -> (a) fusion=bias_gelu\n"
            "  more.fc2: linear(a, w2) -> (y)\n"
            "  out y[batch,seq,hidden]\n"
            "head x 1 (body 2 `head`)\n"
            "  input labels:int64[batch,seq]\n"
            "  param w[vocab,hidden]\n"
            "  in x[batch,seq,hidden]\n"
            "  head.logits: linear(x, w) -> (z)\n"
            "  head.loss: cross_entropy(z, labels) -> (loss)\n"
            "tied embedding.table = head.w\n");
}

TEST(BuilderTest, RunsRulesThatAreNotShipped) {
  ModelBuilder model = Sizes();
  ModuleBuilder module = model.Module("m");
  ASSERT_OK(module.Parameter("w", {"hidden"}));
  absl::StatusOr<OpRule> rule = OpRule::Parse("tile(x) -> (y) { y[j,i] = x[i] * [j == j] }");
  ASSERT_OK(rule);
  const auto shared = std::make_shared<const OpRule>(*rule);
  EXPECT_THAT(std::string(module.Call("tile", shared, {"w"}, {"y"}, {}).message()),
              HasSubstr("the inputs do not say the size of factor `j` of `tile`"));
  ModuleBuilder::CallOptions options;
  options.factor_dims = {{"j", "ffn"}};
  ASSERT_OK(module.Call("tile", shared, {"w"}, {"y"}, options));
  EXPECT_EQ(module.body().tensors.back().dims, (std::vector<int>{3, 2}));
}

TEST(BuilderTest, ErrorsNameThePlace) {
  ModelBuilder model = Sizes();
  ModuleBuilder layer = Layer(model);
  auto message = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_EQ(message(layer.Call("fc3", "linear", {"a", "w1"}, {"b"})),
            "module `layer`, op `fc3`: factor `k` of `linear` is `ffn` (32) in `a`, but `hidden` "
            "(8) in `w1`; it has one size.");
  EXPECT_THAT(message(layer.Call("fc3", "linaer", {"a", "w1"}, {"b"})),
              HasSubstr("module `layer`, op `fc3`: no op rule `linaer`"));
  EXPECT_THAT(message(layer.Call("fc3", "linear", {"a", "w9"}, {"b"})),
              HasSubstr("no tensor `w9`. Did you mean `w1`? Like it are `w2`."));
  EXPECT_THAT(message(layer.Call("fc3", "linear", {"a"}, {"b"})),
              HasSubstr("`linear` takes 2 tensors and gives 1; the call has 1 and 1."));
  EXPECT_THAT(message(layer.Call("fc3", "linear", {"w1", "w1"}, {"b"})),
              HasSubstr("wants its argument `x` with 3 dims; `w1` has 2."));
  EXPECT_THAT(message(layer.Call("fc1", "linear", {"x", "w1"}, {"b"})),
              HasSubstr("op names must be unique; `fc1` is not."));
  EXPECT_THAT(message(layer.Call("fc3", "linear", {"x", "w1"}, {"u"})),
              HasSubstr("tensor names must be unique; `u` is not."));
  EXPECT_THAT(message(layer.Parameter("w3", {"hiden"})),
              HasSubstr("tensor `w3`: no dim `hiden`; the model has `batch`, `seq`, `hidden`, "
                        "`ffn`, `vocab`. Did you mean `hidden`?"));
  EXPECT_THAT(message(model.AddDim("seq", 4)), HasSubstr("`seq` is not"));
  EXPECT_THAT(message(model.AddDim("width", -4)), HasSubstr("has size -4; sizes start at 1"));
  EXPECT_THAT(message(model.Append("layers", layer, 2)), HasSubstr("`layers` comes first"));
  ASSERT_OK(model.Append("embedding", Embedding(model)));
  EXPECT_THAT(message(model.Append("layers", layer, 0)), HasSubstr("repeated 0 times"));
  EXPECT_THAT(message(model.Append("embedding", layer)), HasSubstr("`embedding` is not"));
  ASSERT_OK(model.Append("layers", layer, 2));
  ASSERT_OK(layer.OutPort("u"));
  EXPECT_THAT(message(model.Append("wide", layer, 2)),
              HasSubstr("from `wide` to `wide`: 2 tensors leave and 1 enter."));
  EXPECT_THAT(message(model.Tie("embedding", "tabel", "layers", "w1")),
              HasSubstr("no parameter `tabel`; it has `table`. Did you mean `table`?"));
  EXPECT_THAT(message(model.Tie("embedding", "table", "layer", "w1")),
              HasSubstr("no module `layer`"));
  EXPECT_THAT(message(model.Tie("embedding", "table", "layers", "w1")),
              HasSubstr("tied parameters have 800 and 256 elements"));
  EXPECT_THAT(message(ModelBuilder("empty").Build().status()), HasSubstr("has no modules"));
}

}  // namespace
}  // namespace plancast
