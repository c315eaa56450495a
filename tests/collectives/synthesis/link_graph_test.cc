#include "collectives/synthesis/link_graph.h"

#include "collectives/synthesis/symmetry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(LinkGraph, Dgx1HasSixLinksPerGpu) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Named("dgx1"));
  EXPECT_EQ(graph.nodes(), 8);
  EXPECT_THAT(graph.links(), SizeIs(32));
  for (int32_t v = 0; v < 8; ++v) {
    EXPECT_EQ(graph.WidthInto(v), 6) << v;
    EXPECT_THAT(graph.into(v), SizeIs(4)) << v;
    for (int32_t w = 0; w < 8; ++w) EXPECT_LE(graph.Distance(v, w), 2);
  }
  EXPECT_EQ(graph.links()[graph.Find(0, 1)].width, 2);
  EXPECT_EQ(graph.links()[graph.Find(0, 2)].width, 1);
  EXPECT_EQ(graph.Find(0, 5), -1);
}

TEST(LinkGraph, NamedGraphsHaveTheLinksOfTheirName) {
  const auto links = [](absl::string_view name) {
    return LinkGraph::Named(name).value().links().size();
  };
  EXPECT_EQ(links("ring:8"), 16);
  EXPECT_EQ(links("ring:2"), 2);
  EXPECT_EQ(links("full:4"), 12);
  EXPECT_EQ(links("hypercube:8"), 24);
  EXPECT_EQ(links("mesh:2x4"), 20);
  EXPECT_EQ(links("torus:4x4"), 64);
}

TEST(LinkGraph, ParallelLinksAddUp) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph graph,
                       LinkGraph::Create(2, {{0, 1, 1}, {1, 0, 1}, {0, 1, 2}}));
  EXPECT_EQ(graph.links()[graph.Find(0, 1)].width, 3);
  EXPECT_EQ(graph.Reversed().links()[graph.Find(1, 0)].width, 3);
}

TEST(LinkGraph, RefusesWhatIsNoTopology) {
  EXPECT_THAT(LinkGraph::Named("dgx9").status().message(), HasSubstr("no topology `dgx9`"));
  EXPECT_FALSE(LinkGraph::Named("ring:x").ok());
  EXPECT_FALSE(LinkGraph::Named("ring:100000").ok());
  EXPECT_FALSE(LinkGraph::Named("mesh:16x16").ok());
  EXPECT_FALSE(LinkGraph::Named("hypercube:6").ok());
  EXPECT_FALSE(LinkGraph::Named("ring:1").ok());
  EXPECT_FALSE(LinkGraph::Create(2, {{0, 0, 1}}).ok());
  EXPECT_FALSE(LinkGraph::Create(2, {{0, 1, 0}}).ok());
  EXPECT_THAT(LinkGraph::Create(3, {{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}).status().message(),
              HasSubstr("no links lead from node 1 to node 0"));
}

TEST(Symmetry, CountsOfKnownGroups) {
  const auto count = [](absl::string_view name) {
    return Automorphisms(LinkGraph::Named(name).value(), 10000).size();
  };
  EXPECT_EQ(count("ring:8"), 16);       // turns and flips
  EXPECT_EQ(count("hypercube:8"), 48);  // 3! * 2^3
  EXPECT_EQ(count("full:4"), 24);
  EXPECT_EQ(count("mesh:2x4"), 4);
  EXPECT_EQ(count("dgx1"), 4);  // two flips of the cycle of doubled links
}

TEST(Symmetry, FreeGroupsMoveEveryNode) {
  for (const char* name : {"ring:8", "hypercube:8", "full:4", "mesh:2x4", "dgx1", "torus:4x4"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const LinkGraph graph, LinkGraph::Named(name));
    const auto groups = FreeGroups(graph);
    EXPECT_THAT(groups.back(), SizeIs(1));
    EXPECT_GE(groups.front().size(), 4);
    for (const auto& group : groups) {
      for (const Permutation& permutation : group) {
        int32_t kept = 0;
        for (int32_t v = 0; v < graph.nodes(); ++v) {
          kept += permutation[v] == v ? 1 : 0;
          for (const int32_t link : graph.out_of(v)) {
            const GraphLink& ends = graph.links()[link];
            const int32_t image = graph.Find(permutation[v], permutation[ends.to]);
            ASSERT_GE(image, 0);
            EXPECT_EQ(graph.links()[image].width, ends.width);
          }
        }
        EXPECT_TRUE(kept == 0 || kept == graph.nodes());
      }
    }
  }
}

}  // namespace
}  // namespace plancast
