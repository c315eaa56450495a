#include "executor/sharing/level_tree.h"

#include <initializer_list>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int64_t kOne = 1 << 20;  // coefficient 1

TEST(LevelTreeTest, DomainsNestAsActivitiesConnectThem) {
  ActivityKinds kinds;
  std::vector<Level> levels;
  const auto resource = [&](Level level) {
    levels.push_back(level);
    return kinds.AddResource(100);
  };
  const int pcie = resource(Level::kDevice), host_0 = resource(Level::kHost),
            host_1 = resource(Level::kHost), host_2 = resource(Level::kHost),
            pod = resource(Level::kPod), spine = resource(Level::kCluster),
            roomy = resource(Level::kCluster);
  const auto kind = [&](std::initializer_list<int> resources) {
    std::vector<ActivityKinds::Use> uses;
    for (int r : resources) uses.push_back({r, kOne});
    return kinds.AddKind(100, 1, uses, 0);
  };
  const int offload = kind({pcie}), in_0 = kind({pcie, host_0}), in_1 = kind({host_1}),
            rail = kind({host_0, host_1, pod}), all = kind({host_1, host_2, spine}),
            easy = kind({roomy});
  const LevelTree tree(kinds, levels, {true, true, true, true, true, true, false});
  // Host 2 has nothing of its own: its link is the cluster's.
  EXPECT_EQ(tree.DebugString(),
            "cluster: r3 r5\n"
            "  pod: r4\n"
            "    host: r2\n"
            "    host: r1\n"
            "      device: r0\n");
  EXPECT_EQ(tree.HomeOf(all), 0);
  EXPECT_EQ(tree.HomeOf(rail), 1);
  EXPECT_EQ(tree.HomeOf(in_1), 2);
  EXPECT_EQ(tree.HomeOf(in_0), 3);
  EXPECT_EQ(tree.HomeOf(offload), 4);
  EXPECT_EQ(tree.HomeOf(easy), 0);
  EXPECT_THAT(tree.CrossedBy(all), UnorderedElementsAre(1, 2));
  EXPECT_THAT(tree.CrossedBy(rail), UnorderedElementsAre(2, 3));
  EXPECT_THAT(tree.CrossedBy(in_0), ElementsAre(4));
  EXPECT_THAT(tree.CrossedBy(easy), ElementsAre());
  const LevelTree::Domain& hosts_0 = tree.domains()[3];
  EXPECT_EQ(hosts_0.parent, 1);
  EXPECT_EQ(hosts_0.end, 5);
  EXPECT_EQ(hosts_0.kind_end - hosts_0.kind_begin, 2);
  EXPECT_EQ(tree.domains()[0].kind_end, kinds.size());
}

// Nothing to share: one domain, where everything is at home.
TEST(LevelTreeTest, WithoutContentionThereIsOneDomain) {
  ActivityKinds kinds;
  kinds.AddResource(100);
  const int kind = kinds.AddKind(100, 1, {{0, kOne}}, 0);
  const LevelTree tree(kinds, {Level::kHost}, {false});
  EXPECT_EQ(tree.domains().size(), 1);
  EXPECT_EQ(tree.HomeOf(kind), 0);
  EXPECT_THAT(tree.CrossedBy(kind), ElementsAre());
}

}  // namespace
}  // namespace plancast
