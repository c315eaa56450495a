#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CONNECTIONS_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CONNECTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/programs/chunk_program.h"

namespace plancast {

// A step of a program, for messages: `gpu 3, thread block 0, step 5`.
struct ChunkPlace {
  int32_t rank = 0, block = 0, step = 0;
};
std::string ToString(const ChunkPlace& place);

// What a sending thread block and the one that receives from it share: a first-in
// first-out queue.
struct ChunkConnection {
  int32_t sender_rank = 0, sender_block = 0;
  int32_t receiver_rank = 0, receiver_block = 0;
  int32_t channel = 0;
  int64_t messages = 0;  // a turn
};

// The connections of a program, and by which one each block sends and receives
// (-1: by none). Blocks count through all ranks: first_block[rank] + block.
struct ChunkConnections {
  std::vector<ChunkConnection> all;  // ascending sender
  std::vector<int32_t> first_block;  // per rank, and the number of blocks
  std::vector<int32_t> out, in;      // per block
};

// What no program may exceed that is checked or run: a bound on time and memory.
inline constexpr int64_t kMaxChunkRanks = 1 << 16;
inline constexpr int64_t kMaxChunkSteps = 1 << 24;
inline constexpr int64_t kMaxChunkCells = 1 << 22;

// Pairs senders with receivers. InvalidArgument, with the place, where numbers are
// out of range (roots, peers, channels, dependencies, spans), where a step needs a
// peer that its block does not name, where two blocks share a direction of a
// connection, or where the two ends of a connection differ in their number of
// messages or in the size of one.
absl::StatusOr<ChunkConnections> ConnectChunks(const ChunkProgram& program);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_CONNECTIONS_H_
