#include "graph/model/cut_segments.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(const Body& body, const std::vector<int>& tensors) {
  std::vector<std::string> names;
  for (int t : tensors) names.push_back(body.tensors[t].name);
  return names;
}

const Body& BodyOf(const ModelGraph& graph, int segment) {
  return graph.bodies[graph.segments[segment].body];
}

// data -> net (a -> b -> c -> d, with skips from a to d and from b to c) -> head.
ModelGraph Net() {
  ModelBuilder model("net");
  EXPECT_OK(model.AddDim("batch", 0));
  EXPECT_OK(model.AddDim("seq", 4));
  EXPECT_OK(model.AddDim("hidden", 8));
  const std::vector<std::string> dims = {"batch", "seq", "hidden"};
  ModuleBuilder data = model.Module("data");
  EXPECT_OK(data.Input("ids", DType::kCompute, dims));
  EXPECT_OK(data.Parameter("w", {"hidden", "hidden"}));
  EXPECT_OK(data.Call("embed", "linear", {"ids", "w"}, {"x"}));
  EXPECT_OK(data.OutPort("x"));
  ModuleBuilder net = model.Module("net");
  EXPECT_OK(net.InPort("x", dims));
  EXPECT_OK(net.Parameter("w", {"hidden", "hidden"}));
  EXPECT_OK(net.Parameter("idle", {"hidden"}));
  EXPECT_OK(net.Call("a", "linear", {"x", "w"}, {"a.y"}));
  EXPECT_OK(net.Call("b", "relu", {"a.y"}, {"b.y"}));
  EXPECT_OK(net.Call("c", "linear", {"b.y", "w"}, {"c.y"}));
  EXPECT_OK(net.Call("d", "add", {"c.y", "a.y"}, {"d.y"}));
  EXPECT_OK(net.OutPort("d.y"));
  ModuleBuilder head = model.Module("head");
  EXPECT_OK(head.InPort("x", dims));
  EXPECT_OK(head.Call("act", "relu", {"x"}, {"y"}));
  EXPECT_OK(head.OutPort("y"));
  EXPECT_OK(model.Append("data", data));
  EXPECT_OK(model.Append("layers", net, 3));
  EXPECT_OK(model.Append("head", head));
  EXPECT_OK(model.Tie("data", "w", "layers", "w"));
  return *model.Build();
}

TEST(CutSegmentsTest, PortsAreTheTensorsThatAreAliveThere) {
  const ModelGraph graph = Net();
  const auto cut = CutSegments(graph, {{1, 1, 1}, {1, 1, 2}, {1, 1, 3}});
  ASSERT_OK(cut);
  EXPECT_OK(cut->graph.Verify());
  // data, layer 0, four pieces of layer 1, layer 2, head
  ASSERT_EQ(cut->graph.segments.size(), 8u);
  EXPECT_THAT(cut->begins, ElementsAre(0, 3, 4, 5));
  const auto ins = [&](int s) {
    return Names(BodyOf(cut->graph, s), BodyOf(cut->graph, s).in_ports);
  };
  const auto outs = [&](int s) {
    return Names(BodyOf(cut->graph, s), BodyOf(cut->graph, s).out_ports);
  };
  EXPECT_THAT(ins(2), ElementsAre("x"));
  EXPECT_THAT(outs(2), ElementsAre("a.y"));
  EXPECT_THAT(ins(3), ElementsAre("a.y"));
  EXPECT_THAT(outs(3), ElementsAre("a.y", "b.y"));
  EXPECT_THAT(ins(4), ElementsAre("a.y", "b.y"));  // a.y only passes
  EXPECT_THAT(outs(4), ElementsAre("a.y", "c.y"));
  EXPECT_THAT(ins(5), ElementsAre("a.y", "c.y"));
  EXPECT_THAT(outs(5), ElementsAre("d.y"));
  EXPECT_EQ(BodyOf(cut->graph, 2).name, "net[a]");
  EXPECT_THAT(LiveTensors(BodyOf(graph, 1), 2), ElementsAre(3, 4));
}

TEST(CutSegmentsTest, PiecesHaveThePathOfTheirModuleAndCountAsOne) {
  const auto cut = CutSegments(Net(), {{1, 1, 2}});
  ASSERT_OK(cut);
  EXPECT_EQ(cut->graph.LayerCount(), 3);
  for (int s : {1, 2, 3, 4}) EXPECT_EQ(ModelGraph::PathOf(cut->graph.segments[s]), "layers.*");
  EXPECT_FALSE(cut->graph.segments[2].continues);
  EXPECT_TRUE(cut->graph.segments[3].continues);
  EXPECT_EQ(BodyOf(cut->graph, 2).name, "net[a..b]");
  EXPECT_EQ(BodyOf(cut->graph, 3).name, "net[c..d]");
}

TEST(CutSegmentsTest, AWeightOnBothSidesIsTiedAndTiesFollowTheirUsers) {
  const ModelGraph graph = Net();
  const auto cut = CutSegments(graph, {{1, 0, 2}, {1, 2, 0}});
  ASSERT_OK(cut);
  EXPECT_EQ(cut->graph.ParameterCount(), graph.ParameterCount());
  ASSERT_EQ(cut->graph.tied.size(), 2u);
  EXPECT_EQ(cut->graph.tied[0].second_segment, 1);  // the first piece of layer 0
  EXPECT_EQ(cut->graph.tied[1].first_segment, 1);
  EXPECT_EQ(cut->graph.tied[1].second_segment, 2);
  // The second user of the middle layer, by its repeat.
  ModelGraph other = graph;
  other.tied[0].second_repeat = 2;
  const auto moved = CutSegments(other, {{1, 1, 1}});
  ASSERT_OK(moved);
  EXPECT_EQ(moved->graph.segments[moved->graph.tied[0].second_segment].repeat, 1);
  EXPECT_EQ(moved->graph.tied[0].second_repeat, 0);
  EXPECT_OK(moved->graph.Verify());
}

