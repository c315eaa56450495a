#include "compiler/program/repeated_turns.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

// A stage whose passes receive, run behind what passes before left, and send.
class Stage {
 public:
  // `blocking`: what runs waits for all transfers before it.
  Stage(int32_t chunks, bool blocking) : blocking_(blocking), chunks_(chunks) {}

  // Steps that were copied are counted in `copied`, unless that is null: none are.
  Program Write(const std::vector<ScheduleStep>& schedule, int64_t most, size_t* copied) {
    Program program;
    BlockCatalogue catalogue;
    ProgramWriter writer(&catalogue, /*assembly=*/nullptr, &program);
    RepeatedTurns turns(&writer);
    const LastPasses last(schedule, chunks_);
    int32_t most_micro_batch = 0;
    for (const ScheduleStep& step : schedule) {
      most_micro_batch = std::max(most_micro_batch, step.micro_batch);
    }
    std::vector<std::vector<int32_t>> done(3 * chunks_,
                                           std::vector<int32_t>(most_micro_batch + 1, -1));
    if (copied != nullptr) turns.Begin(schedule, last, most);
    std::vector<bool> was_run(3 * chunks_);
    for (size_t i = 0; i < schedule.size(); ++i) {
      const size_t before = i;
      i += turns.Append(i);
      if (copied != nullptr) *copied += i - before;
      const ScheduleStep& step = schedule[i];
      const auto kind = static_cast<size_t>(step.phase) * chunks_ + step.chunk;
      if (!was_run[kind]) turns.NoteOther();
      was_run[kind] = true;
      const int32_t feeder = step.phase == Phase::kWeight ? -1 : Transfer(writer, step, 0);
      std::vector<Join> joins;
      if (step.phase != Phase::kForward) {
        joins.push_back({done[kind - chunks_][step.micro_batch], -1, -1});
      }
      const int32_t block = BlockOf(writer, BlockKey::kForward, static_cast<int64_t>(kind));
      const int32_t own = writer.AppendCompute(block, step.phase, step, 0, 1, feeder, joins);
      turns.Leave(&done[kind], step.micro_batch, own);
      if (step.phase != Phase::kWeight) Transfer(writer, step, 1);
      if (last.GoesBackAt(i)) {
        const Join behind{own, -1, -1};
        writer.Append(BlockOf(writer, BlockKey::kReduction, step.chunk), Phase::kComm, 0,
                      step.chunk, absl::MakeConstSpan(&behind, 1));
      }
    }
    return program;
  }

 private:
  static int32_t BlockOf(ProgramWriter& writer, BlockKey::Kind kind, int64_t number) {
    return writer.BlockOf(BlockKey{kind, number, 0}, [&] {
      BlockBuilder builder("block", 1);
      builder.AddOutPort(builder.AddKernel({}, Purpose::kForward, "kernel", {~0}));
      return std::move(builder).Build();
    });
  }

  int32_t Transfer(ProgramWriter& writer, const ScheduleStep& step, int64_t sends) {
    const int64_t way = 2 * (2 * step.chunk + static_cast<int64_t>(step.phase)) + sends;
    const int32_t block = BlockOf(writer, BlockKey::kCrossing, way);
    const Join behind{writer.last_compute(), -1, -1};
    const bool waits = (blocking_ || sends == 1) && writer.last_compute() >= 0;
    const int32_t own = writer.Append(block, Phase::kComm, step.micro_batch, step.chunk,
                                      absl::MakeConstSpan(&behind, waits ? 1 : 0));
    writer.Meet(own, 1 + way * 1000 + step.micro_batch);
    if (blocking_) writer.HoldCompute(own);
    return own;
  }

  const bool blocking_;
  const int32_t chunks_;
};

void ExpectSame(const Program& a, const Program& b) {
  ASSERT_EQ(a.instances.size(), b.instances.size());
  ASSERT_EQ(a.joins.size(), b.joins.size());
  for (size_t i = 0; i < a.instances.size(); ++i) {
    const Instance &x = a.instances[i], &y = b.instances[i];
    ASSERT_TRUE(x.block == y.block && x.phase == y.phase && x.chunk == y.chunk &&
                x.micro_batch == y.micro_batch && x.rendezvous == y.rendezvous &&
                x.join_begin == y.join_begin && x.join_end == y.join_end &&
                x.layer_begin == y.layer_begin && x.layer_count == y.layer_count)
        << "instance " << i;
  }
  for (size_t j = 0; j < a.joins.size(); ++j) {
    const Join &x = a.joins[j], &y = b.joins[j];
    ASSERT_TRUE(x.from == y.from && x.from_port == y.from_port && x.to_port == y.to_port)
        << "join " << j;
  }
}

// Law: whether turns are copied or written pass by pass, the program is one.
TEST(RepeatedTurnsTest, AreWhatIsWrittenPassByPass) {
  struct Case {
    Schedule schedule;
    int64_t chunks;
  };
  for (const Case& c :
       {Case{Schedule::k1f1b, 1}, Case{Schedule::kEager1f1b, 1}, Case{Schedule::kGpipe, 1},
        Case{Schedule::kInterleaved, 3}, Case{Schedule::kBreadthFirst, 2}, Case{Schedule::kZbH1, 1},
        Case{Schedule::kZb1p, 1}, Case{Schedule::kZb2p, 1}}) {
    for (const int64_t stages : {2, 4, 5}) {
      for (const int64_t micro_batches : {int64_t{1}, stages, 4 * stages, 12 * stages + 1}) {
        const PipelineSchedule schedule(c.schedule, stages, micro_batches, c.chunks);
        for (int64_t s = 0; s < stages; ++s) {
          for (const bool blocking : {false, true}) {
            SCOPED_TRACE(std::string(kScheduleNames[c.schedule]) + " " + std::to_string(s) + "/" +
                         std::to_string(stages) + ", " + std::to_string(micro_batches));
            Stage stage(static_cast<int32_t>(c.chunks), blocking);
            const std::vector<ScheduleStep> steps = schedule.OfStage(s);
            size_t copied = 0;
            ExpectSame(stage.Write(steps, stages, nullptr), stage.Write(steps, stages, &copied));
            // GPipe and breadth first have no turns in their middle.
            const bool turns = c.schedule != Schedule::kGpipe &&
                               c.schedule != Schedule::kBreadthFirst &&
                               c.schedule != Schedule::kInterleaved;
            if (turns && micro_batches > 12 * stages) EXPECT_GT(copied, steps.size() / 3);
          }
        }
      }
    }
  }
}

// A pass that is not like those before keeps its turn from being copied.
TEST(RepeatedTurnsTest, AreNotThoseWithOtherPasses) {
  std::vector<ScheduleStep> steps;
  for (int32_t m = 0; m < 12; ++m) {
    steps.push_back({Phase::kForward, m, 0});
    steps.push_back({Phase::kBackward, m, 0});
  }
  Program program;
  BlockCatalogue catalogue;
  ProgramWriter writer(&catalogue, /*assembly=*/nullptr, &program);
  RepeatedTurns turns(&writer);
  turns.Begin(steps, LastPasses(steps, 1), 1);
  const int32_t block = writer.BlockOf(BlockKey{}, [] {
    BlockBuilder builder("block");
    builder.AddKernel({}, Purpose::kForward, "kernel", {});
    return std::move(builder).Build();
  });
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(turns.Append(i), 0u) << i;
    writer.AppendCompute(block, steps[i].phase, steps[i], 0, 1, /*feeder=*/-1);
    turns.NoteOther();
  }
}

}  // namespace
}  // namespace plancast
