#include "collectives/synthesis/bounds.h"

#include <random>
#include <vector>

#include "collectives/synthesis/schedule_search.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

TEST(Bounds, OfAnAllGatherCountWhatEntersANode) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Named("dgx1"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem,
                       MakeProblem(ProgramKind::kAllGather, 8, 1, 0));
  EXPECT_EQ(StepsBound(graph, problem), 2);
  const RoundsBound bound = BoundRounds(graph, problem);
  EXPECT_EQ(bound.rounds_per_chunk, (Ratio{7, 6}));
  EXPECT_EQ(bound.reason, "7 chunks enter {0} over links of width 6");
}

// In two steps a DGX-1's chunks cannot flow, however rounds are dealt, below 3/2
// rounds per chunk.
TEST(Bounds, FlowsOfTwoStepsNeedThreeHalves) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Named("dgx1"));
  for (int32_t rounds = 2; rounds <= 12; ++rounds) {
    for (int32_t chunks = 1; chunks <= 12; ++chunks) {
      ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem,
                           MakeProblem(ProgramKind::kAllGather, 8, chunks, 0));
      bool exist = false;
      for (int32_t first = 1; first < rounds; ++first) {
        exist = exist || FlowsExist(graph, problem, {first, rounds - first}, nullptr);
      }
      if (2 * rounds < 3 * chunks) {
        EXPECT_FALSE(exist) << rounds << " " << chunks;
      }
      if (rounds == 3 && chunks == 2) {
        EXPECT_TRUE(exist);
      }
    }
  }
}

// On small random graphs: nothing is found below a bound, and where flows do not
// exist the search, which does not ask for them, agrees.
TEST(Bounds, NothingBeatsThem) {
  std::mt19937_64 random(TestSeed(7));
  int found = 0, refuted = 0;
  for (int i = 0; i < 60; ++i) {
    const int32_t nodes = 3 + static_cast<int32_t>(random() % 2);
    std::vector<GraphLink> links;
    for (int32_t v = 0; v < nodes; ++v) links.push_back({v, (v + 1) % nodes, 1});
    for (int extra = static_cast<int>(random() % 5); extra > 0; --extra) {
      const auto from = static_cast<int32_t>(random() % nodes);
      const auto to = static_cast<int32_t>((from + 1 + random() % (nodes - 1)) % nodes);
      links.push_back({from, to, 1});
    }
    ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Create(nodes, links));
    const ProgramKind kinds[] = {ProgramKind::kAllGather, ProgramKind::kAllToAll,
                                 ProgramKind::kBroadcast, ProgramKind::kGather};
    const ProgramKind kind = kinds[random() % 4];
    ASSERT_OK_AND_ASSIGN(const SynthesisProblem one, MakeProblem(kind, nodes, 1, 0));
    const Ratio bound = BoundRounds(graph, one).rounds_per_chunk;
    for (int32_t steps = 1; steps <= nodes; ++steps) {
      for (int32_t rounds = steps; rounds <= steps + 2; ++rounds) {
        const int32_t chunks = 1 + static_cast<int32_t>(random() % 2);
        ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem, MakeProblem(kind, nodes, chunks, 0));
        const SearchResult result = *FindSchedule(graph, problem, steps, rounds, 1'000'000);
        if (result.answer == SearchResult::Answer::kFound) {
          ++found;
          EXPECT_OK(VerifySchedule(graph, problem, result.schedule));
          EXPECT_GE(steps, StepsBound(graph, problem));
          EXPECT_FALSE((Ratio{rounds, chunks} < bound));
        } else {
          ++refuted;
          EXPECT_EQ(result.answer, SearchResult::Answer::kNone);
        }
      }
    }
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(refuted, 100);
}

}  // namespace
}  // namespace plancast
