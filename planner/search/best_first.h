#ifndef PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_
#define PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "strategy/short_form.h"

namespace plancast {

// The plans in an order in which those with equal programs follow one another
// (GraphWorkspace).
std::vector<int64_t> AlikeTogether(const std::vector<ShortForm>& plans);
// In an order in which those follow one another whose layers are compiled alike: for several
// processes, each of which takes some plans in a row and remembers what its own ones share.
std::vector<int64_t> BodiesTogether(const std::vector<ShortForm>& plans);

// Which plans a ranking of the best few simulates: best bound first, in rounds, until none that is
// left can be among the best. Rounds are as large for any number of workers, so that as many plans
// are simulated.
class BestFirst {
 public:
  static constexpr int64_t kRound = 16;

  // Plans that fit, in the order in which equal bounds are taken, each with what it is at least.
  // `known`: values of plans elsewhere that are to be beaten, too. `top` is above 0.
  BestFirst(std::vector<std::pair<int64_t, double>> bounds, int64_t top,
            const std::vector<double>& known = {});

  // The plans of the next round; none: all that are left are none of the best.
  std::vector<int64_t> NextRound();
  // At most so many of those that come next if nothing better is found.
  std::vector<int64_t> Ahead(int64_t most) const;
  // A value that was simulated.
  void Found(double value);

  // What all that the round and those after it are is at least.
  double bound() const { return bound_; }
  int64_t left() const { return static_cast<int64_t>(order_.size()) - tried_; }

 private:
  bool MayBeBest(int64_t at) const;

  std::vector<std::pair<int64_t, double>> order_;
  const int64_t top_;
  std::vector<double> best_;  // values so far, ascending, `top_` at most
  int64_t tried_ = 0;
  double bound_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_
