#include "interop/msccl/nvlink_graph.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Pair(absl::string_view link) {
  return absl::StrCat(
      R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85" affinity="ff">
<pci busid="0000:1a:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="70" rank="0" gdr="0">)",
      link, R"(</gpu></pci>
<pci busid="0000:1b:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="1" sm="70" rank="1" gdr="0">
<nvlink target="0000:1a:00.0" count="2" tclass="0x030200"/></gpu></pci></cpu></system>)");
}

TEST(NvlinkGraph, LinksAreAsWideAsTheyAreMany) {
  ASSERT_OK_AND_ASSIGN(
      const LinkGraph graph,
      ReadNvlinkGraph(Pair(R"(<nvlink target="0000:1B:00.0" count="2" tclass="0x030200"/>)"), "p"));
  EXPECT_EQ(graph.nodes(), 2);
  EXPECT_EQ(graph.links()[graph.Find(0, 1)].width, 2);
}

TEST(NvlinkGraph, SaysWhereThereIsNothingToSearch) {
  EXPECT_THAT(
      ReadNvlinkGraph(Pair(R"(<nvlink target="0000:b0:00.0" count="6" tclass="0x068000"/>)"), "p")
          .status()
          .message(),
      HasSubstr("GPU 0 is linked to a switch"));
  EXPECT_THAT(
      ReadNvlinkGraph(Pair(R"(<nvlink target="0000:9b:00.0" count="2" tclass="0x030200"/>)"), "p")
          .status()
          .message(),
      HasSubstr("no GPU with a rank is at `0000:9b:00.0`"));
  EXPECT_THAT(ReadNvlinkGraph(Pair(""), "p").status().message(),
              HasSubstr("`p`: no links lead from node 0 to node 1"));
}

// The file of a real DGX-1V has the links of NVIDIA's figure, as far as all-gathers
// can tell: as many of each width into every GPU.
TEST(NvlinkGraph, ReadsADgx1) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  std::ifstream in(absl::StrCat(data, "/topologies/dgx1v_1ib.xml"));
  std::ostringstream text;
  text << in.rdbuf();
  ASSERT_OK_AND_ASSIGN(const LinkGraph graph, ReadNvlinkGraph(text.str(), "dgx1v_1ib.xml"));
  EXPECT_EQ(graph.nodes(), 8);
  EXPECT_EQ(graph.links().size(), 32);
  for (int32_t v = 0; v < 8; ++v) EXPECT_EQ(graph.WidthInto(v), 6);
}

}  // namespace
}  // namespace plancast
