// Matrix products as strategies on one op: SUMMA, Cannon, PUMMA, Johnson, 2.5-D and COSMA's grids
// give the messages and the memory of their closed forms (DISTAL, PLDI'22), and the product.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "graph/model/program.h"
#include "gtest/gtest.h"
#include "tests/compiler/body/check_bodies.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Splits = std::vector<std::pair<std::string, std::vector<std::string>>>;  // by axis

PlanUnderTest ProductOf(int64_t n, bool reduces = false) {
  IndexProgram program{"product",
                       {{"i", n}, {"j", n}, {"k", n}},
                       {{"B", {"i", "k"}}, {"C", {"k", "j"}}},
                       {"A[i,j] += B[i,k] * C[k,j]"}};
  if (reduces) program.steps.push_back("sum[i,j] = A[i,j]");
  const auto graph = BuildProgram(program);
  EXPECT_OK(graph.status());
  PlanUnderTest plan = PlanUnderTest::Of(*graph);
  plan.ByHand().Split("", "cp", {}).MicroBatches(1, 1);
  return plan;
}

PlanUnderTest& SplitAll(PlanUnderTest& plan, const std::string& op, const Splits& splits) {
  for (const auto& [axis, dims] : splits) plan.Split("product." + op, axis, dims);
  return plan;
}

// On a grid of side x side: A[i,j] stays where it is, B and C come along k.
PlanUnderTest OnSquare(int64_t n, int64_t side, std::vector<std::string> turning) {
  PlanUnderTest plan = ProductOf(n);
  plan.Dp(side).Tp(side);
  SplitAll(plan, "B", {{"dp", {"i"}}, {"tp", {"k"}}});
  SplitAll(plan, "C", {{"dp", {"k"}}, {"tp", {"j"}}});
  SplitAll(plan, "A", {{"dp", {"i"}}, {"tp", {"j"}}});
  LoopDirective& loop = (*plan.tree().Node("product.A"))->loop;
  loop.communicate = {{"B", "k"}, {"C", "k"}};
  if (!turning.empty()) loop.rotate["k"] = std::move(turning);
  EXPECT_OK(loop.Settle());
  return plan;
}
PlanUnderTest Summa(int64_t n, int64_t side) { return OnSquare(n, side, {}); }
PlanUnderTest Cannon(int64_t n, int64_t side) { return OnSquare(n, side, {"dp", "tp"}); }
PlanUnderTest Pumma(int64_t n, int64_t side) { return OnSquare(n, side, {"dp"}); }

// On a cube: B, C and the sum of A are on a face each.
PlanUnderTest Johnson(int64_t n, int64_t side) {
  PlanUnderTest plan = ProductOf(n, /*reduces=*/true);
  plan.Dp(side).Tp(side).Cp(side);
  SplitAll(plan, "B", {{"dp", {"i"}}, {"cp", {"k"}}}).On("product.B", "tp", "0");
  SplitAll(plan, "C", {{"cp", {"k"}}, {"tp", {"j"}}}).On("product.C", "dp", "0");
  SplitAll(plan, "A", {{"dp", {"i"}}, {"tp", {"j"}}, {"cp", {"k"}}});
  SplitAll(plan, "sum", {{"dp", {"i"}}, {"tp", {"j"}}}).On("product.sum", "cp", "0");
  return plan;
}

// c layers of side x side, each with its part of k: in each layer blocks of k turn over
// side / c ranks, of which there are c copies in a row or column.
PlanUnderTest Layered(int64_t n, int64_t side, int64_t c) {
  PlanUnderTest plan = ProductOf(n, /*reduces=*/true);
  plan.Dp(side).Tp(side).Cp(c);
  plan.options().order = {"tp", "dp", "ep", "cp", "pp"};  // layers are furthest apart
  const std::string steps = absl::StrCat("k/", side / c);
  SplitAll(plan, "B", {{"cp", {"k"}}, {"dp", {"i"}}, {"tp", {absl::StrCat("/", c), steps}}});
  SplitAll(plan, "C", {{"cp", {"k"}}, {"dp", {absl::StrCat("/", c), steps}}, {"tp", {"j"}}});
  SplitAll(plan, "A", {{"cp", {"k"}}, {"dp", {"i"}}, {"tp", {"j"}}});
  SplitAll(plan, "sum", {{"dp", {"i"}}, {"tp", {"j"}}}).On("product.sum", "cp", "0");
  if (side > c) {
    LoopDirective& loop = (*plan.tree().Node("product.A"))->loop;
    loop.communicate = {{"B", "k"}, {"C", "k"}};
    loop.rotate["k"] = {"dp", "tp"};
  }
  return plan;
}

