#ifndef PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_
#define PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
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

// For each plan the one that is the same but recomputes nothing, if it is among them, else the plan
// itself. What recomputes does all that the other does and more, so it takes no less.
std::vector<int64_t> WithoutRecompute(const std::vector<ShortForm>& plans);

// Which plans a ranking of the best few simulates: best bound first, in rounds, until none that is
// left can be among the best. Rounds are as large for any number of workers, so that as many plans
// are simulated. Of some plans nothing may be known at first but the bound of another that takes
// no longer; their own is asked for once they would be simulated by that one.
class BestFirst {
 public:
  static constexpr int64_t kRound = 16;

  struct Bound {
    int64_t plan = 0;
    double least = 0;  // what it is at least
    bool own = true;   // or that of another plan, to be asked for before it is simulated
  };

  // Plans that fit or are to be asked for. Equal bounds are taken in the order of their numbers.
  // `known`: values of plans elsewhere that are to be beaten, too. `top` is above 0.
  BestFirst(const std::vector<Bound>& bounds, int64_t top, const std::vector<double>& known = {});

  // Plans whose own bounds are needed to tell the next round; to be answered by Asked.
  std::vector<int64_t> ToAsk() const;
  // The own bound of such a plan; none: it is not among the plans.
  void Asked(int64_t plan, std::optional<double> least);

  // The plans of the next round, once there are none to ask; none: all that are left are none of
  // the best.
  std::vector<int64_t> NextRound();
  // At most so many of those that come next if nothing better is found, and that are known to fit.
  std::vector<int64_t> Ahead(int64_t most) const;
  // A value that was simulated.
  void Found(double value);

  // What all that the round and those after it are is at least.
  double bound() const { return bound_; }
  int64_t left() const { return static_cast<int64_t>(open_.size()); }

 private:
  using Open = std::set<std::pair<double, int64_t>>;  // least, plan

  bool MayBeBest(double least) const;

  Open open_;                                   // all that are left, by what is known
  std::unordered_map<int64_t, double> asleep_;  // of those, whose own bound is not known
  const int64_t top_;
  std::vector<double> best_;  // values so far, ascending, `top_` at most
  double bound_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_BEST_FIRST_H_
