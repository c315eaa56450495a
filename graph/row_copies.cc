#include "graph/row_copies.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

double RowCopies::Reached(double places) const {
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
