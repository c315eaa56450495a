#ifndef PLANCAST_GRAPH_SPLIT_ONLINE_SOFTMAX_H_
#define PLANCAST_GRAPH_SPLIT_ONLINE_SOFTMAX_H_

#include <optional>
#include <vector>

#include "graph/rule/op_rule.h"

namespace plancast {

// The statements of a rule that reduce one factor as an online softmax: a
// maximum m, weights exp(x - m), and sums that are linear in the weights.
// Each shard of the factor may use its own m; the sums are put together with
// factors exp(m_local - m_global).
struct OnlineSoftmax {
  std::vector<int> tensors;  // m first, then the sums
  int last_statement = 0;    // the last sum; nothing reads the statistics before it
};

// Nothing if `factor` is not reduced in this form: then each statistic is
// reduced by itself.
std::optional<OnlineSoftmax> FindOnlineSoftmax(const OpRule& rule, int factor);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_ONLINE_SOFTMAX_H_
