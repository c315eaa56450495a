#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHUNK_PROGRAM_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHUNK_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/programs/program_kind.h"

namespace plancast {

// The buffers of a rank, cut into chunks of equal size. In place, input and
// output are one memory (PostCondition says where a rank's part lies in it).
enum class ChunkBuffer : uint8_t { kInput, kOutput, kScratch };

// A run of chunks of one buffer of the rank that names it.
struct ChunkSpan {
  ChunkBuffer buffer = ChunkBuffer::kInput;
  int32_t first = 0;
  int32_t count = 1;
};

// What one step of a thread block does, in MSCCL's words.
enum class ChunkOp : uint8_t {
  kSend,                // s    source -> send peer
  kRecv,                // r    receive peer -> target
  kRecvCopySend,        // rcs  the same, and on to the send peer
  kRecvReduceSend,      // rrs  received + source -> send peer; nothing is stored
  kRecvReduceCopy,      // rrc  received + source -> target
  kRecvReduceCopySend,  // rrcs the same, and on to the send peer
  kCopy,                // cpy  source -> target, inside the rank
  kReduce,              // re   target + source -> target, inside the rank
  kNop,                 // nop  only waits
};

bool Receives(ChunkOp op);
bool Sends(ChunkOp op);
bool Reduces(ChunkOp op);

// Another step of the same rank that must be done first, in the same turn of
// the loop over the buffer.
struct ChunkDependency {
  int32_t block = -1;  // thread block of the same rank; -1: none
  int32_t step = -1;
};

struct ChunkStep {
  ChunkOp op = ChunkOp::kNop;
  ChunkSpan source, target;  // of equal count; what an op does not name is ignored
  ChunkDependency after;     // more of them: kNop steps before this one
};

// What one CTA does, one step after the other. It sends to at most one peer and
// receives from at most one; the k-th send of (rank, peer, channel) meets the
// k-th receive.
struct ThreadBlock {
  int32_t send_peer = -1, recv_peer = -1;  // ranks; -1: none
  int32_t channel = 0;
  std::vector<ChunkStep> steps;
};

struct RankProgram {
  int32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;
};

// A collective written out: what every rank does with every chunk. The buffer is
// worked through in turns of a loop; one turn moves `chunks` chunks, which are
// what CollectiveKind's bytes are cut into (all_gather: the total output, ...).
// Chunks of turn t are not written before those of turn t - 1 by the same block.
struct ChunkProgram {
  std::string name;
  ProgramKind kind = ProgramKind::kAllReduce;
  int32_t root = 0;                 // of broadcast, reduce, gather, scatter, send_recv (source)
  int32_t receiver = 0;             // of send_recv
  std::string protocol = "Simple";  // `LL`, `LL128`, `Simple`
  int32_t channels = 1;
  int32_t chunks = 1;
  bool in_place = false;
  // The last so many of `ranks` only help: switches that reduce and multicast,
  // parameter servers. They have scratch and neither input nor output.
  int32_t helpers = 0;
  std::vector<RankProgram> ranks;

  int32_t num_ranks() const { return static_cast<int32_t>(ranks.size()); }
  int32_t members() const { return num_ranks() - helpers; }
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHUNK_PROGRAM_H_
