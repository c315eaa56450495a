#include "proto/json.h"

#include <google/protobuf/struct.pb.h>

#include <string>
#include <utility>

#include "tests/proto/sample.pb.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::plancast::sample::Sample;

std::string ErrorOf(absl::string_view json) {
  return std::string(ParseJson<Sample>(json, "`a.json`").status().message());
}

TEST(ParseJsonTest, ReadsBothSpellingsOfAName) {
  ASSERT_OK_AND_ASSIGN(
      Sample sample,
      ParseJson<Sample>(R"({"stages": [{"peak_tflops": 1}, {"peakTflops": 2}]})", "`a.json`"));
  EXPECT_EQ(sample.stages(0).peak_tflops(), 1);
  EXPECT_EQ(sample.stages(1).peak_tflops(), 2);
}

TEST(ParseJsonTest, NamesTheUnknownFieldAndTheNearest) {
  EXPECT_EQ(ErrorOf(R"({"nmae": "x"})"),
            "`a.json` has no field `nmae`. Did you mean `name`? There are `name`, `stages`, "
            "`by_name`.");
  EXPECT_EQ(ErrorOf(R"({"stages": [{}, {"layer": 1}]})"),
            "`a.json` has no field `layer` in `stages[1]`. Did you mean `layers`? There are "
            "`layers`, `kind`, `peak_tflops`, `last`.");
  EXPECT_EQ(ErrorOf(R"({"by_name": {"x": {"lasst": true}}})"),
            "`a.json` has no field `lasst` in `by_name[0].value`. Did you mean `last`? There are "
            "`layers`, `kind`, `peak_tflops`, `last`.");
}

TEST(ParseJsonTest, ListsTheFieldsWhenNoneIsNear) {
  EXPECT_EQ(ErrorOf(R"({"stages": [{"qqq": 1}]})"),
            "`a.json` has no field `qqq` in `stages[0]`. There are `layers`, `kind`, "
            "`peak_tflops`, `last`.");
}

TEST(ParseJsonTest, SaysWhatAValueHasToBe) {
  EXPECT_EQ(ErrorOf(R"({"stages": [{"layers": 1.5}]})"),
            "`a.json`: `stages[0].layers` cannot be `1.5`; a whole number is needed.");
  EXPECT_EQ(ErrorOf(R"({"stages": [{"last": "maybe"}]})"),
            "`a.json`: `stages[0].last` cannot be `maybe`; `true` or `false` is needed.");
  EXPECT_EQ(ErrorOf(R"({"stages": 3})"),
            "`a.json`: `stages` cannot be `3`; a block of fields is needed.");
  EXPECT_EQ(ErrorOf(R"({"stages": [{"layers": [1]}]})"),
            "`a.json`: `stages[0].layers` cannot be `[...]`; a whole number is needed.");
  EXPECT_EQ(ErrorOf(R"({"name": ["x"]})"),
            "`a.json`: `name` cannot be `[...]`; a string is needed.");
}

TEST(ParseJsonTest, SuggestsOrListsEnumValues) {
  EXPECT_EQ(ErrorOf(R"({"stages": [{"kind": "TREEE"}]})"),
            "`a.json`: `stages[0].kind` cannot be `TREEE`. Did you mean `TREE`? There are `RING`, "
            "`TREE`.");
  EXPECT_EQ(ErrorOf(R"({"stages": [{"kind": "x"}]})"),
            "`a.json`: `stages[0].kind` cannot be `x`. There are `RING`, `TREE`.");
}

TEST(ParseJsonTest, ShowsWhereTheSyntaxBreaks) {
  EXPECT_EQ(ErrorOf("{\"name\": \"a\" \"b\"}"),
            "`a.json` is not valid JSON: Expected , or } after key:value pair. Look near "
            "`{\"name\": \"a\" \"b\"}`.");
  EXPECT_EQ(ErrorOf("[1]"), "`a.json` is not valid JSON: Root element must be a message.");
  EXPECT_EQ(ErrorOf(""), "`a.json` is not valid JSON: Unexpected end of string. Expected a value.");
}

TEST(ParseJsonTest, RefusesDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[1,";
  EXPECT_EQ(ErrorOf(deep), "`a.json` is nested more than 20 deep; no description of ours is.");
  EXPECT_EQ(ErrorOf("{\"name\": \"" + deep + "\"}"), "");
}

TEST(ToJsonTest, PrintsWhateverWasRead) {
  for (const auto& [open, close] : {std::pair<std::string, std::string>{R"({"a":)", "}"},
                                    {R"([)", "]"},
                                    {R"([{"a":)", "}]"},
                                    {R"({"a":[[)", "]]}"}}) {
    int read = 0;
    for (int levels = 0; levels < 120; ++levels) {
      std::string json = R"({"b":)";
      for (int i = 0; i < levels; ++i) json += open;
      json += "1";
      for (int i = 0; i < levels; ++i) json += close;
      json += "}";
      const auto parsed = ParseJson<google::protobuf::Struct>(json, "`a.json`");
      if (!parsed.ok()) {
        EXPECT_THAT(parsed.status().message(), testing::HasSubstr("nested more than 20 deep"));
        continue;
      }
      ++read;
      EXPECT_THAT(ToJson(*parsed), IsOkAndHolds(json));
    }
    EXPECT_GT(read, 5) << open;
  }
}

TEST(ToJsonTest, RoundTripsUnderProtoNames) {
  Sample sample;
  sample.add_stages()->set_peak_tflops(312);
  EXPECT_THAT(ToJson(sample), IsOkAndHolds(R"({"stages":[{"peak_tflops":312}]})"));
  ASSERT_OK_AND_ASSIGN(const std::string json, ToJson(sample, JsonStyle::kIndented));
  ASSERT_OK_AND_ASSIGN(Sample back, ParseJson<Sample>(json, "`a.json`"));
  EXPECT_EQ(back.SerializeAsString(), sample.SerializeAsString());
}

}  // namespace
}  // namespace plancast
