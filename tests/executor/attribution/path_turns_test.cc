// A path back through periods that were left out: turn by turn it is the same.

#include "executor/attribution/path_turns.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/attribution/critical_path.h"
#include "gtest/gtest.h"
#include "tests/executor/expect_same.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

using Step = PathTurns::Step;

constexpr int kInstances = 3;  // of a micro-batch on each stage

std::unique_ptr<Simulation> Go(const ExecutionGraph& graph, bool shortcuts) {
  const Machine machine = *Machine::Create(UnitMachine(1, 2));
  auto simulation = Simulation::Run(graph, machine, UnitComm(machine), Form::kFolded, {},
                                    /*interference=*/0, shortcuts);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

// Two stages take turns: what one computes is sent to the other and back. Each micro-batch waits
// for all that the first stage computed of one `back` before it, too, or of the first.
ExecutionGraph ThereAndBack(int micro_batches, int back) {
  GraphBuilder b({{"pp", 2}});
  const auto transfer = [&](const char* name, StreamKind stream, bool sends) {
    b.Block(name, 1).Comm(CollectiveKind::kSendRecv, 10'000'000'000, {0},
                          sends ? std::vector<int>{~0} : std::vector<int>{}, Purpose::kPp, stream);
    b.Meets().OutPort(0);
  };
  b.Block("compute", 1).Kernel(0.3, {~0}).Kernel(0.2).OutPort(1);
  transfer("send", StreamKind::kSendNext, true);
  transfer("recv", StreamKind::kRecvPrev, false);
  transfer("send back", StreamKind::kSendPrev, true);
  transfer("recv back", StreamKind::kRecvNext, false);
  std::vector<int> there, and_back;
  b.Program("stage 0", {{0, 0}});
  for (int m = 0; m < micro_batches; ++m) {
    there.push_back(b.Rendezvous());
    and_back.push_back(b.Rendezvous());
    const int first = kInstances * m;
    const int waited = kInstances * std::max(m - back, 0);
    if (m == 0) {
      b.Run("compute", {}, 2, m);
    } else {
      b.Run("compute", {{first - 1, 0, 0}, {waited, -1, -1}}, 2, m);
    }
    b.Run("send", {{first, 0, 0}}, 1, m, there.back());
    b.Run("recv back", {}, 1, m, and_back.back());
  }
  b.Program("stage 1", {{0, 1}});
  for (int m = 0; m < micro_batches; ++m) {
    b.Run("recv", {}, 1, m, there[m]);
    b.Run("compute", {{b.last_instance(), 0, 0}}, 2, m);
    b.Run("send back", {{b.last_instance(), 0, 0}}, 1, m, and_back[m]);
  }
  return b.Build();
}

// A place of a path on the first stage, so many micro-batches before the end of what was left out.
TaskRef At(const SimTrace::Jump& jump, int before) {
  const SimTrace::Repeat& own = jump.repeats[0];
  const int32_t last = (own.first + own.length * jump.periods - 1) / own.length * own.length;
  return {last - own.length * (before + 2), 0, 0};
}

TEST(PathTurnsTest, ATurnIsFoundWhereAPathComesToTheSameTaskAgain) {
  const auto s = Go(ThereAndBack(200, /*back=*/1), true);
  ASSERT_EQ(s->trace().jumps.size(), 1u);
  const SimTrace::Jump& jump = s->trace().jumps[0];
  ASSERT_GE(jump.periods, 150);
  ASSERT_EQ(jump.repeats[0].length, kInstances);
  PathTurns turns(s->input(), s->trace());
  // What comes after the periods left out is of no turn.
  EXPECT_EQ(turns.At(0, {199 * kInstances, 0, 0}), Step::kNothing);
  EXPECT_EQ(turns.At(0, At(jump, 0)), Step::kBegins);
  EXPECT_EQ(turns.At(1, At(jump, 1)), Step::kBegins);  // another stage: later ones may come again
  EXPECT_EQ(turns.At(0, At(jump, 1)), Step::kNothing);
  EXPECT_EQ(turns.At(1, At(jump, 2)), Step::kEnds);
  EXPECT_EQ(turns.instances(), kInstances);
  EXPECT_GE(turns.times(), jump.periods - 10);
  EXPECT_LE(turns.times(), jump.periods);
  // There is no other jump.
  EXPECT_EQ(turns.At(1, At(jump, 3)), Step::kNothing);
}

TEST(PathTurnsTest, TurnsGoNoFurtherThanAllThatTheyWaitForRepeats) {
  for (const int back : {1, 20, 60}) {
    SCOPED_TRACE(testing::Message() << back << " back");
    const auto s = Go(ThereAndBack(200, back), true);
    ASSERT_EQ(s->trace().jumps.size(), 1u);
    const SimTrace::Jump& jump = s->trace().jumps[0];
    PathTurns turns(s->input(), s->trace());
    EXPECT_EQ(turns.At(0, At(jump, 0)), Step::kBegins);
    EXPECT_EQ(turns.At(0, At(jump, 1)), Step::kEnds);
    const int32_t at = At(jump, 1).instance - turns.times() * turns.instances();
    const SimTrace::Repeat& own = jump.repeats[0];
    EXPECT_GE(at - back * kInstances, own.all - own.length);
    EXPECT_LT(at - (back + 3) * kInstances, own.all - own.length);
  }
}

TEST(PathTurnsTest, PathsAreThoseOfAllPeriods) {
  for (const int back : {1, 20, 60, 300}) {
    SCOPED_TRACE(testing::Message() << back << " back");
    const ExecutionGraph graph = ThereAndBack(240, back);
    const auto jumps = Go(graph, true), walks = Go(graph, false);
    EXPECT_GE(jumps->trace().Periods(), 100);
    EXPECT_EQ(walks->trace().Periods(), 0);
    ExpectSameAttribution(*jumps, *walks);
    SimResult path;
    AttributeCriticalPath(jumps->input(), jumps->trace(), path);
    EXPECT_EQ(path.critical_path.total(), jumps->trace().makespan_ps);
  }
}

}  // namespace
}  // namespace plancast
