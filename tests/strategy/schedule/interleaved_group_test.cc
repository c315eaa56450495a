#include "strategy/schedule/interleaved_group.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace plancast {
namespace {

// Whether Megatron-Core's forward_backward_pipelining_with_interleaving takes groups of that size.
bool MegatronTakes(int64_t stages, int64_t micro_batches, int64_t group) {
  if (group > micro_batches || group < stages) return false;
  const int64_t left = micro_batches % group;
  return left == 0 || left >= stages;
}

TEST(InterleavedGroupTest, IsTheSmallestThatMegatronTakes) {
  for (int64_t stages = 1; stages <= 16; ++stages) {
    for (int64_t many = stages; many <= 200; ++many) {
      const int64_t group = InterleavedGroup(stages, many);
      ASSERT_TRUE(MegatronTakes(stages, many, group)) << stages << " " << many;
      for (int64_t smaller = 1; smaller < group; ++smaller) {
        ASSERT_FALSE(MegatronTakes(stages, many, smaller)) << stages << " " << many;
      }
      if (many % stages == 0) {
        ASSERT_EQ(group, stages);
      }
    }
  }
}

TEST(InterleavedGroupTest, IsARoundOfPyTorchWhereItHasAny) {
  for (int64_t stages = 1; stages <= 16; ++stages) {
    for (int64_t many = 1; many <= 200; ++many) {
      const int64_t rounds = std::max<int64_t>(1, many / stages);
      if (many % rounds != 0) continue;
      EXPECT_EQ(InterleavedGroup(stages, many), many / rounds) << stages << " " << many;
    }
  }
}

}  // namespace
}  // namespace plancast
