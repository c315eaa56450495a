#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_BUFFERS_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_BUFFERS_H_

#include <cstdint>

#include "collectives/programs/chunk_program.h"

namespace plancast {

// Chunks that a collective's definition gives a rank: what it starts from and what
// it must end with. Nothing for helpers.
struct ChunkShare {
  int32_t input = 0, output = 0;
};
ChunkShare ShareOf(const ChunkProgram& program, int32_t rank);

// The chunk of the output (of the input of reduce_scatter, scatter) at which the
// part of `rank` starts, for kinds that give every rank a part.
int64_t PartStart(const ChunkProgram& program, int32_t rank);

// The buffers of a rank as one run of cells, a cell a chunk. In place, input and
// output overlap: the input of all_gather and gather lies at the rank's part of the
// output, the output of reduce_scatter and scatter at its part of the input.
struct BufferLayout {
  struct Buffer {
    int64_t start = 0, chunks = 0;  // chunks that a span may name
  };
  Buffer input, output, scratch;
  int64_t cells = 0;

  const Buffer& of(ChunkBuffer buffer) const {
    return buffer == ChunkBuffer::kInput    ? input
           : buffer == ChunkBuffer::kOutput ? output
                                            : scratch;
  }
};
BufferLayout LayoutOf(const ChunkProgram& program, int32_t rank);

// Chunks that the message of a sending or receiving step carries.
int32_t MessageChunks(const ChunkStep& step);
// Whether a step reads its `source`, and writes its `target`.
bool ReadsSource(ChunkOp op);
bool WritesTarget(ChunkOp op);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_BUFFERS_H_
