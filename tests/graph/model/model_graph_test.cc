#include "graph/model/model_graph.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

// x [batch, seq, hidden] -> linear -> y, the weight square.
ModelGraph Graph() {
  ModelGraph graph;
  graph.name = "m";
  graph.dims = {{"batch", 2}, {"seq", 4}, {"hidden", 8}, {"kv_seq", 4}};
  Body body;
  body.name = "layer";
  body.tensors = {{"x", TensorInfo::Kind::kInput, DType::kCompute, {0, 1, 2}},
                  {"w", TensorInfo::Kind::kParameter, DType::kCompute, {2, 2}},
                  {"y", TensorInfo::Kind::kActivation, DType::kCompute, {0, 1, 2}}};
  OpNode op;
  op.name = "fc";
  op.rule = *FindRule("linear");
  op.inputs = {0, 1};
  op.outputs = {2};
  op.factor_dims = {0, 1, 2, 2};
  body.ops = {op};
  body.out_ports = {2};
  graph.bodies = {body};
  graph.segments = {{"layer", 0, 1}};
  return graph;
}

TEST(ModelGraphTest, CountsAndBinds) {
  const ModelGraph graph = Graph();
  EXPECT_TRUE(graph.Verify().ok()) << graph.Verify();
  EXPECT_EQ(graph.ParameterCount(), 64);
  EXPECT_EQ(graph.Elements(graph.bodies[0].tensors[0]), 64);
  EXPECT_EQ(graph.WithBatch(16).dims[0].size, 16);
  EXPECT_EQ(*graph.FindDim("seq"), 1);
  EXPECT_EQ(graph.FindDim("hiden").status().message(),
            "no dim `hiden` in model `m`; it has `batch`, `seq`, `hidden`, `kv_seq`. Did you mean "
            "`hidden`?");
}

TEST(ModelGraphTest, TwoNamesOfOneSizeMayStandForEachOther) {
  ModelGraph graph = Graph();
  graph.bodies[0].ops[0].factor_dims[1] = 3;
  EXPECT_TRUE(graph.Verify().ok());
  graph.dims[3].size = 5;
  EXPECT_EQ(graph.Verify().message(),
            "body `layer`, op `fc`: factor `s` of `linear` is `kv_seq` (5), but dim 1 of `x` "
            "[batch=2, seq=4, hidden=8] is `seq` (4).");
}

TEST(ModelGraphTest, VerifyFindsWhatIsWrong) {
  auto after = [](const std::function<void(ModelGraph*)>& spoil) {
    ModelGraph graph = Graph();
    spoil(&graph);
    return std::string(graph.Verify().message());
  };
  using G = ModelGraph;
  EXPECT_THAT(after([](G* g) { g->dims[1].size = 0; }), HasSubstr("dim `seq` has size 0"));
  EXPECT_THAT(after([](G* g) { g->dims[1].name = "batch"; }), HasSubstr("`batch` is not"));
  EXPECT_THAT(after([](G* g) { g->dims[2].size = int64_t{1} << 40; }), HasSubstr("4e18"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].tensors[2].name = "x"; }), HasSubstr("`x` is not"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].tensors[2].dims[0] = 9; }), HasSubstr("not there"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].inputs = {0}; }), HasSubstr("here are 1 and 1"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].inputs[0] = 2; }),
              HasSubstr("op `fc`: it reads `y` before it is written."));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].outputs[0] = 0; }),
              HasSubstr("it writes `x`, which has a value already."));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].inputs[0] = 1; }),
              HasSubstr("wants `x` with 3 dims; `w` [hidden=8, hidden=8] has 2."));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].inputs[0] = 7; }), HasSubstr("names no tensor"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].factor_dims.pop_back(); }),
              HasSubstr("has 4 factors; here are dims for 3."));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops[0].rule = nullptr; }), HasSubstr("no rule"));
  EXPECT_THAT(after([](G* g) { g->bodies[0].ops.clear(); }),
              HasSubstr("out port `y` is never written"));
  EXPECT_THAT(after([](G* g) { g->segments[0].body = 3; }), HasSubstr("`layer` has no body"));
  EXPECT_THAT(after([](G* g) { g->segments[0].repeat = 2; }),
              HasSubstr("from `layer` to `layer`: 1 tensors leave and 0 enter."));
  EXPECT_THAT(after([](G* g) { g->tied = {{0, 0, 0, 1}}; }), HasSubstr("names no parameter"));
  EXPECT_THAT(after([](G* g) { g->tied = {{0, 1, 5, 1}}; }), HasSubstr("names no segment"));
}

}  // namespace
}  // namespace plancast
