#include "cost_models/fit/portable_math.h"

#include <cmath>
#include <limits>

namespace plancast {
namespace {

// ln 2 in two parts; products of the upper one with exponents are exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Terms of the series, enough for the last bit where they are used.
constexpr int kExpTerms = 15, kLogTerms = 12;

}  // namespace

double PortableExp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  const double twos = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double rest = (x - twos * kLn2High) - twos * kLn2Low;
  double sum = 1;
  for (int i = kExpTerms; i > 0; --i) sum = 1 + sum * rest / i;
  return std::ldexp(sum, static_cast<int>(twos));
}

double PortableLog(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int twos = 0;
  double share = std::frexp(x, &twos);
  if (share < 0.70710678118654752) {
    share *= 2;
    --twos;
  }
  // ln(share) = 2 artanh(f), of which only the small terms are summed apart from the first.
  const double more = share - 1;
  const double f = more / (2 + more), square = f * f;
  double series = 0;
  for (int i = kLogTerms; i > 0; --i) series = square * (series + 1.0 / (2 * i + 1));
  // 2 f = more - f more: `more` is exact, so the first term is.
  return twos * kLn2High + (more - (f * (more - 2 * series) - twos * kLn2Low));
}

}  // namespace plancast
