// The simulator on kernels and communications that slow each other, with times
// worked out by hand: folded, refined and flat, with and without shortcuts.

#include "executor/executor.h"
#include "gtest/gtest.h"
#include "tests/executor/both_ways_cases.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

TEST(BothWays, KernelsAndCommunicationsAreSlowOnlyWhileTheyOverlap) {
  for (const BothWaysCase& by_hand : BothWaysCases()) {
    const Machine machine = *Machine::Create(by_hand.machine);
    for (const Form form : {Form::kFolded, Form::kRefined, Form::kFlat}) {
      for (const bool shortcuts : {true, false}) {
        SCOPED_TRACE(testing::Message() << by_hand.name << ", form " << static_cast<int>(form)
                                        << (shortcuts ? "" : ", without shortcuts"));
        const auto s = Simulation::Run(by_hand.graph, machine, CommOf(by_hand, machine), form,
                                       by_hand.host, by_hand.interference, shortcuts,
                                       LinkSharing::kMaxMin, by_hand.comm_interference);
        ASSERT_TRUE(s.ok()) << s.status();
        for (int e = 0; e < static_cast<int>((*s)->sim().entities.size()); ++e) {
          const int64_t rank = (*s)->sim().entities[e].representative;
          EXPECT_EQ((*s)->unfolded(e).end, by_hand.ends[rank]) << "rank " << rank;
        }
      }
    }
  }
}

// 40 GB over interfaces of 10 GB/s, gradients of a kernel, alongside one of 1 s.
TEST(BothWays, ExecutionTakesTheProfilesFigureOrTheGpus) {
  const Machine machine = *Machine::Create(UnitMachine(2, 2));
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("B").Kernel(1.0);
  b.Comm(CollectiveKind::kAllReduce, 40'000'000'000, {0}, {0}, Purpose::kDp, StreamKind::kGradComm);
  b.Kernel(1.0);
  b.Program("all").Run("B");
  const ExecutionGraph graph = b.Build();
  RuntimeParams runtime;
  const auto makespan = [&] {
    const auto result = Execute(graph, machine, UnitCost(), runtime);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->makespan_ps;
  };
  const int64_t alone = makespan();
  runtime.comm_interference = 0.25;
  // For a second, less its latency, at 0.8 of the rate it falls 0.2 s behind.
  EXPECT_NEAR(static_cast<double>(makespan() - alone), 0.2e12, 2e9);
  // These kernels leave memory alone.
  runtime.comm_interference = std::nullopt;
  EXPECT_EQ(makespan(), alone);
}

}  // namespace
}  // namespace plancast
