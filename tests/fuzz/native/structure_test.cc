#include "tests/fuzz/native/structure.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

std::set<std::string> Drawn(const std::string& text,
                            Region (*draw)(absl::string_view, FuzzRandom&)) {
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    FuzzRandom random(seed);
    const Region region = draw(text, random);
    EXPECT_LE(region.begin, region.end);
    EXPECT_LE(region.end, text.size());
    drawn.insert(text.substr(region.begin, region.size()));
  }
  return drawn;
}

TEST(StructureTest, DrawsWhatAPersonWouldPointAt) {
  const std::set<std::string> json = Drawn("{\"a\": [1, {\"b\": (2)}]}\nlast", DrawRegion);
  EXPECT_THAT(json, testing::IsSupersetOf({"[1, {\"b\": (2)}]", "{\"b\": (2)}", "(2)", "\"a\"",
                                           "last", "{\"a\": [1, {\"b\": (2)}]}\n"}));
  const std::set<std::string> xml = Drawn("<a x=\"1\"><b/><a></a></a>", DrawRegion);
  EXPECT_THAT(xml, testing::IsSupersetOf({"<b/>", "<a></a>", "<a x=\"1\"><b/><a></a></a>", "</a>",
                                          "<a x=\"1\">", "\"1\""}));
}

TEST(StructureTest, DrawsNumbersAndWords) {
  EXPECT_THAT(Drawn("x1=-2.5, yy=30", DrawNumber), testing::IsSupersetOf({"-2.5", "1", "30"}));
  EXPECT_THAT(Drawn("x1 = yy_z", DrawWord), testing::ElementsAre("x1", "yy_z"));
  EXPECT_THAT(Drawn("", DrawRegion), testing::ElementsAre(""));
  EXPECT_THAT(Drawn("(", DrawRegion), testing::ElementsAre("("));
}

TEST(StructureTest, AnyBytesWillDo) {
  for (const std::string& text : {std::string("<"), std::string("</"), std::string("\"\n{[<a"),
                                  std::string(1, '\0'), std::string("<a><a><a")}) {
    Drawn(text, DrawRegion);
    Drawn(text, DrawNumber);
    Drawn(text, DrawWord);
  }
}

}  // namespace
}  // namespace plancast
