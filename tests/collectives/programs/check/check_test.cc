#include "collectives/programs/check/check.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "collectives/programs/program_maker.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ChunkProgram Ring(ProgramKind kind, int32_t n, int32_t channels = 1) {
  ProgramRequest request;
  request.kind = kind;
  request.levels = {n};
  request.channels = channels;
  return *MakeProgram(request);
}

auto Rejects(const std::string& text) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
}

// Two ranks exchange their chunk through two thread blocks each; the second waits
// for the first.
ChunkProgram Swap() {
  ChunkProgram p;
  p.kind = ProgramKind::kAllToAll;
  p.chunks = 2;
  for (int32_t r = 0; r < 2; ++r) {
    RankProgram rank;
    rank.input_chunks = rank.output_chunks = 2;
    rank.scratch_chunks = 1;
    const ChunkSpan other_in{ChunkBuffer::kInput, 1 - r, 1}, scratch{ChunkBuffer::kScratch, 0, 1};
    ThreadBlock exchange{1 - r, 1 - r, 0, {}};
    exchange.steps.push_back({ChunkOp::kSend, other_in, {}, {}});
    exchange.steps.push_back({ChunkOp::kRecv, {}, scratch, {}});
    ThreadBlock copy;
    copy.steps.push_back(
        {ChunkOp::kCopy, {ChunkBuffer::kInput, r, 1}, {ChunkBuffer::kOutput, r, 1}, {}});
    copy.steps.push_back({ChunkOp::kCopy, scratch, {ChunkBuffer::kOutput, 1 - r, 1}, {0, 1}});
    rank.blocks = {exchange, copy};
    p.ranks.push_back(rank);
  }
  return p;
}

TEST(CheckTest, RingsAreRight) {
  for (const ProgramKind kind :
       {ProgramKind::kAllReduce, ProgramKind::kAllGather, ProgramKind::kReduceScatter,
        ProgramKind::kBroadcast, ProgramKind::kReduce}) {
    for (const int32_t n : {1, 2, 3, 8, 17}) {
      for (const int32_t channels : {1, 3}) {
        EXPECT_OK(CheckChunkProgram(Ring(kind, n, channels)));
      }
    }
  }
  EXPECT_OK(CheckChunkProgram(Swap()));
}

TEST(CheckTest, AMissingStepIsNamed) {
  ChunkProgram p = Ring(ProgramKind::kAllReduce, 4);
  p.ranks[2].blocks[0].steps.pop_back();
  EXPECT_THAT(CheckChunkProgram(p),
              Rejects("gpu 1, thread block 0, step 5 sends what nobody receives: gpu 1, thread "
                      "block 0 sends 6 messages to gpu 2, thread block 0 on channel 0, which "
                      "receives 5"));
  p = Ring(ProgramKind::kAllReduce, 4);
  p.ranks[1].blocks[0].steps.erase(p.ranks[1].blocks[0].steps.begin());
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 2, thread block 0, step 6 receives what nobody"));
  p = Swap();
  p.ranks[1].blocks[1].steps.pop_back();
  EXPECT_THAT(CheckChunkProgram(p),
              Rejects("gpu 1 ends with the wrong chunk 0 of the output: nothing; no step of gpu "
                      "1 writes it. all_to_all has to leave chunk 1 of gpu 0 there."));
}

TEST(CheckTest, AWrongBufferIsNamed) {
  ChunkProgram p = Swap();
  p.ranks[0].blocks[0].steps[0].source = {ChunkBuffer::kScratch, 0, 1};
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 0, thread block 0, step 0 reads chunk 0 of the "
                                            "scratch, which nobody wrote before"));
  p = Swap();
  p.ranks[0].blocks[0].steps[0].source.first = 0;
  EXPECT_THAT(CheckChunkProgram(p),
              AllOf(Rejects("gpu 1 ends with the wrong chunk 0 of the output: chunk 0 of gpu 0"),
                    Rejects("gpu 1, thread block 1, step 1 wrote it last")));
  p.ranks[0].blocks[0].steps[0].source.first = 2;
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 0, thread block 0, step 0 reads 1 chunks from 2 "
                                            "on of a buffer, input, that has 2"));
}

TEST(CheckTest, ADoubleReduceIsNamed) {
  ChunkProgram p = Ring(ProgramKind::kReduceScatter, 4);
  p.ranks[2].blocks[0].steps[1].op = ChunkOp::kRecvReduceCopySend;
  p.ranks[2].blocks[0].steps.push_back(
      {ChunkOp::kReduce, {ChunkBuffer::kInput, 0, 1}, {ChunkBuffer::kInput, 2, 1}, {}});
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 2"));
  p = Ring(ProgramKind::kAllReduce, 4);
  for (RankProgram& rank : p.ranks) rank.blocks[0].steps[4].op = ChunkOp::kRecvReduceCopySend;
  EXPECT_THAT(CheckChunkProgram(p), AllOf(Rejects("step 4 adds chunk"), Rejects("a second time")));
}

