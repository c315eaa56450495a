#include "graph/row_copies.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plancast {
namespace {

// Of `places`, the share that gets one of `each` copies.
double Hit(double places, int each) { return 1 - std::pow(1 - 1 / places, each); }

// The chance that a place with `own` of `groups` groups gets none of `each` copies, where `chosen`
// groups are drawn: the hypergeometric distribution of how many of them are its own.
double Missed(int own, const RowCopies& rows) {
  const auto log_choices = [](int n, int k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  const int others = rows.groups - own;
  const double all = log_choices(rows.groups, rows.chosen);
  double missed = 0;
  for (int s = std::max(0, rows.chosen - others); s <= std::min(own, rows.chosen); ++s) {
    const double chance =
        std::exp(log_choices(own, s) + log_choices(others, rows.chosen - s) - all);
    missed += chance * std::pow(1 - static_cast<double>(s) / rows.chosen, rows.each);
  }
  return missed;
}

// Of `places`, how many a row reaches whose receivers follow one another, on average over where
// they begin: at multiples of what `each` and all receivers have in common.
double Dealt(double places, const RowCopies& rows) {
  const double own = rows.dealt / places;
  const int step = std::gcd(rows.each, rows.dealt);
  double reached = 0;
  for (int first = 0; first < rows.dealt; first += step) {
    reached += std::floor((first + rows.each - 1) / own) - std::floor(first / own) + 1;
  }
  return std::min(places, reached * step / rows.dealt);
}

}  // namespace

double RowCopies::Reached(double places) const {
  if (dealt > 0) return Dealt(places, *this);
  if (chosen >= groups) return places * Hit(places, each);
  if (places >= groups) {
    const double open = places * chosen / groups;
    return open * Hit(open, each);
  }
  // Between whole numbers of groups a place.
  const double own = groups / places;
  const int less = static_cast<int>(own);
  const double missed = Missed(less, *this);
  return places * (1 - missed - (own - less) * (Missed(less + 1, *this) - missed));
}

}  // namespace plancast