TEST(CutSegmentsTest, EqualPiecesShareABodyAndCutsBetweenLayersMakeNone) {
  const ModelGraph graph = Net();
  const auto between = CutSegments(graph, {{1, 0, 0}, {1, 2, 0}, {2, 0, 0}});
  ASSERT_OK(between);
  EXPECT_EQ(between->graph.bodies.size(), graph.bodies.size());
  EXPECT_THAT(between->begins, ElementsAre(0, 1, 2, 3));
  const auto twice = CutSegments(graph, {{1, 0, 2}, {1, 2, 2}});
  ASSERT_OK(twice);
  EXPECT_EQ(twice->graph.bodies.size(), graph.bodies.size() + 2);
}

TEST(CutSegmentsTest, PiecesOfFrozenLayersAreNotThoseOfTrainedOnes) {
  ModelGraph graph = Net();
  Segment last = graph.segments[1];
  graph.segments[1].repeat = 2;
  last.repeat = 1;
  last.body = static_cast<int>(graph.bodies.size());
  graph.bodies.push_back(BodyOf(graph, 1));
  for (TensorInfo& tensor : graph.bodies.back().tensors) {
    tensor.frozen = tensor.kind == TensorInfo::Kind::kParameter;
  }
  graph.segments.insert(graph.segments.begin() + 2, last);
  const auto cut = CutSegments(graph, {{1, 1, 2}, {2, 0, 2}});
  ASSERT_OK(cut);
  const auto frozen = [&](int segment) {
    const std::vector<TensorInfo>& tensors = BodyOf(cut->graph, segment).tensors;
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const TensorInfo& tensor) { return tensor.frozen; });
  };
  // data, a layer, two pieces of the next, two of the frozen one, head.
  ASSERT_EQ(cut->graph.segments.size(), 7);
  EXPECT_FALSE(frozen(2));
  EXPECT_TRUE(frozen(4));
}

// What is read behind the cut by ops that give no gradient back is detached there.
TEST(CutSegmentsTest, NoGradientComesBackWhereTheRestPassesNoneOn) {
  ModelBuilder model("net");
  ASSERT_OK(model.AddDim("batch", 0));
  ASSERT_OK(model.AddDim("seq", 4));
  ASSERT_OK(model.AddDim("hidden", 8));
  const std::vector<std::string> dims = {"batch", "seq", "hidden"};
  ModuleBuilder net = model.Module("net");
  ASSERT_OK(net.Input("ids", DType::kCompute, dims));
  ASSERT_OK(net.Parameter("w", {"hidden", "hidden"}));
  ASSERT_OK(net.Call("scale", "relu", {"ids"}, {"x"}));
  ASSERT_OK(net.Call("a", "linear", {"x", "w"}, {"a.y"}));
  ASSERT_OK(net.Call("b", "add", {"a.y", "x"}, {"b.y"}));
  ASSERT_OK(net.OutPort("b.y"));
  ASSERT_OK(model.Append("net", net));
  const auto cut = CutSegments(*model.Build(), {{0, 0, 1}, {0, 0, 2}});
  ASSERT_OK(cut);
  EXPECT_OK(cut->graph.Verify());
  EXPECT_THAT(BodyOf(cut->graph, 0).out_detached, ElementsAre(true));
  EXPECT_THAT(BodyOf(cut->graph, 1).in_detached, ElementsAre(true));
  EXPECT_THAT(BodyOf(cut->graph, 1).out_detached, ElementsAre(true, false));
  EXPECT_THAT(BodyOf(cut->graph, 2).in_detached, ElementsAre(true, false));
  EXPECT_THAT(BodyOf(cut->graph, 2).out_detached, IsEmpty());
}

// What is said of the ports of a body holds for those of its pieces that are the body's own.
TEST(CutSegmentsTest, PiecesInTheMiddleHaveTheirOwnPorts) {
  ModelGraph graph = Net();
  graph.bodies[graph.segments[1].body].in_detached = {true};
  graph.bodies[graph.segments[1].body].out_detached = {true};
  const auto cut = CutSegments(graph, {{1, 0, 1}, {1, 0, 2}});
  ASSERT_OK(cut);
  EXPECT_THAT(BodyOf(cut->graph, 1).in_detached, ElementsAre(true));
  EXPECT_THAT(BodyOf(cut->graph, 1).out_detached, IsEmpty());
  EXPECT_THAT(BodyOf(cut->graph, 2).in_detached, IsEmpty());
  EXPECT_THAT(BodyOf(cut->graph, 2).out_detached, IsEmpty());
  EXPECT_THAT(BodyOf(cut->graph, 3).in_detached, IsEmpty());
  EXPECT_THAT(BodyOf(cut->graph, 3).out_detached, ElementsAre(true));
}

TEST(CutSegmentsTest, RefusesPlacesThatAreNoneAndCutsOutOfOrder) {
  const ModelGraph graph = Net();
  EXPECT_THAT(CutSegments(graph, {{1, 3, 0}}).status().message(), HasSubstr("not inside"));
  EXPECT_THAT(CutSegments(graph, {{1, 0, 4}}).status().message(), HasSubstr("not inside"));
  EXPECT_THAT(CutSegments(graph, {{0, 0, 0}}).status().message(), HasSubstr("not inside"));
  EXPECT_THAT(CutSegments(graph, {{1, 1, 2}, {1, 1, 1}}).status().message(),
              HasSubstr("must ascend"));
}

}  // namespace
}  // namespace plancast
