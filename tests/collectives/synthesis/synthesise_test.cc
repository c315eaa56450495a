#include "collectives/synthesis/synthesise.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/programs/check/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Answer = SearchResult::Answer;
using Shape = std::tuple<int32_t, int32_t, int32_t>;  // steps, rounds, chunks

LinkGraph Graph(absl::string_view name) { return LinkGraph::Named(name).value(); }

Synthesis Asked(const LinkGraph& graph, ProgramKind kind, int32_t steps, int32_t rounds,
                int32_t chunks) {
  SynthesisRequest request;
  request.kind = kind;
  request.steps = steps;
  request.rounds = rounds;
  request.chunks = chunks;
  return Synthesise(graph, request).value();
}

std::vector<Shape> Shapes(const std::vector<ParetoFront::Point>& points) {
  std::vector<Shape> out;
  for (const auto& point : points) out.emplace_back(point.steps, point.rounds, point.chunks);
  return out;
}

Ratio Rounds(absl::string_view graph, ProgramKind kind) {
  return BoundsOf(Graph(graph), kind, 0).value().rounds.rounds_per_chunk;
}

// SCCL, section 5: on a DGX-1 an all-gather takes two steps and 7/6 rounds per
// chunk at least, (2 steps, 3 rounds, 2 chunks) and (3, 7, 6) are the Pareto-
// optimal ones, and 3 chunks in 2 steps and 4 rounds are too many.
TEST(Synthesise, FindsTheTwoParetoOptimalAllGathersOfDgx1) {
  ASSERT_OK_AND_ASSIGN(const ParetoFront front, FindParetoFront(Graph("dgx1"), {}));
  EXPECT_EQ(front.bounds.steps, 2);
  EXPECT_EQ(front.bounds.rounds.rounds_per_chunk, (Ratio{7, 6}));
  EXPECT_THAT(Shapes(front.points), ElementsAre(Shape{2, 3, 2}, Shape{3, 7, 6}));
  EXPECT_TRUE(front.complete);
  for (const auto& point : front.others) {
    EXPECT_EQ(point.synthesis.answer, Answer::kNone);
    EXPECT_EQ(point.synthesis.proof, "bound");
  }
  EXPECT_THAT(Shapes(front.others), ::testing::Contains(Shape{2, 4, 3}));
}

TEST(Synthesise, KnowsWhichAllGathersOfDgx1Exist) {
  const LinkGraph dgx1 = Graph("dgx1");
  for (const auto& [steps, rounds, chunks] :
       {Shape{2, 2, 1}, {2, 3, 2}, {3, 4, 3}, {3, 5, 4}, {3, 6, 5}, {3, 7, 6}}) {
    EXPECT_EQ(Asked(dgx1, ProgramKind::kAllGather, steps, rounds, chunks).answer, Answer::kFound)
        << steps << " " << rounds << " " << chunks;
  }
  EXPECT_EQ(Asked(dgx1, ProgramKind::kAllGather, 2, 4, 3).answer, Answer::kNone);
  EXPECT_EQ(Asked(dgx1, ProgramKind::kAllGather, 1, 9, 1).answer, Answer::kNone);
  EXPECT_EQ(Asked(dgx1, ProgramKind::kAllGather, 4, 8, 7).answer, Answer::kNone);
}

TEST(Synthesise, CombiningCollectivesAreInversions) {
  const LinkGraph dgx1 = Graph("dgx1");
  EXPECT_EQ(Rounds("dgx1", ProgramKind::kReduceScatter), (Ratio{7, 6}));
  EXPECT_EQ(Rounds("dgx1", ProgramKind::kAllReduce), (Ratio{7, 3}));
  for (const ProgramKind kind : {ProgramKind::kReduceScatter, ProgramKind::kReduce}) {
    const Synthesis found = Asked(dgx1, kind, 2, 3, 2);
    ASSERT_EQ(found.answer, Answer::kFound);
    EXPECT_OK(CheckChunkProgram(found.program));
  }
  const Synthesis all = Asked(dgx1, ProgramKind::kAllReduce, 6, 14, 6);
  ASSERT_EQ(all.answer, Answer::kFound);
  EXPECT_EQ(all.program.chunks, 48);
  EXPECT_OK(CheckChunkProgram(all.program));
  EXPECT_EQ(all.rounds.size(), 6);
}

TEST(Synthesise, GatherScatterAndAllToAllOfDgx1) {
  const LinkGraph dgx1 = Graph("dgx1");
  EXPECT_EQ(Rounds("dgx1", ProgramKind::kGather), (Ratio{7, 6}));
  EXPECT_EQ(Rounds("dgx1", ProgramKind::kScatter), (Ratio{7, 6}));
  // 16 messages must cross to the other half over six links; SCCL counts hops: 5/3.
  EXPECT_EQ(Rounds("dgx1", ProgramKind::kAllToAll), (Ratio{8, 3}));
  const Synthesis none = Asked(dgx1, ProgramKind::kAllToAll, 2, 2, 1);
  EXPECT_EQ(none.answer, Answer::kNone);
  for (const auto& [kind, steps, rounds, chunks] :
       {std::make_tuple(ProgramKind::kAllToAll, 2, 3, 1),
        {ProgramKind::kGather, 3, 7, 6},
        {ProgramKind::kScatter, 3, 7, 6},
        {ProgramKind::kBroadcast, 3, 5, 12}}) {
    SCOPED_TRACE(kProgramKindNames[kind]);
    const Synthesis found = Asked(dgx1, kind, steps, rounds, chunks);
    ASSERT_EQ(found.answer, Answer::kFound);
    EXPECT_OK(CheckChunkProgram(found.program));
  }
}

