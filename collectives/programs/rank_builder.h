#ifndef PLANCAST_COLLECTIVES_PROGRAMS_RANK_BUILDER_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_RANK_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/programs/chunk_program.h"

namespace plancast {

// Writes the program of one rank, step by step.
class RankBuilder {
 public:
  RankBuilder(int32_t input_chunks, int32_t output_chunks, int32_t scratch_chunks = 0) {
    program_.input_chunks = input_chunks;
    program_.output_chunks = output_chunks;
    program_.scratch_chunks = scratch_chunks;
  }

  int32_t Block(int32_t send_peer, int32_t recv_peer, int32_t channel) {
    ThreadBlock block;
    block.send_peer = send_peer;
    block.recv_peer = recv_peer;
    block.channel = channel;
    program_.blocks.push_back(std::move(block));
    return static_cast<int32_t>(program_.blocks.size()) - 1;
  }

  // On the same span at both ends, after another step if one is named.
  ChunkDependency Step(int32_t block, ChunkOp op, const ChunkSpan& span,
                       const ChunkDependency& after = {}) {
    return Step(block, op, span, span, after);
  }
  ChunkDependency Step(int32_t block, ChunkOp op, const ChunkSpan& source, const ChunkSpan& target,
                       const ChunkDependency& after) {
    std::vector<ChunkStep>& steps = program_.blocks[block].steps;
    steps.push_back({op, source, target, after.block == block ? ChunkDependency{} : after});
    return {block, static_cast<int32_t>(steps.size()) - 1};
  }
  void Wait(int32_t block, const ChunkDependency& after) {
    if (after.block >= 0 && after.block != block) Step(block, ChunkOp::kNop, {}, after);
  }

  size_t num_blocks() const { return program_.blocks.size(); }

  RankProgram Take() { return std::move(program_); }

 private:
  RankProgram program_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_RANK_BUILDER_H_
