#ifndef PLANCAST_EXECUTOR_CONTENTION_CONTENTION_H_
#define PLANCAST_EXECUTOR_CONTENTION_CONTENTION_H_

#include <vector>

#include "absl/types/span.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Which communications others may slow down.
struct Contention {
  std::vector<bool> of_group;
  // Per resource that may be full: the cursors (entity * kNumStreams + stream, of
  // one member of each group) that may load it. CSR.
  std::vector<int32_t> cursor_begin, cursors;

  absl::Span<const int32_t> CursorsOn(int32_t resource) const {
    return absl::MakeConstSpan(cursors).subspan(
        cursor_begin[resource], cursor_begin[resource + 1] - cursor_begin[resource]);
  }
};

// A stream runs one thing at a time, so groups with a stream of an entity in
// common never meet; a resource where all that can meet fits is no obstacle.
Contention FindContention(const CommUses& uses, const SimGraph& sim,
                          const std::vector<RealisedCollective>& realised);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CONTENTION_CONTENTION_H_
