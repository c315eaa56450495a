#include "interop/astra/network_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] = R"(# a machine
topology: [ Switch, Ring ]
npus_count: [8, 4]  # 32 in all
bandwidth:
  - 400.0
  - 50
latency: [936.25,
          1000.0]
)";

TEST(NetworkFileTest, ListsOfEitherForm) {
  const auto network = ReadAstraNetwork(kGood, "net.yml");
  ASSERT_OK(network);
  ASSERT_EQ(network->dims.size(), 2);
  EXPECT_EQ(network->dims[0].wiring, AstraWiring::kSwitch);
  EXPECT_EQ(network->dims[1].npus, 4);
  EXPECT_EQ(network->dims[1].gib_per_s, 50);
  EXPECT_EQ(network->dims[0].latency_ns, 936.25);
}

TEST(NetworkFileTest, ErrorsNameLineAndKey) {
  const auto error = [](const std::string& text) {
    return std::string(ReadAstraNetwork(text, "net.yml").status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("net.yml has no key `topology`"));
  EXPECT_THAT(error("topology: [Ring]\nnpus_count: [8, 2]\nbandwidth: [1]\nlatency: [1]"),
              HasSubstr("net.yml:2: `npus_count` has 2 entries; `topology` has 1"));
  EXPECT_THAT(error("topology: [Rung]\nnpus_count: [8]\nbandwidth: [1]\nlatency: [1]"),
              HasSubstr("Did you mean `Ring`?"));
  EXPECT_THAT(error("topology: [Ring]\nnpus_count: [1]\nbandwidth: [1]\nlatency: [1]"),
              HasSubstr("must be 2 or more"));
  EXPECT_THAT(error("topology: [Ring]\nnpus_count: [8]\nbandwith: [1]\nlatency: [1]"),
              HasSubstr("`bandwith` meant"));
  EXPECT_THAT(error("topology: [Ring]\nnpus_count: [8]\nbandwidth: [x]\nlatency: [1]"),
              HasSubstr("`x` is not a number"));
  EXPECT_THAT(error("topology: [Ring"), HasSubstr("is not closed"));
  EXPECT_THAT(error("- Ring"), HasSubstr("an item of no list"));
}

}  // namespace
}  // namespace plancast
