#include "interop/chakra/verify_traces.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/chakra/et_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

ChakraTrace TraceOf(std::vector<chakra::Node> nodes) {
  EtFile file;
  file.nodes = std::move(nodes);
  auto trace = ChakraTraceFrom(file, "x");
  EXPECT_OK(trace);
  return *std::move(trace);
}

absl::Status Verify(const std::vector<ChakraTrace>& traces, const CommGroups& groups = {}) {
  std::vector<const ChakraTrace*> pointers;
  for (const ChakraTrace& trace : traces) pointers.push_back(&trace);
  return VerifyTraces(pointers, groups);
}

TEST(VerifyTracesTest, TracesThatFit) {
  EXPECT_OK(
      Verify({TraceOf({EtMessage(0, true, 1, 4, 10), EtCollective(1, chakra::ALL_REDUCE, 8)}),
              TraceOf({EtMessage(7, false, 0, 4, 10), EtCollective(9, chakra::ALL_REDUCE, 8)})}));
  EXPECT_OK(Verify({TraceOf({EtCollective(1, chakra::ALL_REDUCE, 8, {}, "2")}), TraceOf({})},
                   {{2, {0}}}));
}

TEST(VerifyTracesTest, CollectivesInDifferentOrder) {
  const chakra::Node reduce = EtCollective(1, chakra::ALL_REDUCE, 8);
  const chakra::Node gather = EtCollective(2, chakra::ALL_GATHER, 8);
  chakra::Node late = reduce;
  late.set_id(3);
  EXPECT_THAT(Verify({TraceOf({reduce, gather}), TraceOf({gather, late})}).message(),
              HasSubstr("same in the same order"));
  EXPECT_THAT(Verify({TraceOf({reduce, gather}), TraceOf({reduce})}).message(),
              HasSubstr("rank 1 issues 1 collectives of group `0`, rank 0 issues 2"));
}

TEST(VerifyTracesTest, MessagesWithoutOtherEnd) {
  EXPECT_THAT(
      Verify({TraceOf({EtMessage(0, true, 1, 4, 10)}), TraceOf({EtMessage(0, false, 0, 4, 11)})})
          .message(),
      HasSubstr("sends exceed receives by 1"));
  EXPECT_THAT(Verify({TraceOf({EtMessage(0, true, 5, 4, 10)}), TraceOf({})}).message(),
              HasSubstr("names rank 5; there are 2"));
}

TEST(VerifyTracesTest, Groups) {
  const ChakraTrace trace = TraceOf({EtCollective(1, chakra::ALL_REDUCE, 8, {}, "2")});
  EXPECT_THAT(Verify({trace, trace}).message(), HasSubstr("--comm-groups"));
  EXPECT_THAT(Verify({trace, trace}, {{2, {0}}}).message(), HasSubstr("no member"));
  EXPECT_THAT(Verify({trace, trace}, {{2, {0, 1, 7}}}).message(), HasSubstr("has rank 7"));
}

}  // namespace
}  // namespace plancast
