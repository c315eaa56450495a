#ifndef PLANCAST_EXECUTOR_CHUNKS_SIMULATION_H_
#define PLANCAST_EXECUTOR_CHUNKS_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/chunks/chunk_graph.h"
#include "executor/sharing/fluid.h"

namespace plancast {

struct ChunkSimulationOptions {
  // Whether periods of a pipeline that repeats are skipped. The times are the same.
  bool jump = true;
  bool record = false;  // every message; nothing is skipped then
};

// One piece of a message, from the sending block's view.
struct ChunkTransfer {
  int32_t block = 0;
  int64_t turn = 0, step = 0;
  int64_t bytes = 0;
  int64_t start_ps = 0, end_ps = 0;  // the last byte leaves; it arrives a latency later
};

struct ChunkSimulationResult {
  std::vector<int64_t> finish_ps;  // per block
  std::vector<ChunkTransfer> transfers;
  int64_t messages = 0;  // simulated pieces
  int64_t events = 0;    // points in time that something happened at
  int64_t jumps = 0;
};

// Runs a graph, picosecond by picosecond. A block does its steps in order, a piece
// of a message at a time: a receiving step waits for the piece to arrive, a sending
// one for a free place in the queue to the receiver and then for its transfer,
// which shares the links max-min with all others in flight. What a step received
// leaves the queue when the step is done with it.
//
// FailedPrecondition where blocks wait for each other for ever, as they do when a
// queue is too short for what two of them send each other first.
absl::StatusOr<ChunkSimulationResult> SimulateChunks(const ChunkGraph& graph,
                                                     const ChunkSimulationOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_SIMULATION_H_
