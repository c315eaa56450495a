// Reasons and timelines of random programs against a replay event by event.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/memory/reasons.h"
#include "executor/memory/replay.h"
#include "executor/memory/timeline.h"
#include "gtest/gtest.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/executor/random_plan.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int kPlans = 300;

template <typename Check>
void ForEachProgram(Check check) {
  const auto seed = static_cast<uint32_t>(TestSeed(1000));
  for (int i = 0; i < kPlans; ++i) {
    RandomPlan plan = DrawPlan(seed + static_cast<uint32_t>(i));
    for (size_t p = 0; p < plan.graph.programs.size(); ++p) {
      SCOPED_TRACE(testing::Message() << "plan " << i << " program " << p);
      plan.graph.programs[p].static_bytes[static_cast<int>(MemoryKind::kParameters)] = 7 * i;
      check(plan.graph, static_cast<int32_t>(p));
    }
  }
}

KindBytes HighestOf(const ExecutionGraph& graph, int32_t program) {
  KindBytes highest;
  std::copy_n(graph.programs[program].static_bytes, kNumMemoryKinds, highest.of);
  for (const ReplayedEvent& event : ReplayEvents(graph, program)) {
    if (event.live.total() > highest.total()) highest = event.live;
  }
  return highest;
}

TEST(HistoryTest, BlockReplayEqualsEventReplay) {
  ForEachProgram([](const ExecutionGraph& graph, int32_t program) {
    const KindBytes highest = HighestOf(graph, program);
    const ClassMemory memory =
        ReplayProgram(graph, program, ProfileBlocks(graph, AllocatorParams()), MemoryOverhead());
    EXPECT_EQ(memory.allocated, highest.total());
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
      EXPECT_EQ(memory.bytes[kind], highest.of[kind]);
    }
    EXPECT_GE(memory.rounding, 0);
  });
}

TEST(HistoryTest, ReasonsSumToThePeakByKind) {
  ForEachProgram([](const ExecutionGraph& graph, int32_t program) {
    const KindBytes highest = HighestOf(graph, program);
    const PeakReasons reasons = ExplainPeak(graph, program);
    EXPECT_EQ(reasons.allocated, highest.total());
    KindBytes sum;
    for (const LiveTensor& tensor : reasons.tensors) {
      sum.of[static_cast<int>(tensor.kind)] += tensor.bytes();
    }
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) EXPECT_EQ(sum.of[kind], highest.of[kind]);
  });
}

// Every point is what the event replay had there.
void ExpectTrue(const MemoryTimeline& timeline, const std::vector<ReplayedEvent>& events,
                const KindBytes& begin) {
  for (const MemoryPoint& point : timeline.points) {
    // The point lies between the last event of tasks before `issued` and those
    // of the task at `issued`.
    bool found = point.issued == 0 && point.bytes.total() == begin.total();
    KindBytes before = begin;
    for (const ReplayedEvent& event : events) {
      if (event.task < point.issued) {
        before = event.live;
      } else if (event.task == point.issued) {
        found |= event.live.total() == point.bytes.total();
      } else {
        break;
      }
    }
    EXPECT_TRUE(found || before.total() == point.bytes.total()) << "at " << point.issued;
  }
}

TEST(HistoryTest, TimelinesKeepThePeakAndTellNoLies) {
  ForEachProgram([](const ExecutionGraph& graph, int32_t program) {
    const std::vector<ReplayedEvent> events = ReplayEvents(graph, program);
    const KindBytes highest = HighestOf(graph, program);
    KindBytes begin;
    std::copy_n(graph.programs[program].static_bytes, kNumMemoryKinds, begin.of);
    for (bool every_layer : {false, true}) {
      for (int64_t max_points : {4, 10, 100'000}) {
        const MemoryTimeline timeline =
            MemoryOverIssueOrder(graph, program, {every_layer, max_points});
        ASSERT_FALSE(timeline.points.empty());
        EXPECT_LE(static_cast<int64_t>(timeline.points.size()), max_points);
        EXPECT_EQ(timeline.points[timeline.peak].bytes.total(), highest.total());
        EXPECT_EQ(timeline.points.front().bytes.total(), begin.total());
        EXPECT_EQ(timeline.points.back().issued, UnfoldedTasks(graph, program));
        EXPECT_TRUE(std::is_sorted(
            timeline.points.begin(), timeline.points.end(),
            [](const MemoryPoint& a, const MemoryPoint& b) { return a.issued < b.issued; }));
        ExpectTrue(timeline, events, begin);
      }
    }
  });
}

}  // namespace
}  // namespace plancast