struct Known {
  const char* graph;
  int32_t steps;  // diameter
  Ratio rounds;   // (n - 1) / links into a node
  std::vector<Shape> front;
};

// Rings and hypercubes have bandwidth-optimal all-gathers of as few steps as their
// diameter (both halves of a ring at once; recursive doubling with the dimensions
// rotated); so has a full mesh, in one.
TEST(Synthesise, MeetsTheBoundsOfOtherTopologies) {
  for (const Known& known : std::vector<Known>{{"ring:8", 4, {7, 2}, {{4, 7, 2}}},
                                               {"ring:5", 2, {2, 1}, {{2, 2, 1}}},
                                               {"hypercube:8", 3, {7, 3}, {{3, 7, 3}}},
                                               {"full:4", 1, {1, 1}, {{1, 1, 1}}},
                                               {"mesh:2x4", 4, {7, 2}, {{4, 7, 2}}}}) {
    SCOPED_TRACE(known.graph);
    ASSERT_OK_AND_ASSIGN(const ParetoFront front, FindParetoFront(Graph(known.graph), {}));
    EXPECT_EQ(front.bounds.steps, known.steps);
    EXPECT_EQ(front.bounds.rounds.rounds_per_chunk, known.rounds);
    EXPECT_EQ(Shapes(front.points), known.front);
    EXPECT_TRUE(front.complete);
  }
}

// A star: everything that is not the hub's passes the hub's one link to a leaf.
TEST(Synthesise, UnevenTopologies) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph star,
                       LinkGraph::Create(4, {{0, 1}, {1, 0}, {0, 2}, {2, 0}, {0, 3}, {3, 0}}));
  ASSERT_OK_AND_ASSIGN(const SynthesisBounds bounds, BoundsOf(star, ProgramKind::kAllGather, 0));
  EXPECT_EQ(bounds.steps, 2);
  EXPECT_EQ(bounds.rounds.rounds_per_chunk, (Ratio{3, 1}));
  EXPECT_EQ(Asked(star, ProgramKind::kAllGather, 2, 3, 1).answer, Answer::kFound);
  EXPECT_EQ(Asked(star, ProgramKind::kAllGather, 3, 2, 1).answer, Answer::kNone);
  // One-way ring: a step for every hop.
  ASSERT_OK_AND_ASSIGN(const LinkGraph ring,
                       LinkGraph::Create(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}));
  EXPECT_EQ(Asked(ring, ProgramKind::kAllGather, 2, 9, 1).answer, Answer::kNone);
  EXPECT_EQ(Asked(ring, ProgramKind::kAllGather, 3, 3, 1).answer, Answer::kFound);
  EXPECT_EQ(Asked(ring, ProgramKind::kReduceScatter, 3, 3, 1).answer, Answer::kFound);
}

TEST(Synthesise, AStepHasItsRoundsAndNoMore) {
  const Synthesis found = Asked(Graph("dgx1"), ProgramKind::kAllGather, 3, 7, 6);
  ASSERT_EQ(found.answer, Answer::kFound);
  int32_t rounds = 0;
  for (const int32_t each : found.rounds) rounds += each;
  EXPECT_EQ(rounds, 7);
  // Every GPU takes in 42 chunks over links that pass 42 in seven rounds.
  for (const RankProgram& rank : found.program.ranks) {
    int32_t received = 0;
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps) received += Receives(step.op) ? 1 : 0;
    }
    EXPECT_EQ(received, 42);
  }
}

TEST(Synthesise, SaysWhatCannotBeAsked) {
  const LinkGraph ring = Graph("ring:4");
  const auto refusal = [&](ProgramKind kind, int32_t steps, int32_t rounds, int32_t chunks) {
    SynthesisRequest request;
    request.kind = kind;
    request.steps = steps;
    request.rounds = rounds;
    request.chunks = chunks;
    return std::string(Synthesise(ring, request).status().message());
  };
  EXPECT_THAT(refusal(ProgramKind::kAllReduce, 3, 4, 1), HasSubstr("both are even"));
  EXPECT_THAT(refusal(ProgramKind::kSendRecv, 1, 1, 1), HasSubstr("cannot synthesise send_recv"));
  EXPECT_THAT(refusal(ProgramKind::kAllGather, 0, 1, 1), HasSubstr("steps is 0"));
  EXPECT_THAT(refusal(ProgramKind::kAllGather, 1, 1, 1000), HasSubstr("chunks is 1000"));
}

}  // namespace
}  // namespace plancast
