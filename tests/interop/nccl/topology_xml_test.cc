#include "interop/nccl/topology_xml.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(TopologyXmlTest, ReadsBackWhatItWrites) {
  SystemElement system = FourGpuBox();
  system.children[0].Set("affinity", "a<b & \"c\"");
  ASSERT_OK_AND_ASSIGN(const SystemElement read,
                       ReadNcclTopology(WriteNcclTopology(system), "box.xml"));
  EXPECT_EQ(read, system);
}

TEST(TopologyXmlTest, KeepsWhatItDoesNotKnow) {
  const std::string text =
      "<?xml version=\"1.0\"?>\n<!-- by hand -->\n<system version=\"2\">\n"
      "  <cpu numaid=\"0\" host_hash=\"0x1\">\n"
      "    <pci busid=\"0000:01:00.0\">\n"
      "      <gpu dev=\"0\" keep=\"1\"><xgmi target=\"0000:02:00.0\" count=\"1\"/></gpu>\n"
      "    </pci>\n  </cpu>\n</system>\n";
  ASSERT_OK_AND_ASSIGN(const SystemElement system, ReadNcclTopology(text, "rccl.xml"));
  const SystemElement& gpu = system.children[0].children[0].children[0];
  EXPECT_EQ(gpu.line, 6);
  EXPECT_EQ(*gpu.Find("keep"), "1");
  EXPECT_EQ(gpu.children[0].name, "xgmi");
}

TEST(TopologyXmlTest, ErrorsNameThePlace) {
  auto fails = [](const std::string& text, const std::string& message) {
    EXPECT_THAT(ReadNcclTopology(text, "t.xml"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  };
  fails("", "`t.xml`");
  fails("<system", "`t.xml` is no XML: line 1");
  fails("<system/><system/>", "<system> alone");
  fails("<graphs version=\"1\"/>", "<graphs> where a <system>");
  fails("<system>\n<cpu>\n<gpuu/></cpu></system>", "<gpuu> of line 3 in a <cpu>");
  fails("<system><cpu><pci>text</pci></cpu></system>", "holds text");
  fails("<system a=\"1\" a=\"2\"/>", "twice");
  std::string deep = "<system><cpu>";
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  for (int i = 0; i < 100; ++i) deep += "</pci>";
  fails(deep + "</cpu></system>", "is below 64 others");
  std::string many = "<system>";
  for (int i = 0; i < 70'000; ++i) many += "<cpu/>";
  fails(many + "</system>", "more than 65536 elements");
  fails(std::string(17 << 20, ' '), "bytes");
  std::string wide = "<system";
  for (int i = 0; i < 100'000; ++i) wide += " a" + std::to_string(i) + "=\"1\"";
  fails(wide + "/>", "<system> of line 1 has more than 128 attributes");
}

TEST(TopologyXmlTest, AnyBytesHaveAnAnswer) {
  std::mt19937_64 random(TestSeed(7));
  const std::string good = WriteNcclTopology(FourGpuBox());
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (int changes = 1 + static_cast<int>(random() % 8); changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(random() % (text.size() + 1));
    (void)ReadNcclTopology(text, "random");
  }
}

}  // namespace
}  // namespace plancast
