// What the clock cannot hold is refused in words, whatever it is that takes long.

#include "executor/simulate/clock.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

// A kernel of so many seconds in each micro-batch.
absl::StatusOr<double> Makespan(double seconds, int micro_batches, bool shortcuts,
                                const HostParams& host = {}, int layers = 1) {
  GraphBuilder b({{"tp", 2}});
  b.Block("work").Kernel(seconds).Kernel(seconds / 2).Kernel(seconds / 2).OutPort(2);
  b.Program("all");
  for (int m = 0; m < micro_batches; ++m) b.Run("work", {}, layers, m);
  const Machine machine = *Machine::Create(UnitMachine(1, 2));
  const auto simulation = Simulation::Run(b.Build(), machine, UnitComm(machine), Form::kFolded,
                                          host, /*interference=*/0.3, shortcuts);
  if (!simulation.ok()) return simulation.status();
  return (*simulation)->makespan();
}

constexpr absl::StatusCode kRefused = absl::StatusCode::kInvalidArgument;
constexpr char kWords[] = "more than 26 days";

TEST(ClockTest, HoldsDays) {
  for (const bool shortcuts : {true, false}) {
    EXPECT_THAT(Makespan(5000, 200, shortcuts), IsOkAndHolds(2e6));
  }
}

TEST(ClockTest, RefusesKernelsOfWeeks) {
  for (const bool shortcuts : {true, false}) {
    EXPECT_THAT(Makespan(1e6, 1, shortcuts), StatusIs(kRefused, HasSubstr(kWords)));
    EXPECT_THAT(Makespan(1e30, 1, shortcuts), StatusIs(kRefused, HasSubstr(kWords)));
  }
}

TEST(ClockTest, RefusesManyLayers) {
  EXPECT_THAT(Makespan(1e5, 1, true, {}, 1000), StatusIs(kRefused, HasSubstr(kWords)));
}

TEST(ClockTest, RefusesManyMicroBatches) {
  for (const bool shortcuts : {true, false}) {
    EXPECT_THAT(Makespan(1e5, 100, shortcuts), StatusIs(kRefused, HasSubstr(kWords)));
    EXPECT_THAT(Makespan(5000, 100'000, shortcuts), StatusIs(kRefused, HasSubstr(kWords)));
  }
}

TEST(ClockTest, RefusesHostsThatTakeWeeks) {
  HostParams host;
  host.start_ps = 2 * kLongestPs;
  EXPECT_THAT(Makespan(1, 1, true, host), StatusIs(kRefused, HasSubstr(kWords)));
  host = {};
  host.launch_ps = kLongestPs / 100;
  EXPECT_THAT(Makespan(1, 50, true, host), StatusIs(kRefused, HasSubstr(kWords)));
}

}  // namespace
}  // namespace plancast
