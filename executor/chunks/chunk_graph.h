#ifndef PLANCAST_EXECUTOR_CHUNKS_CHUNK_GRAPH_H_
#define PLANCAST_EXECUTOR_CHUNKS_CHUNK_GRAPH_H_

#include <cstdint>
#include <vector>

namespace plancast {

// Equal steps of a thread block one after another, `repeat` of them.
struct StepRun {
  bool receives = false, sends = false;
  bool local = false;  // copies or reduces inside the rank
  int32_t chunks = 0;  // of each message
  int64_t repeat = 1;
  // Waits for a step of another block: which dependency of the block, and the step;
  // -1: for none.
  int32_t dependency = -1;
  int64_t after_step = 0;
};

// What a thread block does in one turn, as far as time is concerned.
struct Script {
  std::vector<StepRun> runs;
  std::vector<int64_t> first_step;  // per run
  int64_t steps = 0;
};

// Chunk programs on a network, ready to run: thread blocks that send to each other
// and share resources. Of a folded graph a block stands for a class of blocks.
struct ChunkGraph {
  struct Block {
    int32_t script = 0, program = 0;
    int32_t rank = 0, channel = 0;  // of the program
    int32_t out = -1, in = -1;      // connections
    int32_t first_dependency = 0;   // dependencies of its waiting runs, in order
  };
  struct Connection {
    int32_t sender = 0, receiver = 0;  // blocks
    int64_t latency_ps = 0;
    int64_t bytes_per_s = 0;  // at most
    int32_t use_begin = 0, use_end = 0;
  };
  struct Use {
    int32_t resource = 0;
    int64_t coefficient_q20 = 0;
  };
  struct Program {
    int64_t turns = 1;
    int64_t chunk_bytes = 0, last_chunk_bytes = 0;  // of all turns but the last; of that
    int64_t slice_bytes = 0;                        // 0: messages are whole
    int64_t fifo_bytes = 0;                         // 0: unlimited
    int64_t start_ps = 0;
    int64_t local_bytes_per_s = 0;  // 0: what stays in the rank takes nothing
  };

  std::vector<Script> scripts;
  std::vector<Block> blocks;
  std::vector<int32_t> dependencies;  // blocks
  std::vector<Connection> connections;
  std::vector<Use> uses;
  std::vector<int64_t> resources;  // bytes/s
  std::vector<Program> programs;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_CHUNK_GRAPH_H_
