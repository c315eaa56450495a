#ifndef PLANCAST_TESTS_GRAPH_FIELD_H_
#define PLANCAST_TESTS_GRAPH_FIELD_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/rule/expr.h"

namespace plancast {

inline uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
inline uint64_t MixName(absl::string_view name) {
  uint64_t h = 1;
  for (char c : name) h = Mix(h ^ static_cast<unsigned char>(c));
  return h;
}

// The prime field of p = 2^61 - 1, where sums are exact and have no order, so
// that a split op equals the unsplit one or it is wrong.
class Field {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

  Field() = default;
  explicit Field(int64_t value) {
    const int64_t p = static_cast<int64_t>(kPrime);
    value_ = static_cast<uint64_t>((value % p + p) % p);
  }
  static Field FromHash(uint64_t hash) { return Field(static_cast<int64_t>(hash % kPrime)); }

  // The representative nearest to zero: what `max` and signs look at.
  int64_t Centered() const {
    return value_ > kPrime / 2 ? static_cast<int64_t>(value_) - static_cast<int64_t>(kPrime)
                               : static_cast<int64_t>(value_);
  }
  uint64_t bits() const { return value_; }

  friend Field operator+(Field a, Field b) { return Raw((a.value_ + b.value_) % kPrime); }
  friend Field operator-(Field a, Field b) { return Raw((a.value_ + kPrime - b.value_) % kPrime); }
  friend Field operator*(Field a, Field b) {
    return Raw(static_cast<uint64_t>(static_cast<unsigned __int128>(a.value_) * b.value_ % kPrime));
  }
  // 1/0 is 0, the same wherever it happens.
  friend Field operator/(Field a, Field b) { return a * b.Power(kPrime - 2); }
  friend bool operator==(Field a, Field b) { return a.value_ == b.value_; }
  friend bool operator!=(Field a, Field b) { return !(a == b); }

  Field Power(uint64_t exponent) const {
    Field result(1), base = *this;
    for (; exponent > 0; exponent >>= 1, base = base * base) {
      if (exponent & 1) result = result * base;
    }
    return result;
  }

 private:
  static Field Raw(uint64_t value) {
    Field f;
    f.value_ = value;
    return f;
  }
  uint64_t value_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, Field f) { return out << f.Centered(); }

// What the evaluator needs to know about its numbers.
template <typename T>
struct Numbers;

template <>
struct Numbers<Field> {
  // Every double is a dyadic fraction, so literals are exact.
  static Field FromDouble(double value) {
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);
    const Field whole(static_cast<int64_t>(std::ldexp(mantissa, 53)));
    const int shift = exponent - 53;
    const Field power = Field(2).Power(static_cast<uint64_t>(std::abs(shift)));
    return shift >= 0 ? whole * power : whole / power;
  }
  static int64_t ToIndex(Field value) { return value.Centered(); }
  static Field Lowest() { return Field(-static_cast<int64_t>(Field::kPrime / 2)); }
  static Field Max(Field a, Field b) { return a.Centered() >= b.Centered() ? a : b; }
  static Field Random(uint64_t hash) { return Field::FromHash(hash); }
  // Small, so that exponents stay small integers.
  static Field Attribute(absl::string_view name) {
    return Field(static_cast<int64_t>(MixName(name) % 3 + 2));
  }
  static Field Apply(Function function, Field x) {
    switch (function) {
      case Function::kExp:
        // exp(a) exp(b) = exp(a + b) on small integers.
        if (std::llabs(x.Centered()) < (int64_t{1} << 40)) {
          const Field power = Field(37).Power(static_cast<uint64_t>(std::llabs(x.Centered())));
          return x.Centered() >= 0 ? power : Field(1) / power;
        }
        break;
      case Function::kTanh: {
        // Bounded, so that exponentials of it (capped logits) are those of small integers.
        const uint64_t hash = Mix(x.bits() ^ Mix(static_cast<uint64_t>(function) + 77));
        return Field(static_cast<int64_t>(hash >> 32) - (int64_t{1} << 31));
      }
      case Function::kRecip:
        return Field(1) / x;
      case Function::kRelu:
        return x.Centered() > 0 ? x : Field(0);
      case Function::kStep:
        return Field(x.Centered() > 0 ? 1 : 0);
      default:
        break;
    }
    return Field::FromHash(Mix(x.bits() ^ Mix(static_cast<uint64_t>(function) + 77)));
  }
};

template <>
struct Numbers<double> {
  static double FromDouble(double value) { return value; }
  static int64_t ToIndex(double value) { return std::llround(value); }
  static double Lowest() { return -1e300; }
  static double Max(double a, double b) { return a > b ? a : b; }
  static double Random(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }
  static double Attribute(absl::string_view name) { return 0.3 + Random(MixName(name)) * 0.6; }
  static double Apply(Function function, double x) {
    switch (function) {
      case Function::kExp:
        return std::exp(x);
      case Function::kLog:
        return std::log(x);
      case Function::kSqrt:
        return std::sqrt(x);
      case Function::kRsqrt:
        return 1 / std::sqrt(x);
      case Function::kRecip:
        return 1 / x;
      case Function::kTanh:
        return std::tanh(x);
      case Function::kSigmoid:
        return 1 / (1 + std::exp(-x));
      case Function::kErf:
        return std::erf(x);
      case Function::kSin:
        return std::sin(x);
      case Function::kCos:
        return std::cos(x);
      case Function::kRelu:
        return x > 0 ? x : 0;
      case Function::kStep:
        return x > 0 ? 1 : 0;
    }
    return 0;
  }
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_FIELD_H_
