#ifndef PLANCAST_EXECUTOR_CHUNKS_EXECUTE_CHUNKS_H_
#define PLANCAST_EXECUTOR_CHUNKS_EXECUTE_CHUNKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/chunks/lower.h"
#include "executor/chunks/network.h"

namespace plancast {

struct ChunkOptions {
  bool fold = true;       // simulate one of every class of thread blocks
  bool jump = true;       // skip periods of pipelines
  bool timeline = false;  // every message; turns both off
};

// One piece of a message.
struct ChunkMessage {
  int32_t program = 0;
  int32_t from = 0, to = 0;  // ranks
  int32_t channel = 0;
  int64_t turn = 0, step = 0;  // of the sending thread block
  int64_t bytes = 0;
  int64_t start_ps = 0, end_ps = 0, arrival_ps = 0;
};

struct ChunkOutcome {
  struct Program {
    int64_t finish_ps = 0;
    std::vector<int64_t> rank_finish_ps;
  };
  std::vector<Program> programs;
  int64_t finish_ps = 0;
  std::vector<ChunkMessage> timeline;  // by start, sender and channel

  int64_t blocks = 0, classes = 0;              // thread blocks, and those simulated
  int64_t messages = 0, events = 0, jumps = 0;  // simulated
};

// Runs chunk programs, one or several at a time, over the links of a network: every
// transfer shares the links it crosses max-min with all others in flight. Integer
// picoseconds; neither folding nor jumping changes a digit.
//
// Errors: see LowerPrograms and SimulateChunks.
absl::StatusOr<ChunkOutcome> ExecuteChunks(const ChunkNetwork& network,
                                           absl::Span<const PlacedProgram> programs,
                                           const ChunkOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_EXECUTE_CHUNKS_H_
