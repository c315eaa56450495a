#include "strategy/schedule/stage_placement.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/strategy/schedule/random_table.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> StagesOf(const StagePlacement& placement) {
  std::vector<int64_t> stages;
  for (int64_t v = 0; v < placement.virtual_stages(); ++v) stages.push_back(placement.StageOf(v));
  return stages;
}

TEST(StagePlacementTest, NamedOnesGoRoundUpAgainOrBothWays) {
  EXPECT_THAT(StagesOf(StagePlacement::Loop(3, 2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(StagesOf(StagePlacement::Waves(3, 3)), ElementsAre(0, 1, 2, 2, 1, 0, 0, 1, 2));
  const StagePlacement both = StagePlacement::BothWays(2);
  EXPECT_THAT(StagesOf(both), ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(both.copies(), 2);
  EXPECT_EQ(both.After(1, Phase::kForward), -1);
  EXPECT_EQ(both.PartOf(3), 1);
  EXPECT_EQ(both.Text(), "both-ways");
  EXPECT_EQ(StagePlacement::Loop(3, 2).Text(), "");
  EXPECT_EQ(StagePlacement::Waves(3, 2).Text(), "v");
  EXPECT_TRUE(StagePlacement::Loop(3, 2).Loops());
  EXPECT_FALSE(StagePlacement::Waves(3, 2).Loops());
}

TEST(StagePlacementTest, LayersGoOnOrTurnBack) {
  const StagePlacement v = StagePlacement::Waves(3, 2);
  EXPECT_TRUE(v.Onward(0, 1));
  EXPECT_TRUE(v.Onward(1, 0));  // whichever is first
  EXPECT_FALSE(v.Crosses(2, 3));
  EXPECT_FALSE(v.Onward(3, 4));
  for (int64_t stages : {2, 3, 4}) {
    const StagePlacement loop = StagePlacement::Loop(stages, 2);
    for (int64_t s = 0; s + 1 < 2 * stages; ++s) EXPECT_TRUE(loop.Onward(s, s + 1));
  }
}

// Stage and chunk say the virtual stage and the other way round; what is listed is what is read.
TEST(StagePlacementTest, EachChunkIsOneVirtualStage) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(20261202)));
  for (int i = 0; i < 300; ++i) {
    const ScheduleShape shape{static_cast<int64_t>(2 + random() % 4), 2,
                              static_cast<int64_t>(1 + random() % 3)};
    const std::string text = RandomPlacement(shape, random);
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const StagePlacement placement,
                         StagePlacement::Parse(text, shape.stages, shape.chunks));
    EXPECT_EQ(placement.chunks(), shape.chunks * placement.copies());
    ASSERT_OK_AND_ASSIGN(const StagePlacement again,
                         StagePlacement::Parse(placement.Text(), shape.stages, shape.chunks));
    EXPECT_EQ(StagesOf(again), StagesOf(placement));
    for (int64_t v = 0; v < placement.virtual_stages(); ++v) {
      EXPECT_EQ(placement.At(placement.StageOf(v), placement.ChunkOf(v)), v);
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        const int64_t next = placement.After(v, phase);
        if (next < 0) continue;
        EXPECT_EQ(placement.Before(next, phase), v);
        EXPECT_EQ(placement.CopyOf(next), placement.CopyOf(v));
      }
    }
  }
}

}  // namespace
}  // namespace plancast
