#include "executor/chunks/execute_chunks.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "executor/chunks/chunk_fold.h"
#include "executor/chunks/simulation.h"

namespace plancast {

absl::StatusOr<ChunkOutcome> ExecuteChunks(const ChunkNetwork& network,
                                           absl::Span<const PlacedProgram> programs,
                                           const ChunkOptions& options) {
  const bool fold = options.fold && !options.timeline;
  ASSIGN_OR_RETURN(LoweredPrograms lowered, LowerPrograms(network, programs, fold));
  const ChunkGraph& whole = lowered.graph;
  FoldedChunks folded;
  if (fold) {
    folded = FoldChunks(whole);
  } else {
    folded.class_of.resize(whole.blocks.size());
    std::iota(folded.class_of.begin(), folded.class_of.end(), 0);
  }
  const ChunkGraph& graph = fold ? folded.graph : whole;
  ChunkSimulationOptions simulation;
  simulation.jump = options.jump;
  simulation.record = options.timeline;
  ASSIGN_OR_RETURN(ChunkSimulationResult result, SimulateChunks(graph, simulation));

  ChunkOutcome outcome;
  outcome.classes = static_cast<int64_t>(graph.blocks.size());
  outcome.messages = result.messages;
  outcome.events = result.events;
  outcome.jumps = result.jumps;
  for (size_t p = 0; p < programs.size(); ++p) {
    ChunkOutcome::Program program;
    program.finish_ps = whole.programs[p].start_ps;
    program.rank_finish_ps.assign(programs[p].program.num_ranks, program.finish_ps);
    const int32_t turned = lowered.turned_ranks[p];
    for (int32_t b = lowered.first_block[p]; b < lowered.first_block[p + 1]; ++b) {
      const int32_t rank = whole.blocks[b].rank;
      int64_t& finish = program.rank_finish_ps[rank - rank % turned];
      finish = std::max(finish, result.finish_ps[folded.class_of[b]]);
      program.finish_ps = std::max(program.finish_ps, finish);
    }
    for (size_t rank = 0; rank < program.rank_finish_ps.size() && turned > 1; ++rank) {
      program.rank_finish_ps[rank] = program.rank_finish_ps[rank - rank % turned];
    }
    outcome.blocks += int64_t{lowered.first_block[p + 1] - lowered.first_block[p]} *
                      (programs[p].program.head.channels / lowered.channels[p]);
    outcome.finish_ps = std::max(outcome.finish_ps, program.finish_ps);
    outcome.programs.push_back(std::move(program));
  }
  outcome.timeline.reserve(result.transfers.size());
  for (const ChunkTransfer& transfer : result.transfers) {
    const ChunkGraph::Block& block = whole.blocks[transfer.block];
    const ChunkGraph::Connection& out = whole.connections[block.out];
    ChunkMessage message;
    message.program = block.program;
    message.from = block.rank;
    message.to = whole.blocks[out.receiver].rank;
    message.channel = block.channel;
    message.turn = transfer.turn;
    message.step = transfer.step;
    message.bytes = transfer.bytes;
    message.start_ps = transfer.start_ps;
    message.end_ps = transfer.end_ps;
    message.arrival_ps = transfer.end_ps + out.latency_ps;
    outcome.timeline.push_back(message);
  }
  std::sort(outcome.timeline.begin(), outcome.timeline.end(),
            [](const ChunkMessage& a, const ChunkMessage& b) {
              return std::tie(a.start_ps, a.program, a.from, a.channel, a.to, a.end_ps) <
                     std::tie(b.start_ps, b.program, b.from, b.channel, b.to, b.end_ps);
            });
  return outcome;
}

}  // namespace plancast
