#ifndef PLANCAST_EXECUTOR_WHAT_IF_WHAT_IF_H_
#define PLANCAST_EXECUTOR_WHAT_IF_WHAT_IF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// One thing made faster, slower or free.
struct WhatIfChange {
  enum class Target : uint8_t {
    kLink,           // a link class, or one of its links
    kOp,             // kernels by label: `attn` is `attn` and all `attn.*`; `*` matches anything
    kKernel,         // a kernel family
    kPurpose,        // kernels or communications of a purpose
    kCollective,     // communications of a kind
    kCompute,        // all kernels
    kCommunication,  // all communications
    kLaunch,         // the host's launches and synchronisation
    kSharing,        // each communication has its links to itself
    kInterference,   // kernels and communications do not slow each other down
    kDevice,         // one device
  };
  Target target = Target::kLink;
  std::string name;       // of the link class, op, family, purpose or kind
  int64_t instance = -1;  // of kLink (-1: all) and kDevice
  double time = 1;        // what it takes, against now: 0.5 is twice as fast, 0 is free

  // Canonical: `nic=2x`, `nic:3=0.5x`, `op:attn=free`.
  std::string DebugString() const;
};

// Comma-separated `TARGET=FACTOR`. TARGET: a link class (`nic`) or one link of it
// (`nic:3`), `op:LABEL`, `kernel:FAMILY`, `purpose:PURPOSE`, `collective:KIND`,
// `compute`, `communication`, `launch`, `sharing`, `interference`, `device:NUMBER`.
// FACTOR: `2x` (twice as fast), `80%` (runs at 80 % of its speed) or `free`. Links and
// devices cannot be free, `sharing` and `interference` can only be. Names are looked up
// by ChangePlan().
absl::StatusOr<std::vector<WhatIfChange>> ParseWhatIf(absl::string_view text);

// What to execute instead. `options` holds the factors of kernels and
// communications; those that a change tells apart have become specs of their own.
struct ChangedPlan {
  ExecutionGraph graph;
  Machine machine;
  RuntimeParams runtime;
  SimulateOptions options;
};

// Changes multiply where they meet. A faster link class has more bandwidth at the
// same latency, and collectives choose their algorithms anew; one faster or slower
// link of a class changes what they share, not how they are laid out. Errors:
// names that the plan or the machine does not have, with a suggestion and the
// list; a single link that is changed where links are not shared.
absl::StatusOr<ChangedPlan> ChangePlan(const std::vector<WhatIfChange>& changes,
                                       const ExecutionGraph& graph, const Machine& machine,
                                       const RuntimeParams& runtime,
                                       const SimulateOptions& options = {});

// Labels of the plan's kernels up to the first dot, those that take longest first
// as executed alone; seconds on one device, mean over programs. `seconds_of`: per
// kernel spec.
std::vector<std::string> OpsByTime(const ExecutionGraph& graph,
                                   const std::vector<double>& seconds_of);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_WHAT_IF_WHAT_IF_H_
