// Policies from end to end, with times computed by hand.

#include "cluster/link_sharing.h"

#include <memory>

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(LinkSharingTest, NamesAreRead) {
  ASSERT_OK_AND_ASSIGN(const LinkSharing max_min, ParseLinkSharing("max_min"));
  EXPECT_EQ(max_min, LinkSharing::kMaxMin);
  ASSERT_OK_AND_ASSIGN(const LinkSharing priority, ParseLinkSharing("priority"));
  EXPECT_EQ(priority, LinkSharing::kPriority);
  EXPECT_THAT(ParseLinkSharing("fifo"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`max_min` or `priority`")));
}

// Gradients of two seconds alone begin at 0 s, a model-parallel collective of one
// second at 1 s; the last kernel waits for the latter.
absl::StatusOr<std::unique_ptr<Simulation>> GradientsBesideACollective(LinkSharing link_sharing,
                                                                       bool shortcuts) {
  GraphBuilder b({{"tp", 2}});
  b.Block("F")
      .Comm(CollectiveKind::kReduceScatter, 200'000'000'000, {0}, {}, Purpose::kDp,
            StreamKind::kGradComm)
      .Kernel(1.0)
      .Comm(CollectiveKind::kAllReduce, 100'000'000'000, {0}, {1})
      .Kernel(0.5, {2});
  b.Program("all").Run("F");
  const Machine machine = *Machine::Create(UnitMachine(1, 2));
  return Simulation::Run(b.Build(), machine, UnitComm(machine), Form::kFolded, {}, 0, shortcuts,
                         link_sharing);
}

// Both at half from 1 s on, with 1e11 bytes each to go: two seconds.
TEST(LinkSharingTest, ByMaxMinBothSlowDown) {
  for (bool shortcuts : {true, false}) {
    ASSERT_OK_AND_ASSIGN(const auto s, GradientsBesideACollective(LinkSharing::kMaxMin, shortcuts));
    EXPECT_DOUBLE_EQ(s->End(0, 0), 3.0);
    EXPECT_DOUBLE_EQ(s->End(0, 2), 3.0);
    EXPECT_DOUBLE_EQ(s->makespan(), 3.5);
  }
}

// The gradients pause from 1 s to 2 s and end where they did.
TEST(LinkSharingTest, ByPriorityTheGradientsWait) {
  for (bool shortcuts : {true, false}) {
    ASSERT_OK_AND_ASSIGN(const auto s,
                         GradientsBesideACollective(LinkSharing::kPriority, shortcuts));
    EXPECT_DOUBLE_EQ(s->End(0, 0), 3.0);
    EXPECT_DOUBLE_EQ(s->End(0, 2), 2.0);
    EXPECT_DOUBLE_EQ(s->makespan(), 3.0);
  }
}

}  // namespace
}  // namespace plancast
