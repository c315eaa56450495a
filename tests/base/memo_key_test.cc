#include "base/memo_key.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct Inner {
  double size = 0.1;
  std::optional<int> count;
  PLANCAST_KEY_FIELDS(Inner, size, count)
};

struct Outer {
  std::string name;
  Colour colour = Colour::kRed;
  bool flag = false;
  std::vector<std::string> words;
  std::set<int64_t> numbers;
  std::map<std::string, Inner> parts;
  PLANCAST_KEY_FIELDS(Outer, name, colour, flag, words, numbers, parts)
};

TEST(MemoKeyTest, EveryFieldCounts) {
  const std::string plain = MemoKey(Outer());
  std::set<std::string> keys = {plain};
  const auto with = [&](auto change) {
    Outer value;
    change(value);
    EXPECT_TRUE(keys.insert(MemoKey(value)).second);
  };
  with([](Outer& o) { o.name = "a"; });
  with([](Outer& o) { o.colour = Colour::kBlue; });
  with([](Outer& o) { o.flag = true; });
  with([](Outer& o) { o.words = {""}; });
  with([](Outer& o) { o.words = {"a b"}; });
  with([](Outer& o) { o.words = {"a", "b"}; });
  with([](Outer& o) { o.numbers = {1}; });
  with([](Outer& o) { o.parts["x"]; });
  with([](Outer& o) { o.parts["x"].size = 0.1 + 1e-17 + 1e-16; });
  with([](Outer& o) { o.parts["x"].count = 0; });
  EXPECT_EQ(MemoKey(Outer()), plain);
}

TEST(MemoKeyTest, TextsDoNotRunIntoEachOther) {
  Outer first, second;
  first.words = {"a 1:b"};
  second.words = {"a", "b"};
  EXPECT_NE(MemoKey(first), MemoKey(second));
}

}  // namespace
}  // namespace plancast
