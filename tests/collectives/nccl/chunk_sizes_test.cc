#include "collectives/nccl/chunk_sizes.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/collectives/nccl/communicators.h"

namespace plancast {
namespace {

constexpr auto kAllReduce = ProgramKind::kAllReduce;
constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

NcclChoice ChoiceOf(const NcclTuner& tuner, NcclAlgorithm algorithm, Protocol protocol,
                    int64_t bytes) {
  NcclChoice choice = {algorithm, protocol, 0, 0, 0};
  tuner.SizeLaunch(bytes, &choice);
  return choice;
}

TEST(ChunkSizesTest, QueuesHoldWhatNcclAllocates) {
  EXPECT_EQ(NcclBufferBytes(Protocol::kSimple), 4 * kMiB);
  EXPECT_EQ(NcclBufferBytes(Protocol::kLl), 512 * kKiB);
  EXPECT_EQ(NcclBufferBytes(Protocol::kLl128), 4'915'200);
  EXPECT_EQ(NcclStepBytes(Protocol::kSimple), 512 * kKiB);
  EXPECT_EQ(NcclStepBytes(Protocol::kLl), 32 * kKiB);
  EXPECT_EQ(NcclStepBytes(Protocol::kLl128), 576'000);
  EXPECT_DOUBLE_EQ(NcclWireFactor(Protocol::kLl), 2);
  EXPECT_DOUBLE_EQ(NcclWireFactor(Protocol::kLl128), 16 / 15.0);
}

TEST(ChunkSizesTest, PartsCoverTheBufferOnce) {
  for (const NcclVersion version : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
    for (const int nodes : {1, 2, 4}) {
      const NcclTuner tuner = *NcclTuner::Create(DgxH100(nodes, version));
      for (const ProgramKind kind : {kAllReduce, ProgramKind::kAllGather,
                                     ProgramKind::kReduceScatter, ProgramKind::kBroadcast}) {
        for (int64_t bytes = 1; bytes < int64_t{1} << 33; bytes = bytes * 3 + 1) {
          const NcclChoice choice = *tuner.Choose(kind, bytes);
          const auto parts = SplitOverChannels(tuner.communicator(), kind, choice, bytes);
          ASSERT_FALSE(parts.empty());
          int64_t end = 0;
          for (size_t c = 0; c < parts.size(); ++c) {
            EXPECT_EQ(parts[c].channel, static_cast<int>(c));
            EXPECT_EQ(parts[c].offset, end);
            EXPECT_GT(parts[c].bytes, 0);
            end += parts[c].bytes;
          }
          EXPECT_EQ(end, bytes);
          EXPECT_LE(parts.size(), 64u);
        }
      }
    }
  }
}

TEST(ChunkSizesTest, SmallMessagesUseFewChannels) {
  const NcclTuner tuner = *NcclTuner::Create(DgxH100(1));
  const auto channels = [&](int64_t bytes) {
    const NcclChoice choice = *tuner.Choose(kAllReduce, bytes);
    return SplitOverChannels(tuner.communicator(), kAllReduce, choice, bytes).size();
  };
  EXPECT_EQ(channels(8), 1u);
  EXPECT_EQ(channels(kMiB), 24u);
  EXPECT_EQ(channels(kMiB * 1024), 16u);  // switches
}

TEST(ChunkSizesTest, RingsShareTheLastTurnAmongRanks) {
  const NcclTuner tuner = *NcclTuner::Create(DgxA100(1));
  const NcclChoice ring = ChoiceOf(tuner, NcclAlgorithm::kRing, Protocol::kSimple, 1 << 30);
  // Of 40 MiB a turn takes 8 chunks of 2 MiB; the rest of 8 MiB 1 MiB for each rank.
  const NcclChunking chunking = ChunkingOf(tuner, kAllReduce, ring, 40 * kMiB);
  EXPECT_EQ(chunking.chunk_bytes, 2 * kMiB);
  EXPECT_EQ(chunking.chunks_per_loop, 8);
  EXPECT_EQ(chunking.steps_per_loop, 14);
  EXPECT_EQ(chunking.slices, 2);
  EXPECT_EQ(chunking.loops, 3);
  EXPECT_EQ(chunking.last_chunk_bytes, kMiB);
}

TEST(ChunkSizesTest, TreesCutLl128FinerOnDeepTrees) {
  const NcclTuner tuner = *NcclTuner::Create(DgxH100(4));
  const auto chunk = [&](int64_t bytes) {
    const NcclChoice tree = ChoiceOf(tuner, NcclAlgorithm::kTree, Protocol::kLl128, bytes * 16);
    return ChunkingOf(tuner, kAllReduce, tree, bytes).chunk_bytes;
  };
  // 1 + 2 + 0.8 levels: 30 chunks in flight, or 7.6 small ones.
  EXPECT_EQ(chunk(64 * kKiB), 576'000 / 32 / 1920 * 1920);
  EXPECT_EQ(chunk(16 * kMiB), 288'000);
  EXPECT_EQ(chunk(int64_t{1} << 30), 576'000);
}

TEST(ChunkSizesTest, SwitchesTakeSmallerChunksOfSmallMessages) {
  const NcclTuner one = *NcclTuner::Create(DgxH100(1)), four = *NcclTuner::Create(DgxH100(4));
  const auto nvls = [&](int64_t bytes) {
    const NcclChoice choice = ChoiceOf(one, NcclAlgorithm::kNvls, Protocol::kSimple, bytes * 16);
    return ChunkingOf(one, kAllReduce, choice, bytes).chunk_bytes;
  };
  EXPECT_EQ(nvls(64 * kMiB), 128 * kKiB);
  EXPECT_EQ(nvls(63 * kMiB), 64 * kKiB);
  EXPECT_EQ(nvls(3 * kMiB), 32 * kKiB);
  EXPECT_EQ(nvls(256 * kKiB), 16 * kKiB);
  const auto tree = [&](const NcclTuner& tuner, int64_t bytes) {
    const NcclChoice choice =
        ChoiceOf(tuner, NcclAlgorithm::kNvlsTree, Protocol::kSimple, bytes * 16);
    return ChunkingOf(tuner, kAllReduce, choice, bytes).chunk_bytes;
  };
  EXPECT_EQ(tree(four, 64 * kMiB), 64 * kKiB);
  EXPECT_EQ(tree(four, 256 * kKiB), 32 * kKiB);
  const NcclTuner two = *NcclTuner::Create(DgxH100(2));
  EXPECT_EQ(tree(two, 64 * kMiB), 128 * kKiB);
}

}  // namespace
}  // namespace plancast