TEST(CheckTest, ACircleOfWaitingIsNamed) {
  ChunkProgram p = Swap();
  p.ranks[0].blocks[0].steps[1].after = {1, 1};
  EXPECT_THAT(
      CheckChunkProgram(p),
      Rejects("a deadlock: gpu 0, thread block 0, step 1 waits for gpu 0, thread block 1, step 1, "
              "which waits for gpu 0, thread block 0, step 1"));
  p = Swap();
  for (RankProgram& rank : p.ranks) std::swap(rank.blocks[0].steps[0], rank.blocks[0].steps[1]);
  EXPECT_THAT(CheckChunkProgram(p), Rejects("a deadlock: gpu 0, thread block 0, step 0 waits for"));
}

TEST(CheckTest, ARaceIsNamed) {
  ChunkProgram p = Swap();
  p.ranks[1].blocks[1].steps[1].after = {};
  // In the order of this run nobody has written yet, or nothing orders them.
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 1, thread block 1, step 1"));
  p = Swap();
  // A third block reads what the second writes.
  ThreadBlock reader;
  reader.steps.push_back(
      {ChunkOp::kCopy, {ChunkBuffer::kInput, 0, 1}, {ChunkBuffer::kOutput, 0, 1}, {}});
  p.ranks[0].blocks.push_back(reader);
  EXPECT_THAT(CheckChunkProgram(p), Rejects("nothing orders them"));
}

TEST(CheckTest, EndsOfAConnectionHaveToMeet) {
  ChunkProgram p = Ring(ProgramKind::kAllGather, 3);
  p.ranks[1].blocks[0].recv_peer = 2;
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 0, thread block 0, step 0 sends to gpu 1 on "
                                            "channel 0, where no thread block receives from it"));
  p = Ring(ProgramKind::kAllGather, 3);
  p.ranks[1].blocks.push_back(p.ranks[1].blocks[0]);
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 1, thread blocks 0 and 1 both send to gpu 2"));
  p = Ring(ProgramKind::kAllGather, 3);
  p.ranks[1].blocks[0].send_peer = 9;
  EXPECT_THAT(CheckChunkProgram(p), Rejects("gpu 1, thread block 0 has peer 9"));
  p = Ring(ProgramKind::kAllGather, 3);
  p.ranks[1].blocks[0].channel = 1;
  EXPECT_THAT(CheckChunkProgram(p), Rejects("uses channel 1"));
}

// Whatever a program says, it is answered; and a changed ring is hardly ever right.
TEST(CheckTest, AnyProgramIsAnswered) {
  std::mt19937_64 random(TestSeed(11));
  const auto pick = [&](int64_t low, int64_t high) {
    return static_cast<int32_t>(std::uniform_int_distribution<int64_t>(low, high)(random));
  };
  const int32_t extremes[] = {-1, 0, 1, 2, 3, 1 << 20, 2147483647, -2147483647 - 1};
  int wrong = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    ChunkProgram p = pick(0, 1) == 0 ? Swap() : Ring(ProgramKind::kAllReduce, pick(2, 5));
    for (int change = pick(1, 3); change > 0; --change) {
      const int32_t value = pick(0, 3) == 0 ? extremes[pick(0, 7)] : pick(-1, 5);
      RankProgram& rank = p.ranks[pick(0, p.num_ranks() - 1)];
      ThreadBlock& block = rank.blocks[pick(0, static_cast<int64_t>(rank.blocks.size()) - 1)];
      if (block.steps.empty()) continue;
      ChunkStep& step = block.steps[pick(0, static_cast<int64_t>(block.steps.size()) - 1)];
      switch (pick(0, 12)) {
        case 0:
          step.op = static_cast<ChunkOp>(pick(0, 8));
          break;
        case 1:
          step.source.first = value;
          break;
        case 2:
          step.source.count = value;
          break;
        case 3:
          step.target.first = value;
          break;
        case 4:
          step.after = {value, pick(-1, 4)};
          break;
        case 5:
          block.send_peer = value;
          break;
        case 6:
          block.recv_peer = value;
          break;
        case 7:
          block.channel = value;
          break;
        case 8:
          rank.input_chunks = value;
          break;
        case 9:
          p.chunks = value;
          break;
        case 10:
          p.helpers = value;
          break;
        case 11:
          p.root = value;
          break;
        default:
          block.steps.push_back(step);
      }
    }
    if (!CheckChunkProgram(p).ok()) ++wrong;
  }
  EXPECT_GT(wrong, 1500);
}

}  // namespace
}  // namespace plancast
