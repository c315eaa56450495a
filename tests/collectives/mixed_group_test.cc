// Groups on machines of several sections.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/machine_proto.h"
#include "collectives/communicator.h"
#include "collectives/group_shape.h"
#include "collectives/realise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kPermute,       CollectiveKind::kSendRecv,
                                     CollectiveKind::kBroadcast};
constexpr int64_t kSizes[] = {1 << 10, 1 << 20, 1 << 26, 1 << 30};

Machine Made(const std::string& preset) {
  absl::StatusOr<Machine> machine = MachineFromPreset(preset);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

// The hosts of a machine as sections of so many, never joined.
Machine Cut(const Machine& machine, std::vector<int64_t> hosts) {
  Machine::Spec whole;
  whole.name = "cut";
  for (const int64_t count : hosts) {
    whole.sections.push_back(machine.spec());
    whole.sections.back().hosts = count;
  }
  absl::StatusOr<Machine> cut = Machine::Create(whole);
  EXPECT_TRUE(cut.ok()) << cut.status();
  return *std::move(cut);
}

RealisedCollective Realised(const Machine& machine, const GroupPattern& group, CollectiveKind kind,
                            int64_t bytes) {
  auto realised = Realise(machine, group, kind, bytes);
  EXPECT_TRUE(realised.ok()) << realised.status();
  return *std::move(realised);
}

GroupPattern RandomGroup(std::mt19937& random, int64_t devices) {
  std::vector<int64_t> members;
  while (members.size() < 2) {
    members.clear();
    const int64_t stride = 1 + static_cast<int64_t>(random() % 9);
    const int64_t most = 2 + static_cast<int64_t>(random() % 15);
    for (int64_t d = static_cast<int64_t>(random() % devices);
         d < devices && static_cast<int64_t>(members.size()) < most; d += stride) {
      members.push_back(d);
    }
  }
  return GroupPattern::Of(members);
}

// Where hosts are cut into sections says nothing: equal hosts are a machine of equal hosts.
TEST(MixedGroupTest, EqualSectionsTakeWhatOneMachineTakes) {
  std::mt19937 random(7);
  for (const std::string preset : {"dgx-h100:6", "dgx-a100-80g:6", "gcp-a3mega-h100:6",
                                   "vtrain-a100-80g:6", "v100-pcie-32g:6"}) {
    const Machine whole = Made(preset);
    const Machine cut = Cut(whole, {1, 3, 2});
    for (int i = 0; i < 60; ++i) {
      const GroupPattern group = RandomGroup(random, whole.num_devices());
      for (const CollectiveKind kind : kKinds) {
        if (kind == CollectiveKind::kSendRecv && group.size() != 2) continue;
        const int64_t bytes = kSizes[random() % 4];
        const RealisedCollective one = Realised(whole, group, kind, bytes);
        const RealisedCollective parts = Realised(cut, group, kind, bytes);
        const std::string what = preset + " " + std::string(kCollectiveKindNames[kind]);
        // Unlike sections know their own members per node; the fullest of all is counted
        // where hosts are equal. So only groups that lie evenly are the same in every digit.
        const SectionShapes shapes = *ShapesOf(cut, group);
        const GroupShape shape = *ShapeOf(whole, group);
        const bool even = std::all_of(shapes.begin(), shapes.end(), [&](const SectionShape& at) {
          return at.shape.per_node == shape.per_node && at.shape.nics == shape.nics &&
                 at.shape.switches == shape.switches;
        });
        if (!even) continue;
        EXPECT_EQ(parts.delay_ps, one.delay_ps) << what;
        EXPECT_EQ(parts.rate_cap_bytes_per_s, one.rate_cap_bytes_per_s) << what;
        EXPECT_EQ(parts.algorithm, one.algorithm) << what;
        EXPECT_EQ(parts.protocol, one.protocol) << what;
        EXPECT_EQ(AloneTime(cut, parts), AloneTime(whole, one)) << what;
        EXPECT_EQ(parts.loads.size(), one.loads.size() * shapes.size()) << what;
      }
    }
  }
}

TEST(MixedGroupTest, InsideASectionOnlyThatSectionCounts) {
  const Machine mixed = Made("dgx-a100-80g:2+dgx-h100:4");
  const Machine h100 = Made("dgx-h100:4");
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    for (const int64_t bytes : kSizes) {
      const RealisedCollective here = Realised(mixed, {16, {{16, 1}}}, kind, bytes);
      const RealisedCollective there = Realised(h100, {0, {{16, 1}}}, kind, bytes);
      EXPECT_EQ(here.delay_ps, there.delay_ps);
      EXPECT_EQ(here.rate_cap_bytes_per_s, there.rate_cap_bytes_per_s);
      EXPECT_EQ(AloneTime(mixed, here), AloneTime(h100, there));
      ASSERT_EQ(here.loads.size(), there.loads.size());
      for (size_t i = 0; i < here.loads.size(); ++i) {
        EXPECT_EQ(here.loads[i].coefficient_q20, there.loads[i].coefficient_q20);
        EXPECT_EQ(here.loads[i].link_class, there.loads[i].link_class + mixed.FirstLinkClass(1));
      }
    }
  }
}

