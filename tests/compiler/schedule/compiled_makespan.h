#ifndef PLANCAST_TESTS_COMPILER_SCHEDULE_COMPILED_MAKESPAN_H_
#define PLANCAST_TESTS_COMPILER_SCHEDULE_COMPILED_MAKESPAN_H_

#include <cstdint>
#include <functional>

#include "graph/kernel_spec.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {

// What a plan of `devices` devices takes through compiler and executor, in seconds: a kernel what
// `seconds` says, a communication nothing. -1, and a failed test, if it does not run.
double CompiledMakespan(PlanUnderTest& plan, int64_t devices,
                        const std::function<double(const KernelSpec&)>& seconds);

// So many linear layers: one product forward, one back, one for the weights.
PlanUnderTest LinearLayers(int64_t layers);
// A second for each product.
double ProductSeconds(const KernelSpec& kernel);

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_SCHEDULE_COMPILED_MAKESPAN_H_
