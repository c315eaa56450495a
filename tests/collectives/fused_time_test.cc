// Ops inside of a collective's kernel: closed forms of where they run and what waits for them.

#include "collectives/fused_time.h"

#include <cmath>
#include <cstdint>

#include "cluster/machine.h"
#include "collectives/communicator.h"
#include "collectives/group_shape.h"
#include "collectives/nccl/chunk_sizes.h"
#include "collectives/realise.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int64_t kRanks = 128, kKiB = 1024, kMiB = kKiB * 1024;

DeviceType Device() {
  DeviceType device;
  device.sms = 80;
  device.boost_mhz = 1000;  // a cycle is 1 ns
  device.memory_bytes_per_s = 1e15;
  return device;
}

// Of all-reduces in 16 blocks, where NCCL's tuner is not asked.
FusedKernel Kernel(Algorithm algorithm, Protocol protocol, int64_t bytes, double transfer_s = 0) {
  FusedKernel kernel;
  kernel.algorithm = algorithm;
  kernel.protocol = protocol;
  kernel.bytes = bytes;
  kernel.transfer_s = transfer_s;
  kernel.members = kRanks;
  kernel.nodes = 8;
  kernel.channels = 16;
  kernel.launch = nullptr;
  return kernel;
}

// Seven times the bytes of the sum: Adam in fp32, which reads three and writes four.
FusedWork Part(int64_t bytes) { return {bytes / kRanks, 7 * bytes / kRanks, /*of_sum=*/true}; }

// 512 threads take 8 bytes each with LL, 16 with others; a pass waits 400 cycles, and 64 bytes go
// to or from an SM in a cycle.
double Cycles(double of_block, int64_t word) {
  return std::ceil(of_block / static_cast<double>(512 * word)) * 400 + 7 * of_block / 64;
}

TEST(FusedTimeTest, InARingEachRankHasItsPartInAllBlocks) {
  const int64_t bytes = 512 * kMiB;
  const double block = static_cast<double>(bytes) / kRanks / 16;
  for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
    const int64_t word = protocol == Protocol::kLl ? 8 : 16;
    // All ranks compute in the same step, whatever else takes long.
    EXPECT_DOUBLE_EQ(
        FusedSeconds(Part(bytes), Kernel(Algorithm::kRing, protocol, bytes, 1), Device()),
        Cycles(block, word) * 1e-9);
  }
}

TEST(FusedTimeTest, InATreeTheRootOfAChannelHasAllOfIt) {
  const int64_t bytes = 256 * kKiB;  // a chunk for each block
  const double block = static_cast<double>(bytes) / 16;
  for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
    const int64_t word = protocol == Protocol::kLl ? 8 : 16;
    EXPECT_DOUBLE_EQ(FusedSeconds(Part(bytes), Kernel(Algorithm::kTree, protocol, bytes), Device()),
                     Cycles(block, word) * 1e-9);
  }
}

TEST(FusedTimeTest, BehindTheFirstChunkATreeComputesWhileOthersAreOnTheirWay) {
  const int64_t bytes = 64 * kMiB;
  const FusedKernel slow = Kernel(Algorithm::kTree, Protocol::kLl, bytes, 1);
  const double chunks =
      static_cast<double>(bytes) / 16 / static_cast<double>(NcclStepBytes(Protocol::kLl));
  const double all = Cycles(static_cast<double>(bytes) / 16, 8) * 1e-9;
  EXPECT_NEAR(FusedSeconds(Part(bytes), slow, Device()), all / chunks, 1e-9);
  // On links that take no time what is computed is all that takes any.
  EXPECT_NEAR(FusedSeconds(Part(bytes), Kernel(Algorithm::kTree, Protocol::kLl, bytes), Device()),
              all, 1e-9);
}

TEST(FusedTimeTest, WhatAllRanksComputeOnIsTheSameWithEveryAlgorithm) {
  const int64_t bytes = 256 * kKiB;
  const FusedWork whole = {bytes, 2 * bytes, /*of_sum=*/false};
  const auto of = [&](Algorithm algorithm) {
    return FusedSeconds(whole, Kernel(algorithm, Protocol::kSimple, bytes), Device());
  };
  EXPECT_DOUBLE_EQ(of(Algorithm::kTree), of(Algorithm::kRing));
}

TEST(FusedTimeTest, NothingTakesNoTime) {
  EXPECT_EQ(FusedSeconds({}, Kernel(Algorithm::kTree, Protocol::kLl, kMiB), Device()), 0);
}

// CoCoNet's machine: what NCCL launches there.
TEST(FusedTimeTest, ACollectiveTakesSoMuchLonger) {
  const auto machine = MachineFromPreset("dgx2-v100-32g:8");
  ASSERT_OK(machine.status());
  GroupPattern all;
  all.dims = {{kRanks, 1}};
  int64_t before = 0;
  for (int64_t bytes = 4 * kKiB; bytes <= 4096 * kMiB; bytes *= 4) {
    CollectivePolicy policy;
    const auto alone = Realise(*machine, all, CollectiveKind::kAllReduce, bytes, policy);
    policy.fused = Part(bytes);
    const auto fused = Realise(*machine, all, CollectiveKind::kAllReduce, bytes, policy);
    ASSERT_OK(alone.status());
    ASSERT_OK(fused.status());
    EXPECT_EQ(fused->algorithm, alone->algorithm);
    EXPECT_GT(fused->fused_ps, 0);
    EXPECT_EQ(fused->delay_ps, alone->delay_ps + fused->fused_ps);
    EXPECT_EQ(AloneTime(*machine, *fused), AloneTime(*machine, *alone) + fused->fused_ps);
    // Rings are chosen for large ones, and what each rank computes on is a small part then.
    if (bytes >= 64 * kMiB) {
      EXPECT_LT(fused->fused_ps, AloneTime(*machine, *alone) / 100);
    }
    before = fused->fused_ps;
  }
  EXPECT_GT(before, 0);
  // Links as data sheets have them know of no kernels.
  CollectivePolicy nominal;
  nominal.nominal = true;
  nominal.fused = Part(kMiB);
  const auto ideal = Realise(*machine, all, CollectiveKind::kAllReduce, kMiB, nominal);
  ASSERT_OK(ideal.status());
  EXPECT_EQ(ideal->fused_ps, 0);
}

}  // namespace
}  // namespace plancast
