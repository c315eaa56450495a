#ifndef PLANCAST_EXECUTOR_RUNTIME_H_
#define PLANCAST_EXECUTOR_RUNTIME_H_

#include <cstdint>
#include <vector>

#include "executor/executor.h"
#include "executor/simulate/index/host.h"

namespace plancast {

// Runtime parameters as the simulation reads them.
HostParams HostParamsOf(const RuntimeParams& runtime);
// A slow-down as the simulation reads it, fixed point 2^-20; at most 1000.
int64_t SlowdownQ20(double slowdown);
std::vector<int64_t> SlowdownsQ20(const std::vector<double>& slowdowns);
// SimInput::slowdown_q20; 1 where the GPU's data tell.
int64_t SlowdownQ20(const RuntimeParams& runtime);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_RUNTIME_H_
