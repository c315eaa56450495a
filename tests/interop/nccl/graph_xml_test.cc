#include "interop/nccl/graph_xml.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/cluster/topology/boxes.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

void ExpectEqual(const NcclGraph& a, const NcclGraph& b) {
  EXPECT_EQ(a.pattern, b.pattern);
  EXPECT_EQ(a.cross_nic, b.cross_nic);
  EXPECT_EQ(a.num_channels, b.num_channels);
  EXPECT_NEAR(a.bw_intra, b.bw_intra, 1e-4);
  EXPECT_NEAR(a.bw_inter, b.bw_inter, 1e-4);
  EXPECT_EQ(a.type_intra, b.type_intra);
  EXPECT_EQ(a.type_inter, b.type_inter);
  EXPECT_EQ(a.same_channels, b.same_channels);
  ASSERT_EQ(a.channels.size(), b.channels.size());
  for (size_t c = 0; c < a.channels.size(); ++c) {
    EXPECT_EQ(a.channels[c].gpus, b.channels[c].gpus);
    EXPECT_EQ(a.channels[c].nets, b.channels[c].nets);
  }
}

TEST(GraphXmlTest, ReadsBackWhatItWrites) {
  for (NcclVersion version : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
    for (int hosts : {1, 2}) {
      BoxOptions options;
      options.sm = 90;
      options.nvlinks = 18;
      ASSERT_OK_AND_ASSIGN(const NcclSearchResult search,
                           SearchGraphs(FourGpuBox(options), hosts, version));
      ASSERT_OK_AND_ASSIGN(const std::vector<NumberedGraph> graphs,
                           ReadNcclGraphs(WriteNcclGraphs(search), "graph.xml"));
      ASSERT_EQ(graphs.size(), version == NcclVersion::k2_17 ? 2u : 3u);
      EXPECT_EQ(graphs[0].id, NcclGraphId::kRing);
      ExpectEqual(graphs[0].graph, search.communicator.ring);
      ExpectEqual(graphs[1].graph, search.communicator.tree);
      if (graphs.size() == 3) ExpectEqual(graphs[2].graph, search.communicator.nvls);
    }
  }
}

constexpr char kGraph[] =
    "<graphs version=\"1\">\n"
    "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"12\"\n"
    " speedinter=\"12\" typeintra=\"PHB\" typeinter=\"SYS\" samechannels=\"1\">\n"
    "<channel><net dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"0\"/><net dev=\"0\"/></channel>\n"
    "</graph></graphs>";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGraph;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(GraphXmlTest, OldFilesHaveNumbersOfDevices) {
  ASSERT_OK_AND_ASSIGN(const std::vector<NumberedGraph> graphs, ReadNcclGraphs(kGraph, "g.xml"));
  EXPECT_EQ(graphs[0].graph.channels[0].gpus, (std::vector<int>{1, 0}));
  EXPECT_EQ(graphs[0].graph.latency_inter, 0);
}

TEST(GraphXmlTest, ErrorsNameThePlace) {
  auto fails = [](const std::string& text, const std::string& message) {
    EXPECT_THAT(ReadNcclGraphs(text, "g.xml"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  };
  fails(With("nchannels=\"1\"", "nchannels=\"2\""), "has 1 channels");
  fails(With("pattern=\"4\"", "pattern=\"9\""), "<graph> of line 2: pattern=\"9\"");
  fails(With("PHB", "PHX"), "no type of path");
  fails(With("<net dev=\"0\"/>", "<net dev=\"0\"/><net dev=\"0\"/>"), "third");
  fails(With("gpu dev=\"1\"", "gpu dev=\"-1\""), "dev=\"-1\"");
  fails("<system/>", "<system> where a <graphs>");
}

TEST(GraphXmlTest, AnyBytesHaveAnAnswer) {
  std::mt19937_64 random(TestSeed(11));
  for (int i = 0; i < 2000; ++i) {
    std::string text = kGraph;
    for (int changes = 1 + static_cast<int>(random() % 6); changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    (void)ReadNcclGraphs(text, "random");
  }
}

}  // namespace
}  // namespace plancast