ExecutionGraph Compiled(PlanUnderTest plan) {
  auto graph = plan.Compile();
  EXPECT_OK(graph.status());
  if (!graph.ok()) return ExecutionGraph();
  EXPECT_OK(graph->Verify());
  return *std::move(graph);
}

struct Message {
  CollectiveKind kind;
  std::string axes;
  int64_t elements;

  friend bool operator==(const Message& a, const Message& b) {
    return a.kind == b.kind && a.axes == b.axes && a.elements == b.elements;
  }
};

std::vector<Message> MessagesOf(const ExecutionGraph& graph, absl::string_view block_name) {
  std::vector<Message> messages;
  const Block& block = BlockNamed(graph, block_name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    std::string axes;
    for (const int axis : comm.axes) {
      absl::StrAppend(&axes, axes.empty() ? "" : "*", graph.mesh.axis(axis).name);
    }
    messages.push_back({comm.kind, axes, comm.bytes / 2});
  }
  return messages;
}

// What a processor receives: of as many broadcasts as there are ranks it sends one itself.
int64_t ReceivedBy(const std::vector<Message>& messages, int64_t ranks) {
  int64_t permuted = 0, broadcast = 0;
  for (const Message& message : messages) {
    if (message.kind == CollectiveKind::kPermute) permuted += message.elements;
    if (message.kind == CollectiveKind::kBroadcast) broadcast += message.elements;
  }
  return permuted + broadcast / ranks * (ranks - 1);
}

std::string OracleOf(PlanUnderTest plan) { return WrongBodies(plan.Request(), 7); }

constexpr int64_t kSize = 16384, kSide = 8;
constexpr int64_t kBlock = kSize / kSide * kSize / kSide;

TEST(DistributedProductsTest, SummaBroadcastsAPartInEachStep) {
  const auto messages = MessagesOf(Compiled(Summa(kSize, kSide)), "product.F");
  ASSERT_THAT(messages, SizeIs(2 * kSide));
  for (const Message& message : messages) {
    EXPECT_EQ(message.kind, CollectiveKind::kBroadcast);
    EXPECT_EQ(message.elements, kBlock);
  }
  EXPECT_EQ(ReceivedBy(messages, kSide), 58'720'256);
}

TEST(DistributedProductsTest, CannonHandsPartsToNeighbours) {
  const ExecutionGraph graph = Compiled(Cannon(kSize, kSide));
  const auto messages = MessagesOf(graph, "product.F");
  ASSERT_THAT(messages, SizeIs(2 * (kSide - 1)));
  std::map<std::string, int> over;
  for (const Message& message : messages) {
    EXPECT_EQ(message.kind, CollectiveKind::kPermute);
    EXPECT_EQ(message.elements, kBlock);
    ++over[message.axes];
  }
  EXPECT_THAT(over, ElementsAre(std::make_pair("dp", kSide - 1), std::make_pair("tp", kSide - 1)));
  EXPECT_EQ(ReceivedBy(messages, kSide), 58'720'256);
  // A product of a block in each step.
  const auto kernels = KernelsLabelled(graph, "product.F", "A");
  ASSERT_THAT(kernels, SizeIs(kSide));
  for (const KernelSpec& kernel : kernels) {
    EXPECT_EQ(kernel.m * kernel.n, kBlock);
    EXPECT_EQ(kernel.k, kSize / kSide);
  }
}

TEST(DistributedProductsTest, PummaTurnsOneOperandAndBroadcastsTheOther) {
  const auto messages = MessagesOf(Compiled(Pumma(kSize, kSide)), "product.F");
  int turned = 0, broadcast = 0;
  for (const Message& message : messages) {
    turned += message.kind == CollectiveKind::kPermute && message.axes == "dp";
    broadcast += message.kind == CollectiveKind::kBroadcast && message.axes == "tp";
    EXPECT_EQ(message.elements, kBlock);
  }
  EXPECT_EQ(turned, kSide - 1);
  EXPECT_EQ(broadcast, kSide);
  EXPECT_THAT(messages, SizeIs(turned + broadcast));
  EXPECT_EQ(ReceivedBy(messages, kSide), 58'720'256);
}

