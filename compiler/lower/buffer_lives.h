#ifndef PLANCAST_COMPILER_LOWER_BUFFER_LIVES_H_
#define PLANCAST_COMPILER_LOWER_BUFFER_LIVES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compiler/lower/buffers.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// The tasks of a block between which a buffer is used.
struct BufferLife {
  int first = std::numeric_limits<int>::max(), last = -1;
  bool enters = false;  // it was alive before
};

// Of which body and phase; `kept_bytes`: of each buffer from forward to backward.
struct LivesOf {
  const Buffers& buffers;
  const std::vector<int64_t>& kept_bytes;
  const bool backward;
  const std::string& path;
};

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
