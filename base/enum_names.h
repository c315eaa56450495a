#ifndef PLANCAST_BASE_ENUM_NAMES_H_
#define PLANCAST_BASE_ENUM_NAMES_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/strings/string_view.h"

// The names of an enum's values: one table beside the enum, for those who print and those
// who read.
//
//   enum class Fruit : uint8_t { kApple, kPear };
//   inline constexpr auto kFruitNames = NamesOf<Fruit>("apple", "pear");
//
//   kFruitNames[Fruit::kPear]   kFruitNames.Find("pear")   JoinQuoted(kFruitNames)

namespace plancast {

// GCC and Clang print a value without a name as a cast: `value = (Fruit)2`.
template <auto value>
constexpr bool IsNamed() {
  return std::string_view(__PRETTY_FUNCTION__).find("= (") == std::string_view::npos;
}

// Whether the enum's values are 0 to n - 1.
template <typename Enum, size_t n>
inline constexpr bool kHasValues = IsNamed<static_cast<Enum>(n - 1)>() &&
                                   !IsNamed<static_cast<Enum>(n)>();

// Made by NamesOf.
template <typename Enum, size_t n>
struct EnumNames {
  using value_type = absl::string_view;
  using const_iterator = const absl::string_view*;

  absl::string_view names[n];

  constexpr absl::string_view operator[](Enum value) const {
    return names[static_cast<size_t>(value)];
  }
  constexpr std::optional<Enum> Find(absl::string_view name) const {
    for (size_t i = 0; i < n; ++i) {
      if (names[i] == name) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
  constexpr const_iterator begin() const { return names; }
  constexpr const_iterator end() const { return names + n; }
  static constexpr size_t size() { return n; }

  static constexpr std::array<Enum, n> Values() {
    std::array<Enum, n> values = {};
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<Enum>(i);
    return values;
  }
};

// In the order of the values, one for each; fewer or more do not compile.
template <typename Enum, typename... Names>
constexpr EnumNames<Enum, sizeof...(Names)> NamesOf(Names... names) {
  static_assert(kHasValues<Enum, sizeof...(Names)>, "one name for each value of the enum");
  return {{names...}};
}

}  // namespace plancast

#endif  // PLANCAST_BASE_ENUM_NAMES_H_
