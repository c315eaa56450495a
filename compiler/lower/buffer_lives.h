#ifndef PLANCAST_COMPILER_LOWER_BUFFER_LIVES_H_
#define PLANCAST_COMPILER_LOWER_BUFFER_LIVES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/body/split_backward.h"
#include "compiler/lower/buffers.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// The tasks of a block between which a buffer is used.
struct BufferLife {
  int first = std::numeric_limits<int>::max(), last = -1;
  bool enters = false;  // it was alive before
};

// Bytes of each buffer between two passes of a body: from forward to backward, and from that to
// weight gradients. Other than its own where products read it quantised, or readers drop it.
struct BytesKept {
  std::vector<int64_t> from_forward, until_weights;
};
BytesKept BytesKeptOf(const LowerContext& context, const BodyPlan& plan, const Buffers& buffers,
                      const BackwardHalves& halves);

// Of which body; bytes of each buffer that was kept for the block, and that the block keeps for
// a later one.
struct LivesOf {
  const Buffers& buffers;
  const std::vector<int64_t>&entered_bytes, &kept_bytes;
  const std::string& path;
};

// What is alive after a block: values that are kept, once for each buffer (several versions may
// share one), and those that its ports hand on.
std::vector<int> Stays(const Buffers& buffers, const std::vector<int>& kept,
                       const std::vector<int>& out_ports);

// Values alive before and after a block, and those that its ports take over and hand on.
struct BlockBorder {
  const std::vector<int>&enters, &stays, &in_ports, &out_ports;
};

// Writes when each buffer is allocated and freed. `tensors`: per buffer its number in the block,
// -1: none yet.
void WriteLives(const LivesOf& of, const BlockBorder& border, std::vector<BufferLife>* lives,
                std::vector<int>* tensors, BlockBuilder* builder);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_BUFFER_LIVES_H_
