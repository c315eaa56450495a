#ifndef PLANCAST_COMPILER_LOWER_BUFFERS_H_
#define PLANCAST_COMPILER_LOWER_BUFFERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"

namespace plancast {

// Which memory each value of a body plan lives in. Values that rename another
// (gradient of a sum's operand) or overwrite it in place (all-reduce) share a
// buffer; values that a fused kernel keeps in registers have none.
struct Buffers {
  std::vector<int> of_value;      // buffer of a value, -1: none
  std::vector<int64_t> bytes;     // per buffer
  std::vector<std::string> name;  // per buffer: of the first value in it, `mlp.fc1.y`
  // Per value: kept in registers of its launch group; the value it is another
  // name of (a gradient passed on by a sum), or itself.
  std::vector<bool> in_registers;
  std::vector<int> root;
};

// Whether the rule does nothing with an input but give it another name.
bool OnlyRenamed(const OpRule& rule, int tensor);

// `fused`: per step list (forward, backward), the id of the launch group of
// each step; values produced and used in one group only, and not kept, live in
// registers.
struct LaunchGroups {
  std::vector<int> forward, backward;
};
LaunchGroups GroupLaunches(const LowerContext& context, const BodyPlan& plan);
// `read_later`: values that outlive the pass that they are made in; no other is written over them.
Buffers AssignBuffers(const LowerContext& context, const BodyPlan& plan, const LaunchGroups& groups,
                      const std::vector<int>& read_later = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_BUFFERS_H_