// A ring over both is as slow as its slowest link: 25 GB/s of an A100 host's interface
// against 50, and 8 of them.
TEST(MixedGroupTest, AGroupOverBothGoesAtThePaceOfTheSlower) {
  const Machine mixed = Made("dgx-a100-80g:2+dgx-h100:2");
  const Machine a100 = Made("dgx-a100-80g:4"), h100 = Made("dgx-h100:4");
  const GroupPattern group = {0, {{4, 8}}};  // one of each host
  const int64_t bytes = 1 << 30;
  const CollectiveKind kind = CollectiveKind::kAllReduce;
  const int64_t both = AloneTime(mixed, Realised(mixed, group, kind, bytes));
  const int64_t slow = AloneTime(a100, Realised(a100, group, kind, bytes));
  const int64_t fast = AloneTime(h100, Realised(h100, group, kind, bytes));
  EXPECT_GT(both, fast * 18 / 10);
  EXPECT_NEAR(static_cast<double>(both), static_cast<double>(slow),
              0.05 * static_cast<double>(slow));
  // At least 2 (n - 1) / n of the bytes cross the interface of every A100.
  EXPECT_GE(static_cast<double>(both) * 1e-12, 2.0 * 3 / 4 * static_cast<double>(bytes) / 25e9);
}

TEST(MixedGroupTest, LinksBetweenSectionsAreALimitOfTheirOwn) {
  const auto with = [](double gbit) {
    absl::StatusOr<Machine> machine = MachineFromJson(absl::StrCat(
        R"({"between_gbit_per_s": )", gbit, R"(, "between_latency_us": 10, "sections": [
          {"preset": "dgx-a100-80g", "hosts": 2}, {"preset": "dgx-h100", "hosts": 2}]})"));
    EXPECT_TRUE(machine.ok()) << machine.status();
    return *std::move(machine);
  };
  const GroupPattern pair = {8, {{2, 8}}};
  const int64_t bytes = 1'000'000'000;
  const Machine narrow = with(8);  // 1 GB/s
  const RealisedCollective slow = Realised(narrow, pair, CollectiveKind::kSendRecv, bytes);
  EXPECT_GE(AloneTime(narrow, slow), 1'000'000'000'000);
  EXPECT_LE(AloneTime(narrow, slow), 1'200'000'000'000);
  const Machine open = Made("dgx-a100-80g:2+dgx-h100:2");
  const RealisedCollective free = Realised(open, pair, CollectiveKind::kSendRecv, bytes);
  EXPECT_GE(Realised(with(80'000), pair, CollectiveKind::kSendRecv, bytes).delay_ps,
            free.delay_ps + 10'000'000);
  // Both ends are loaded, once each; a group of one section loads none.
  const int last = static_cast<int>(narrow.link_classes().size()) - 1;
  EXPECT_EQ(slow.loads.back().link_class, last);
  const RealisedCollective inside = Realised(narrow, {16, {{16, 1}}}, kKinds[0], bytes);
  for (const LinkLoad& load : inside.loads) EXPECT_LT(load.link_class, last);
  // All rings of an exchange cross.
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
    const RealisedCollective all = Realised(narrow, {0, {{32, 1}}}, kind, bytes);
    const RealisedCollective wide = Realised(open, {0, {{32, 1}}}, kind, bytes);
    EXPECT_GT(AloneTime(narrow, all), AloneTime(open, wide)) << kCollectiveKindNames[kind];
  }
}

TEST(MixedGroupTest, ShapesSayWhatLiesInEachSection) {
  const Machine mixed = Made("dgx-a100-80g:2+hgx4-h100:4");
  ASSERT_OK_AND_ASSIGN(const SectionShapes shapes, ShapesOf(mixed, {0, {{32, 1}}}));
  ASSERT_EQ(shapes.size(), 2);
  EXPECT_EQ(shapes[0].shape.members, 32);
  EXPECT_EQ(shapes[1].shape.members, 32);
  EXPECT_EQ(shapes[0].shape.nodes, 6);
  EXPECT_EQ(shapes[0].shape.per_node, 8);
  EXPECT_EQ(shapes[1].shape.per_node, 4);
  EXPECT_EQ(shapes[1].shape.per_section, 16);
  EXPECT_EQ(shapes[1].shape.sections, 2);
  const NcclCommunicator comm = CommunicatorOf(mixed, shapes);
  EXPECT_EQ(comm.max_local_ranks, 8);
  EXPECT_LT(comm.min_compute_capability, comm.max_compute_capability);
  EXPECT_FALSE(comm.nvls_supported);
  EXPECT_THAT(ShapeOf(mixed, {0, {{32, 1}}}).status().message(), HasSubstr("2 sections"));
  EXPECT_OK(ShapeOf(mixed, {16, {{16, 1}}}).status());
}

}  // namespace
}  // namespace plancast