TEST(DistributedProductsTest, JohnsonMovesABlockOfEachMatrix) {
  const int64_t side = 4, block = kSize / side * kSize / side;
  ASSERT_EQ(block, 16'777'216);
  const ExecutionGraph graph = Compiled(Johnson(kSize, side));
  EXPECT_THAT(MessagesOf(graph, "product.F"),
              ::testing::UnorderedElementsAre(Message{CollectiveKind::kBroadcast, "tp", block},
                                              Message{CollectiveKind::kBroadcast, "dp", block},
                                              Message{CollectiveKind::kReduce, "cp", block}));
  int64_t most = 0;
  for (const ClassMemory& memory : ReplayMemory(graph, RuntimeParams())) {
    most = std::max(most, memory.allocated);
  }
  EXPECT_EQ(most, 3 * block * 2);
}

TEST(DistributedProductsTest, LayersMoveLessInMoreMemory) {
  // 32 processors as 4 x 4 x 2: a layer's blocks of k turn over two ranks.
  const ExecutionGraph graph = Compiled(Layered(kSize, 4, 2));
  const int64_t block = kSize / 4 * kSize / 4;
  const auto messages = MessagesOf(graph, "product.F");
  std::map<std::string, int64_t> sent;
  for (const Message& message : messages) {
    sent[std::string(kCollectiveKindNames[message.kind])] += message.elements;
  }
  EXPECT_EQ(sent["permute"], 2 * block);
  EXPECT_EQ(sent["reduce"], block);
}

TEST(DistributedProductsTest, AllMakeTheProduct) {
  EXPECT_EQ(OracleOf(Summa(8, 4)), "");
  EXPECT_EQ(OracleOf(Cannon(8, 4)), "");
  EXPECT_EQ(OracleOf(Pumma(8, 4)), "");
  EXPECT_EQ(OracleOf(Layered(16, 4, 2)), "");
  EXPECT_EQ(OracleOf(Layered(16, 2, 2)), "");
}

// A contraction of higher order in parts of two of its dims in turn.
TEST(DistributedProductsTest, ContractionsOfAnyOrder) {
  const auto graph = BuildProgram({"product",
                                   {{"i", 8}, {"j", 8}, {"k", 8}, {"l", 8}},
                                   {{"B", {"i", "j", "k"}}, {"C", {"k", "l"}}},
                                   {"A[i,j,l] += B[i,j,k] * C[k,l]"}});
  ASSERT_OK(graph.status());
  const auto turning = [&] {
    PlanUnderTest plan = PlanUnderTest::Of(*graph);
    plan.ByHand().Dp(2).Tp(2).MicroBatches(1, 1);
    SplitAll(plan, "B", {{"dp", {"j"}}, {"tp", {"k"}}});
    SplitAll(plan, "C", {{"dp", {"k"}}, {"tp", {"l"}}});
    SplitAll(plan, "A", {{"dp", {"j"}}, {"tp", {"l"}}});
    LoopDirective& loop = (*plan.tree().Node("product.A"))->loop;
    loop.communicate = {{"B", "k"}, {"C", "k"}};
    loop.rotate["k"] = {"dp", "tp"};
    return plan;
  };
  EXPECT_EQ(OracleOf(turning()), "");
  const auto messages = MessagesOf(Compiled(turning()), "product.F");
  EXPECT_THAT(messages, ElementsAre(Message{CollectiveKind::kPermute, "tp", 8 * 4 * 4},
                                    Message{CollectiveKind::kPermute, "dp", 4 * 4}));
}

TEST(DistributedProductsTest, UnlikeGridsHaveUnlikeParts) {
  PlanUnderTest plan = Cannon(16, 4);
  plan.Tp(2);
  EXPECT_THAT(plan.Compile().status().message(), HasSubstr("Cut both alike"));
}

}  // namespace
}  // namespace plancast
