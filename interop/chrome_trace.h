#ifndef PLANCAST_INTEROP_CHROME_TRACE_H_
#define PLANCAST_INTEROP_CHROME_TRACE_H_

#include <string>

#include "executor/executor.h"
#include "graph/execution_graph.h"

namespace plancast {

// The timeline of a simulation in the Chrome trace format, which
// ui.perfetto.dev opens. One process per device class (named, with the
// representative's id as pid), one thread per stream; where two slices of a
// stream overlap in time, the later one goes to a further thread, so slices of
// one track never overlap. Flows join the two ends of every point-to-point
// message between pipeline stages; a counter per process follows its memory.
// Times are microseconds with picosecond digits.
std::string ChromeTrace(const ExecutionGraph& graph, const SimResult& result);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHROME_TRACE_H_
