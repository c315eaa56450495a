#ifndef PLANCAST_COMPILER_PROGRAM_COMPILED_BODY_H_
#define PLANCAST_COMPILER_PROGRAM_COMPILED_BODY_H_

#include <cstdint>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/body_state.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// A body after all per-body passes.
struct CompiledBody {
  BodyPlan plan;
  BodyBlocks blocks;
  BodyState state;
  std::vector<int64_t> out_port_bytes;   // of one device, per out-port
  std::vector<int64_t> grad_port_bytes;  // likewise of their gradients; 0: detached
  bool out_ports_replicated = true;      // every tensor-parallel rank holds all of them
  // Throughout the iteration, each repeat and all together (op_memory.h).
  int64_t held_bytes = 0, held_shared_bytes = 0;
  bool is_layer = false;  // one of a list of modules
  // Data-parallel ranks exchange something inside of it, or keep more or less of a tensor
  // where there are more of them: it is of no use to plans with another number.
  bool depends_on_data_ranks = false;
  // That this is a variant of, which shares tensors with its neighbours; null: of none.
  const CompiledBody* original = nullptr;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_COMPILED_BODY_H_
