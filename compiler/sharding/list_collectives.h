#ifndef PLANCAST_COMPILER_SHARDING_LIST_COLLECTIVES_H_
#define PLANCAST_COMPILER_SHARDING_LIST_COLLECTIVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/lower/lower_block.h"
#include "compiler/sharding/shard_block.h"
#include "compiler/sharding/shard_plan.h"

namespace plancast {

// The copies of a list's parts as one kernel, which takes the host as long as so many launches.
KernelSpec CopiesOfParts(const std::string& label, double bytes, double launches);

// The copy of what was gathered, behind the hooks of the unit's modules: of so many passes.
KernelSpec CopyOfUnit(const ShardStyle& style, const ShardUnit& unit, double bytes, int passes);

// Collectives over lists of the ranks' parts, one for each parameter (ShardUnit::Part::lists):
// torch.distributed.all_gather and reduce_scatter move one flat tensor, and copy each part out of
// it, or into it, with a kernel of its own.
class ListCollectives {
 public:
  ListCollectives(const ShardStyle& style, const ShardUnit& unit, const ShardUnit::Part& part,
                  Purpose purpose, BlockBuilder* out)
      : style_(style), unit_(unit), part_(part), purpose_(purpose), out_(*out) {}

  // One after the other, in a backward pass with what comes once more: the host waits for each
  // before it begins the next. Returns the task that ends the last.
  int Gather(const std::vector<int>& axes, std::vector<int> deps, bool backward);
  // Each after `after`.
  int Reduce(int after);

 private:
  int Copies(const std::string& what, int64_t elements, double bytes, const std::vector<int>& deps);

  const ShardStyle& style_;
  const ShardUnit& unit_;
  const ShardUnit::Part& part_;
  const Purpose purpose_;
  BlockBuilder& out_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_LIST_COLLECTIVES_H_
