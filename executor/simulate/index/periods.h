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

  bool found() const { return !lengths_.empty(); }
  // Instances of a program in a period; 0: there is none.
  int32_t Of(int32_t program) const { return found() ? lengths_[program] : 0; }
  // Whether an instance and the one a period later are alike: the same block after
  // the same others, and in a rendezvous with those a period after the peers.
  bool Alike(int32_t program, int32_t instance) const;
  // The first instance from this one on that is not like the one a period later.
  int32_t AlikeUntil(int32_t program, int32_t instance);
  // Takes so many periods for one. False: no program has four of these.
  bool Widen(int32_t periods);
  // Takes that back.
  void Narrow(int32_t periods);
  // Looks for a period that repeats from these instances on, one of each program, for a while: as
  // of schedules that go over all micro-batches of a chunk before the next, or of tables that turn
  // after several.
  bool FindFrom(const std::vector<int32_t>& instances);
  void Forget() {
    lengths_.clear();
    alike_.clear();
  }

 private:
  // Lengths of `micro_batches` at a time, if all programs repeat in their middles.
  bool Try(int32_t micro_batches);
  // After how many instances a program does the same for later micro-batches, longest from this
  // one on, and how many micro-batches later; 0: not soon.
  struct Turn {
    int32_t length = 0, micro_batches = 0;
  };
  Turn TurnFrom(int32_t program, int32_t instance);

  const ExecutionGraph& graph_;
  std::vector<int32_t> lengths_;
  std::vector<int32_t> borders_;  // while it looks for a turn
  // Per program, instances that are known to be like those a period later, of which `end` is not.
  struct Stretch {
    int32_t begin = 0, end = -1;
  };
  std::vector<Stretch> alike_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_PERIODS_H_
