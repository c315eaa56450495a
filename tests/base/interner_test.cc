#include "base/interner.h"

#include <string>

#include <gtest/gtest.h>

namespace plancast {
namespace {

using NameId = Id<struct NameTag>;

TEST(InternerTest, GivesEqualValuesOneId) {
  Interner<NameId, std::string> names;
  const NameId a = names.Intern("a");
  const NameId b = names.Intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(names.Intern("a"), a);
  EXPECT_EQ(names.size(), 2);
  EXPECT_EQ(names[b], "b");
}

TEST(InternerTest, NumbersByFirstAppearance) {
  Interner<NameId, std::string> names;
  EXPECT_EQ(names.Intern("z"), NameId(0));
  EXPECT_EQ(names.Intern("a"), NameId(1));
}

TEST(InternerTest, FindsWithoutAdding) {
  Interner<NameId, std::string> names;
  EXPECT_EQ(names.Find("a"), std::nullopt);
  EXPECT_EQ(names.size(), 0);
  names.Intern("a");
  EXPECT_EQ(names.Find("a"), NameId(0));
}

TEST(InternerTest, KeepsReferencesWhileItGrows) {
  Interner<NameId, std::string> names;
  const std::string& first = names[names.Intern("first")];
  for (int i = 0; i < 1000; ++i) names.Intern(std::to_string(i));
  EXPECT_EQ(first, "first");
  EXPECT_EQ(&first, &names[NameId(0)]);
  EXPECT_EQ(names.Intern("999"), NameId(1000));
}

}  // namespace
}  // namespace plancast
