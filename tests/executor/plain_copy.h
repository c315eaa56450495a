#ifndef PLANCAST_TESTS_EXECUTOR_PLAIN_COPY_H_
#define PLANCAST_TESTS_EXECUTOR_PLAIN_COPY_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/copy_outcome.h"

namespace plancast {

struct PlainTimes {
  std::vector<int64_t> start, end;  // -1: not known
};

// What CopyRunner does, by looking at every picosecond. Small times only.
class PlainCopy {
 public:
  PlainCopy(const Block& block, const BlockIndex& index, const CopyCosts& costs,
            const CopyConditions& conditions)
      : block_(block), index_(index), costs_(costs), conditions_(conditions) {}

  PlainTimes Run() const;
  // From a stop. Times of what was over before are not known.
  PlainTimes GoOn(int64_t time, const CopyStop& stop) const;

 private:
  struct State;

  PlainTimes Go(State state) const;

  const Block& block_;
  const BlockIndex& index_;
  const CopyCosts& costs_;
  const CopyConditions& conditions_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_PLAIN_COPY_H_
