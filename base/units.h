#ifndef PLANCAST_BASE_UNITS_H_
#define PLANCAST_BASE_UNITS_H_

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "base/int128.h"

namespace plancast {

namespace units_internal {

// std::numeric_limits knows no 128-bit integer in strict mode.
template <typename Rep>
constexpr Rep MaxOf() {
  if constexpr (std::is_same_v<Rep, int128>) {
    return static_cast<int128>(~static_cast<unsigned __int128>(0) >> 1);
  } else {
    return std::numeric_limits<Rep>::max();
  }
}

}  // namespace units_internal

// A number with a unit. Quantities of one unit add, subtract and compare; a
// scalar multiplies; different units meet only in the operators below.
// `Tag` names the unit and `Rep` holds the value.
template <typename Tag, typename Rep>
class Quantity {
 public:
  using rep = Rep;

  constexpr Quantity() = default;
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, Rep>>>
  constexpr explicit Quantity(T value) : value_(static_cast<Rep>(value)) {
    static_assert(std::is_floating_point_v<Rep> || !std::is_floating_point_v<T>,
                  "an integer quantity needs a stated rounding, e.g. Seconds(x)");
  }

  constexpr Rep value() const { return value_; }
  static constexpr Quantity Max() { return Quantity(units_internal::MaxOf<Rep>()); }

  constexpr Quantity& operator+=(Quantity o) { return value_ += o.value_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value_ -= o.value_, *this; }
  constexpr Quantity& operator*=(Rep s) { return value_ *= s, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }

  // A scalar has to be an integer where the quantity is one.
  template <typename S>
  using ScalarFor = std::enable_if_t<(std::is_arithmetic_v<S> || std::is_same_v<S, Rep>)&&(
      std::is_floating_point_v<Rep> || !std::is_floating_point_v<S>)>;
  template <typename S, typename = ScalarFor<S>>
  friend constexpr Quantity operator*(Quantity a, S s) {
    return Quantity(static_cast<Rep>(a.value_ * static_cast<Rep>(s)));
  }
  template <typename S, typename = ScalarFor<S>>
  friend constexpr Quantity operator*(S s, Quantity a) {
    return a * s;
  }

  template <typename H>
  friend H AbslHashValue(H h, Quantity a) {
    if constexpr (std::is_same_v<Rep, int128>) {
      return H::combine(std::move(h), static_cast<int64_t>(a.value_ >> 64),
                        static_cast<uint64_t>(a.value_));
    } else {
      return H::combine(std::move(h), a.value_);
    }
  }

 private:
  Rep value_ = 0;
};

// Simulated time: integer, so that ties do not depend on the order of sums.
// 2^63 ps are 106 days.
using Picoseconds = Quantity<struct PicosecondsTag, int64_t>;
using Bytes = Quantity<struct BytesTag, int64_t>;
// Floating-point operations, exact: one iteration of a large model on many
// devices leaves 64 bits.
using Flops = Quantity<struct FlopsTag, int128>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

// a / b as a plain number.
template <typename Tag, typename Rep>
constexpr double Ratio(Quantity<Tag, Rep> a, Quantity<Tag, Rep> b) {
  return static_cast<double>(a.value()) / static_cast<double>(b.value());
}

// Rounds up to whole picoseconds and saturates. A value within an ulp of a whole
// number counts as that number: Seconds(1.1) is 1100000000000 ps.
constexpr Picoseconds Seconds(double seconds) {
  const double ps = seconds * 1e12;
  if (!(ps < 9.2e18)) return Picoseconds::Max();
  if (ps <= -9.2e18) return -Picoseconds::Max();
  const double slack = (ps < 0 ? -ps : ps) * std::numeric_limits<double>::epsilon();
  const auto truncated = static_cast<int64_t>(ps);
  return Picoseconds(truncated + (ps - static_cast<double>(truncated) > slack ? 1 : 0));
}
constexpr Picoseconds Milliseconds(double ms) { return Seconds(ms * 1e-3); }
constexpr Picoseconds Microseconds(double us) { return Seconds(us * 1e-6); }
constexpr Picoseconds Nanoseconds(double ns) { return Seconds(ns * 1e-9); }
constexpr double ToSeconds(Picoseconds t) { return static_cast<double>(t.value()) * 1e-12; }

constexpr Bytes KiB(int64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(int64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(int64_t n) { return Bytes(n << 30); }
constexpr double ToGiB(Bytes b) { return static_cast<double>(b.value()) / (1 << 30); }

// Decimal, as vendors count.
constexpr BytesPerSecond GigabytesPerSecond(double n) { return BytesPerSecond(n * 1e9); }
constexpr BytesPerSecond GigabitsPerSecond(double n) { return BytesPerSecond(n * 1.25e8); }
constexpr FlopsPerSecond TeraflopsPerSecond(double n) { return FlopsPerSecond(n * 1e12); }

// The time to move or compute this much, rounded up; Max() at rate zero.
constexpr Picoseconds operator/(Bytes amount, BytesPerSecond rate) {
  if (amount.value() == 0) return Picoseconds(0);
  return Seconds(static_cast<double>(amount.value()) / rate.value());
}
constexpr Picoseconds operator/(Flops amount, FlopsPerSecond rate) {
  if (amount.value() == 0) return Picoseconds(0);
  return Seconds(static_cast<double>(amount.value()) / rate.value());
}
constexpr BytesPerSecond operator/(Bytes amount, Picoseconds time) {
  return BytesPerSecond(static_cast<double>(amount.value()) / ToSeconds(time));
}
constexpr FlopsPerSecond operator/(Flops amount, Picoseconds time) {
  return FlopsPerSecond(static_cast<double>(amount.value()) / ToSeconds(time));
}

// For people, three significant digits: "1.23 ms", "3.4 GiB", "900 GB/s",
// "989 TFLOP/s", "3.3 EFLOP".
std::string ToString(Picoseconds time);
std::string ToString(Bytes amount);
std::string ToString(Flops amount);
std::string ToString(BytesPerSecond rate);
std::string ToString(FlopsPerSecond rate);

std::ostream& operator<<(std::ostream& os, Picoseconds time);
std::ostream& operator<<(std::ostream& os, Bytes amount);
std::ostream& operator<<(std::ostream& os, Flops amount);
std::ostream& operator<<(std::ostream& os, BytesPerSecond rate);
std::ostream& operator<<(std::ostream& os, FlopsPerSecond rate);

}  // namespace plancast

#endif  // PLANCAST_BASE_UNITS_H_
