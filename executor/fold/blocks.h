#ifndef PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
#define PLANCAST_EXECUTOR_FOLD_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "cluster/machine.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Whether any task is between a device and its host's memory. If not, what lies there
// tells no devices apart, for nothing else loads such links.
bool UsesHostMemory(const ExecutionGraph& graph);
// Whether devices share links of this class for their host's memory alone.
bool IsForHostMemory(const LinkClass& link);

// In all below, `host_memory`: whether links for the host's memory count.

// The numbers of consecutive devices that the machine's levels and links hold:
// hosts, domains, pods, shared links. Of a mixed machine also where sections begin.
std::vector<int64_t> BlocksOf(const Machine& machine, bool host_memory = true);

// Groups shifted by this many devices lie alike on a machine of equal hosts.
int64_t PeriodOf(const Machine& machine, bool host_memory = true);

// The same for any machine: inside the section of a group.
class Periods {
 public:
  explicit Periods(const Machine& machine, bool host_memory = true);

  // The lowest base of a group that lies like this one, of devices from `base` to `last`.
  int64_t FirstLike(int64_t base, int64_t last) const;

 private:
  const Machine& machine_;
  std::vector<int64_t> of_section_;
};

// Whether the hosts, domains, pods and shared links of every section lie as they would
// without the sections before it: all that precedes is a whole number of each.
bool SectionsAreAligned(const Machine& machine, bool host_memory = true);

// Whether every link serves a whole number of devices of a host.
bool LinksServeWholeDevices(const Machine& machine, bool host_memory = true);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_BLOCKS_H_
