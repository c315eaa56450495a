#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_SUMMARISE_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_SUMMARISE_H_

#include <cstdint>
#include <vector>

#include "executor/executor.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// The programs and entities of a simulation that a summary is about: all, or
// those of one job.
struct SummaryRange {
  int32_t program_begin = 0, program_end = 0;
  int32_t entity_begin = 0, entity_end = 0;
};
SummaryRange WholeRange(const SimInput& input);

// Times, breakdowns, memory and the critical path of a range. Entities are
// numbered from the beginning of the range, programs too. The breakdowns
// partition [0, trace.makespan_ps]. `memory`: of each program of the range.
SimResult Summarise(const SimInput& input, const SimTrace& trace,
                    const std::vector<ClassMemory>& memory, const SummaryRange& range);

// Every task of a range as it ran, ordered by start; or class by class and stream by stream.
std::vector<Slice> SlicesOf(const SimInput& input, const SimTrace& trace, const SummaryRange& range,
                            bool by_start = true);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_SUMMARISE_H_
