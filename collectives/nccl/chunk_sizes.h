#ifndef PLANCAST_COLLECTIVES_NCCL_CHUNK_SIZES_H_
#define PLANCAST_COLLECTIVES_NCCL_CHUNK_SIZES_H_

#include <cstdint>
#include <vector>

#include "collectives/nccl/graphs.h"
#include "collectives/nccl/tuner.h"
#include "collectives/programs/program_kind.h"

// How NCCL cuts a collective's buffer (src/enqueue.cc, src/init.cc and
// src/device of its releases): over channels, of each over turns of a loop, of
// each turn into chunks. Bytes are of the whole buffer as nccl-tests counts it
// (all_gather: the output), payload without the flags of LL and LL128.

namespace plancast {

inline constexpr int kNcclSteps = 8;  // slots of the queue between two ranks

// Between two ranks on one channel.
int64_t NcclBufferBytes(Protocol protocol);
// What one slot carries of payload.
int64_t NcclStepBytes(Protocol protocol);
// The payload that is handled as one; chunks are multiples of it.
int64_t NcclGrainBytes(Protocol protocol);
// Bytes on the wire for each byte of payload: LL sends a flag with every word,
// LL128 one with every fifteen.
double NcclWireFactor(Protocol protocol);

// One channel's part of the buffer.
struct NcclChannelPart {
  int channel = 0;
  int64_t offset = 0, bytes = 0;  // of the whole buffer
};

// How one channel works through its part.
struct NcclChunking {
  int chunks_per_loop = 1;  // ring: one for each rank; switches: one for each head
  int steps_per_loop = 1;   // hops that a chunk makes one after another: ring 2 (n - 1), ...
  int64_t chunk_bytes = 0;  // of all turns but the last
  int slices = 1;           // a chunk is handed on in so many pieces
  int64_t loops = 0;
  int64_t last_chunk_bytes = 0;  // the last turn shares the rest evenly
};

// The channels that the launch uses, with their parts: small messages use few.
// 2.17 gives every channel of the launch the same.
std::vector<NcclChannelPart> SplitOverChannels(const NcclCommunicator& communicator,
                                               ProgramKind kind, const NcclChoice& choice,
                                               int64_t bytes);

// For a part of `bytes` of one channel.
NcclChunking ChunkingOf(const NcclTuner& tuner, ProgramKind kind, const NcclChoice& choice,
                        int64_t bytes);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_CHUNK_SIZES_H_
