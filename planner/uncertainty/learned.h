#ifndef PLANCAST_PLANNER_UNCERTAINTY_LEARNED_H_
#define PLANCAST_PLANNER_UNCERTAINTY_LEARNED_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/executor.h"

namespace plancast {

// What the logarithm of a run's time hangs on, beside luck.
struct LearnableShare {
  double share = 0;  // d ln(time) / d ln(factor)
  double sigma = 0;  // of the factor's logarithm before any run of the user's is seen; 0: parts'
};

// Of a simulated plan by name: the factors of its error (kernels, links, software), and its parts
// that errors of other kinds lengthen: `part/exposed` (communication), `part/bubble`,
// `part/launch` (the host), as shares of the iteration, mean over devices.
std::map<std::string, LearnableShare> LearnableShares(const SimResult& result);

// What a user's own runs tell of factors: the normal posterior of their logarithms
// (python/plancast/learning). Immutable.
class Learned {
 public:
  // `covariance` is row-major and symmetric. Errors: sizes that do not match, no numbers.
  static absl::StatusOr<Learned> Create(std::vector<std::string> names, std::vector<double> mean,
                                        std::vector<double> covariance, double plan);

  // ln(median of what runs take / what is forecast without them).
  double Log(const SimResult& result) const;
  // Puts what is left open in place of what was before: scales of factors, the plan's own error
  // (`shipped_plan` until then). The scale of the whole (planner/uncertainty/uncertainty.h) with
  // the correlations between factors.
  double Narrow(double shipped_plan, SimResult* result) const;

 private:
  std::vector<std::string> names_;
  std::vector<double> mean_, covariance_;
  double plan_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_UNCERTAINTY_LEARNED_H_
