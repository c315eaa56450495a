#ifndef PLANCAST_EXECUTOR_MEMORY_PEAK_H_
#define PLANCAST_EXECUTOR_MEMORY_PEAK_H_

#include <cstdint>

#include "executor/memory/allocator.h"

namespace plancast {

// Where a program's live memory is highest: after `events` memory events of layer
// `layer` of an instance; instance -1: before the first. Of several equal places
// the first.
struct PeakPlace {
  int32_t instance = -1;
  int32_t layer = 0;
  int32_t events = 0;
};
struct Peak {
  PeakPlace place;
  int64_t allocated = 0;  // static memory included
  PoolBytes pools;        // the most of each pool, whenever that is; without static memory
  int64_t largest = 0;    // allocation of any block that runs
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_PEAK_H_
