#include "base/units.h"

#include <cmath>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace plancast {
namespace {

constexpr const char* kTimeUnits[] = {"ps", "ns", "us", "ms", "s"};
constexpr const char* kBinaryUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
constexpr const char* kDecimalPrefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};

// `value` in the largest of `units`, each `step` of the one before, that leaves
// at least one before the point.
std::string Scaled(double value, double step, absl::Span<const char* const> units,
                   const char* suffix) {
  size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(value) >= step) {
    value /= step;
    ++unit;
  }
  // Beyond three digits %.3g would switch to an exponent.
  const std::string digits =
      std::abs(value) >= 999.5 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
  return absl::StrCat(digits, " ", units[unit], suffix);
}

std::string Decimal(double value, const char* suffix) {
  return Scaled(value, 1000, kDecimalPrefixes, suffix);
}

}  // namespace

std::string ToString(Picoseconds time) {
  if (time.value() == 0) return "0 s";
  return Scaled(static_cast<double>(time.value()), 1000, kTimeUnits, "");
}
std::string ToString(Bytes amount) {
  return Scaled(static_cast<double>(amount.value()), 1024, kBinaryUnits, "");
}
std::string ToString(Flops amount) { return Decimal(static_cast<double>(amount.value()), "FLOP"); }
std::string ToString(BytesPerSecond rate) { return Decimal(rate.value(), "B/s"); }
std::string ToString(FlopsPerSecond rate) { return Decimal(rate.value(), "FLOP/s"); }

std::ostream& operator<<(std::ostream& os, Picoseconds time) { return os << ToString(time); }
std::ostream& operator<<(std::ostream& os, Bytes amount) { return os << ToString(amount); }
std::ostream& operator<<(std::ostream& os, Flops amount) { return os << ToString(amount); }
std::ostream& operator<<(std::ostream& os, BytesPerSecond rate) { return os << ToString(rate); }
std::ostream& operator<<(std::ostream& os, FlopsPerSecond rate) { return os << ToString(rate); }

}  // namespace plancast
