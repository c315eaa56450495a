#include "collectives/synthesis/schedule_search.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using Answer = SearchResult::Answer;
using Holders = std::vector<uint32_t>;  // nodes that have each chunk

// Every set of sends that a step allows, link by link; only those that fill their
// links as far as they can, as more never hurts.
void Try(const LinkGraph& graph, const Holders& before, int32_t rounds, size_t link, Holders& after,
         std::set<Holders>& out) {
  if (link == graph.links().size()) {
    out.insert(after);
    return;
  }
  const GraphLink& ends = graph.links()[link];
  std::vector<size_t> useful;
  for (size_t c = 0; c < before.size(); ++c) {
    if (((before[c] >> ends.from) & 1) != 0 && ((after[c] >> ends.to) & 1) == 0)
      useful.push_back(c);
  }
  const size_t most = std::min<size_t>(useful.size(), static_cast<size_t>(ends.width * rounds));
  for (uint32_t choice = 0; choice < (1u << useful.size()); ++choice) {
    if (static_cast<size_t>(__builtin_popcount(choice)) != most) continue;
    Holders next = after;
    for (size_t i = 0; i < useful.size(); ++i) {
      if (((choice >> i) & 1) != 0) next[useful[i]] |= uint32_t{1} << ends.to;
    }
    Try(graph, before, rounds, link + 1, next, out);
  }
}

bool Exists(const LinkGraph& graph, const SynthesisProblem& problem, const Holders& holders,
            int32_t steps, int32_t rounds) {
  bool done = true;
  for (size_t c = 0; c < holders.size(); ++c) {
    done = done && (problem.need(static_cast<int32_t>(c)).needed & ~holders[c]) == 0;
  }
  if (done) return true;
  for (int32_t first = 1; steps > 0 && first + steps - 1 <= rounds; ++first) {
    if (steps == 1 && first != rounds) continue;
    std::set<Holders> reached;
    Holders after = holders;
    Try(graph, holders, first, 0, after, reached);
    for (const Holders& next : reached) {
      if (Exists(graph, problem, next, steps - 1, rounds - first)) return true;
    }
  }
  return false;
}

// Against trying everything, on small random graphs.
TEST(ScheduleSearch, AgreesWithTryingEverything) {
  std::mt19937_64 random(TestSeed(11));
  int found = 0, none = 0;
  for (int i = 0; i < 40; ++i) {
    const int32_t nodes = 3 + static_cast<int32_t>(random() % 2);
    std::vector<GraphLink> links;
    for (int32_t v = 0; v < nodes; ++v) links.push_back({v, (v + 1) % nodes, 1});
    for (int extra = static_cast<int>(random() % 4); extra > 0; --extra) {
      const auto from = static_cast<int32_t>(random() % nodes);
      links.push_back({from, static_cast<int32_t>((from + 1 + random() % (nodes - 1)) % nodes), 1});
    }
    ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Create(nodes, links));
    const ProgramKind kinds[] = {ProgramKind::kAllGather, ProgramKind::kBroadcast,
                                 ProgramKind::kGather, ProgramKind::kScatter};
    const ProgramKind kind = kinds[random() % 4];
    const int32_t copies = kind == ProgramKind::kAllGather ? 1 : 2;
    ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem, MakeProblem(kind, nodes, copies, 0));
    Holders start;
    for (int32_t c = 0; c < problem.chunks(); ++c) {
      start.push_back(uint32_t{1} << problem.need(c).origin);
    }
    for (int32_t steps = 1; steps <= 3; ++steps) {
      for (int32_t rounds = steps; rounds <= steps + 1; ++rounds) {
        const SearchResult result = *FindSchedule(graph, problem, steps, rounds, 1'000'000);
        const bool exists = Exists(graph, problem, start, steps, rounds);
        ASSERT_EQ(result.answer, exists ? Answer::kFound : Answer::kNone)
            << kProgramKindNames[kind] << " on graph " << i << ": " << steps << " " << rounds;
        ++(exists ? found : none);
      }
    }
  }
  EXPECT_GT(found, 30);
  EXPECT_GT(none, 30);
}

TEST(ScheduleSearch, SaysWhatProvesThatThereIsNone) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph dgx1, LinkGraph::Named("dgx1"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem gathers,
                       MakeProblem(ProgramKind::kAllGather, 8, 3, 0));
  EXPECT_EQ(FindSchedule(dgx1, gathers, 2, 4, 1000)->proof, "bound");
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem exchanges,
                       MakeProblem(ProgramKind::kAllToAll, 8, 1, 0));
  EXPECT_EQ(FindSchedule(dgx1, exchanges, 2, 2, 100000)->proof, "search");
}

TEST(ScheduleSearch, GivesUpWhenToldTo) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph dgx1, LinkGraph::Named("dgx1"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem,
                       MakeProblem(ProgramKind::kAllGather, 8, 6, 0));
  const SearchResult result = *FindSchedule(dgx1, problem, 3, 7, 2);
  EXPECT_EQ(result.answer, Answer::kGaveUp);
  EXPECT_EQ(result.conflicts, 2);
}

TEST(ScheduleSearch, VerifyFindsWhatIsWrong) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph ring, LinkGraph::Named("ring:4"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem problem,
                       MakeProblem(ProgramKind::kAllGather, 4, 1, 0));
  const SearchResult result = *FindSchedule(ring, problem, 2, 2, 1000);
  ASSERT_EQ(result.answer, Answer::kFound);
  EXPECT_OK(VerifySchedule(ring, problem, result.schedule));
  SynchronousSchedule early = result.schedule;
  std::swap(early.steps[0], early.steps[1]);
  EXPECT_FALSE(VerifySchedule(ring, problem, early).ok());
  SynchronousSchedule short_of = result.schedule;
  short_of.steps[1].sends.pop_back();
  EXPECT_FALSE(VerifySchedule(ring, problem, short_of).ok());
  SynchronousSchedule crowded = result.schedule;
  crowded.steps[0].sends.push_back(crowded.steps[0].sends[0]);
  EXPECT_FALSE(VerifySchedule(ring, problem, crowded).ok());
}

TEST(FindScheduleTest, RefusesWhatIsTooLargeToSearch) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph full, LinkGraph::Named("full:16"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem exchange,
                       MakeProblem(ProgramKind::kAllToAll, 16, 64, 0));
  EXPECT_THAT(FindSchedule(full, exchange, 32, 256, 1000),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("it takes up to 1000000. Ask for fewer chunks or steps.")));
  ASSERT_OK_AND_ASSIGN(const LinkGraph ring, LinkGraph::Named("ring:4"));
  ASSERT_OK_AND_ASSIGN(const SynthesisProblem gather,
                       MakeProblem(ProgramKind::kAllGather, 4, 1, 0));
  EXPECT_THAT(FindSchedule(ring, gather, 16, 256, 1000),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("256 rounds can be dealt to 16 steps in more than 10000 ways")));
}

}  // namespace
}  // namespace plancast
