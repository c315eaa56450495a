#ifndef PLANCAST_INTEROP_CHROME_TRACE_H_
#define PLANCAST_INTEROP_CHROME_TRACE_H_

#include <string>

#include "executor/executor.h"
#include "graph/execution/execution_graph.h"
#include "interop/timeline/timeline.h"

namespace plancast {

// When what of a simulation ran. One process per device class (named, with the
// representative's id as number), one track per stream. Flows join the two ends of
// every point-to-point message between pipeline stages; a counter per process follows
// its memory.
Timeline ForecastTimeline(const ExecutionGraph& graph, const SimResult& result);

// The same in the Chrome trace format, which ui.perfetto.dev opens (TimelineJson()).
std::string ChromeTrace(const ExecutionGraph& graph, const SimResult& result);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHROME_TRACE_H_
