#include "base/ids.h"

#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/container/flat_hash_set.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

using DeviceId = Id<struct DeviceTag>;
using LinkId = Id<struct LinkTag>;

TEST(IdTest, IsATypeOfItsOwn) {
  EXPECT_FALSE((std::is_convertible_v<DeviceId, LinkId>));
  EXPECT_FALSE((std::is_convertible_v<int, DeviceId>));
  EXPECT_EQ(sizeof(DeviceId), 4);
}

TEST(IdTest, DefaultIsInvalid) {
  EXPECT_FALSE(DeviceId().valid());
  EXPECT_TRUE(DeviceId(0).valid());
  EXPECT_EQ(DeviceId(), DeviceId());
  EXPECT_NE(DeviceId(), DeviceId(0));
}

TEST(IdTest, OrdersHashesAndPrints) {
  EXPECT_LT(DeviceId(1), DeviceId(2));
  absl::flat_hash_set<DeviceId> set = {DeviceId(1), DeviceId(1)};
  EXPECT_EQ(set.size(), 1);
  EXPECT_EQ(::testing::PrintToString(DeviceId(3)), "3");
}

TEST(IdVectorTest, HandsOutIdsInOrder) {
  IdVector<DeviceId, std::string> names;
  EXPECT_EQ(names.next_id(), DeviceId(0));
  const DeviceId a = names.push_back("a");
  const DeviceId b = names.emplace_back(2, 'b');
  EXPECT_EQ(names[a], "a");
  EXPECT_EQ(names[b], "bb");
  EXPECT_TRUE(names.Contains(b));
  EXPECT_FALSE(names.Contains(DeviceId(2)));
  EXPECT_FALSE(names.Contains(DeviceId()));
}

TEST(IdVectorTest, IteratesItemsAndIds) {
  const IdVector<LinkId, int> numbers(std::vector<int>{4, 5});
  std::vector<LinkId> ids;
  for (LinkId id : numbers.ids()) ids.push_back(id);
  EXPECT_THAT(ids, ElementsAre(LinkId(0), LinkId(1)));
  EXPECT_THAT(numbers, ElementsAre(4, 5));
}

TEST(IdVectorTest, HoldsBooleans) {
  IdVector<LinkId, bool> seen(3);
  seen[LinkId(1)] = true;
  EXPECT_THAT(seen.raw(), ElementsAre(false, true, false));
}

}  // namespace
}  // namespace plancast
