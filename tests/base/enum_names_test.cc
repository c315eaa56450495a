#include "base/enum_names.h"

#include <cstdint>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/suggest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

enum class Fruit : uint8_t { kApple, kPear, kPlum };
inline constexpr auto kFruitNames = NamesOf<Fruit>("apple", "pear", "plum");

struct Basket {
  enum class Size { kSmall, kLarge };
};

TEST(EnumNamesTest, NamesEveryValueInOrder) {
  EXPECT_EQ(kFruitNames[Fruit::kApple], "apple");
  EXPECT_EQ(kFruitNames[Fruit::kPlum], "plum");
  EXPECT_THAT(kFruitNames, ElementsAre("apple", "pear", "plum"));
  EXPECT_EQ(JoinQuoted(kFruitNames), "`apple`, `pear`, `plum`");
}

TEST(EnumNamesTest, ListsTheValues) {
  EXPECT_THAT(kFruitNames.Values(), ElementsAre(Fruit::kApple, Fruit::kPear, Fruit::kPlum));
}

TEST(EnumNamesTest, FindsAValueByItsName) {
  EXPECT_THAT(kFruitNames.Find("pear"), Optional(Fruit::kPear));
  EXPECT_EQ(kFruitNames.Find("Pear"), std::nullopt);
  EXPECT_EQ(kFruitNames.Find(""), std::nullopt);
  static_assert(kFruitNames.Find("apple") == Fruit::kApple);
}

TEST(EnumNamesTest, ATableWithAnEntryTooFewOrTooManyDoesNotCompile) {
  static_assert(!kHasValues<Fruit, 2>);
  static_assert(kHasValues<Fruit, 3>);
  static_assert(!kHasValues<Fruit, 4>);
  static_assert(!kHasValues<Basket::Size, 1>);
  static_assert(kHasValues<Basket::Size, 2>);
  static_assert(!kHasValues<Basket::Size, 3>);
}

}  // namespace
}  // namespace plancast
