#include "proto/text_proto.h"

#include "tests/proto/sample.pb.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::plancast::sample::Sample;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseTextProtoTest, RoundTrips) {
  ASSERT_OK_AND_ASSIGN(Sample sample,
                       ParseTextProto<Sample>("name: 'x' stages { kind: TREE }", "a.textproto"));
  EXPECT_EQ(sample.stages(0).kind(), Sample::TREE);
  EXPECT_EQ(ToTextProto(sample), "name: \"x\"\nstages {\n  kind: TREE\n}\n");
}

TEST(ParseTextProtoTest, NamesLineAndNearestField) {
  EXPECT_THAT(ParseTextProto<Sample>("name: 'x'\nstages {\n  layer: 3\n}", "a.textproto"),
              StatusIs(kInvalid,
                       "`a.textproto:3:8` has no field `layer`. Did you mean `layers`? There are "
                       "`layers`, `kind`, `peak_tflops`, `last`."));
}

TEST(ParseTextProtoTest, NamesLineOfOtherErrors) {
  EXPECT_THAT(ParseTextProto<Sample>("stages {\n  kind: OAK\n}", "a.textproto"),
              StatusIs(kInvalid, HasSubstr("\"OAK\"")));
  EXPECT_THAT(ParseTextProto<Sample>("name 3", "a.textproto"),
              StatusIs(kInvalid, StartsWith("`a.textproto:1:6` is not valid text proto: ")));
}

}  // namespace
}  // namespace plancast
