#include "cluster/topology/skeleton.h"

#include "absl/strings/str_cat.h"
#include "cluster/topology/topology.h"
#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The PCI tree alone.
SystemElement Skeleton() {
  SystemElement system = FourGpuBox();
  ForEachElement(system, [](SystemElement& element) {
    if (element.name != "pci") return;
    for (auto it = element.children.begin(); it != element.children.end();) {
      it = it->name == "pci" ? it + 1 : element.children.erase(it);
    }
  });
  return system;
}

TEST(SkeletonTest, SaysWhatIsMissing) {
  EXPECT_THAT(WhatIsMissing(Skeleton()),
              ElementsAre(HasSubstr("No <gpu> elements; 4 PCI devices"),
                          HasSubstr("No <net> elements; 1 PCI devices")));
  EXPECT_TRUE(WhatIsMissing(FourGpuBox()).empty());
  EXPECT_FALSE(Topology::Create(Skeleton(), kLatestNccl).ok());
}

TEST(SkeletonTest, FilledItIsTheWholeFile) {
  SystemElement system = Skeleton();
  SkeletonFill fill;
  fill.compute_capability = 80;
  fill.nvlinks = 12;
  fill.net_mbit_per_s = 100000;
  const std::vector<std::string> added = Fill(fill, system);
  EXPECT_EQ(added.size(), 3u);
  EXPECT_TRUE(WhatIsMissing(system).empty());
  ASSERT_OK_AND_ASSIGN(const Topology filled, Topology::Create(system, kLatestNccl));
  BoxOptions options;
  options.nvlinks = 12;
  ASSERT_OK_AND_ASSIGN(const Topology whole, Topology::Create(FourGpuBox(options), kLatestNccl));
  EXPECT_EQ(filled.DebugString(), whole.DebugString());
}

TEST(SkeletonTest, WhatIsThereStays) {
  SystemElement system = FourGpuBox();
  SkeletonFill fill;
  fill.compute_capability = 90;
  fill.net_mbit_per_s = 400000;
  EXPECT_TRUE(Fill(fill, system).empty());
  EXPECT_EQ(system, FourGpuBox());
}

TEST(SkeletonTest, RanksAreGivenWhereNoneHasOne) {
  SystemElement system = FourGpuBox();
  ForEachElement(system, [](SystemElement& element) {
    if (element.name != "gpu") return;
    SystemElement gpu;
    gpu.name = "gpu";
    gpu.Set("dev", *element.Find("dev"));
    gpu.Set("sm", "80");
    element = gpu;
  });
  EXPECT_THAT(WhatIsMissing(system), ElementsAre(HasSubstr("None of 4 <gpu> elements")));
  SkeletonFill fill;
  fill.compute_capability = 80;
  EXPECT_THAT(Fill(fill, system), ElementsAre("ranks of 4 GPUs"));
  EXPECT_OK(Topology::Create(system, kLatestNccl).status());
}

}  // namespace
}  // namespace plancast
