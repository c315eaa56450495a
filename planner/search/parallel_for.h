#ifndef PLANCAST_PLANNER_SEARCH_PARALLEL_FOR_H_
#define PLANCAST_PLANNER_SEARCH_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

namespace plancast {

// Runs `work(i, thread)` for i < count on `threads` threads, or as many as the system gives, a few
// neighbours at a time. The calling thread only reports, now and then and when all is done,
// unless there is no other. False if the report asked to stop.
bool ParallelFor(int64_t count, int threads, const std::function<void(int64_t, int)>& work,
                 const std::function<bool(int64_t done)>& progress = nullptr);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_PARALLEL_FOR_H_
