#ifndef PLANCAST_EXECUTOR_SIMULATE_INDEX_PERIODS_H_
#define PLANCAST_EXECUTOR_SIMULATE_INDEX_PERIODS_H_

#include <cstdint>
#include <vector>

#include "graph/execution/execution_graph.h"

namespace plancast {

// Whether programs go over the same instances again and again, micro-batch by
// micro-batch: after so many instances of each program all of them do what they
// did, with each other as before.
class Periods {
 public:
  explicit Periods(const ExecutionGraph& graph);

  // Instances of a program in a period; 0: there is none.
  int32_t Of(int32_t program) const { return lengths_.empty() ? 0 : lengths_[program]; }
  // Whether an instance and the one a period later are alike: the same block after
  // the same others, and in a rendezvous with those a period after the peers.
  bool Alike(int32_t program, int32_t instance) const;
  // Takes so many periods for one. False: no program has four of these.
  bool Widen(int32_t periods);

 private:
  // Lengths of `micro_batches` at a time, if all programs repeat in their middles.
  bool Try(int32_t micro_batches);

  const ExecutionGraph& graph_;
  std::vector<int32_t> lengths_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_PERIODS_H_
