#ifndef PLANCAST_TESTS_EXECUTOR_CHUNKS_CASES_H_
#define PLANCAST_TESTS_EXECUTOR_CHUNKS_CASES_H_

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collectives/programs/program_maker.h"
#include "executor/chunks/execute_chunks.h"

namespace plancast {

// `places` places around one switch that limits nothing: every place sends and
// receives at `bytes_per_s`, and a message takes `latency_ps` to arrive.
inline ChunkNetwork Star(int32_t places, int64_t bytes_per_s, int64_t latency_ps) {
  std::vector<ChunkNetwork::Wire> wires;
  for (int32_t p = 0; p < places; ++p) {
    wires.push_back({p, places, bytes_per_s, latency_ps});
    wires.push_back({places, p, bytes_per_s, 0});
  }
  return *ChunkNetwork::OfWires(places, places + 1, std::move(wires));
}

inline ProgramRequest Asked(const std::string& algorithm, ProgramKind kind,
                            std::vector<int32_t> levels, int32_t channels = 1) {
  ProgramRequest request;
  request.algorithm = algorithm;
  request.kind = kind;
  request.levels = std::move(levels);
  request.channels = channels;
  return request;
}

// Rank r at place r.
inline PlacedProgram Placed(const ProgramRequest& request, int64_t bytes,
                            const ChunkParameters& parameters = {}) {
  PlacedProgram placed;
  placed.program = *MakerOf(request);
  placed.places.resize(placed.program.num_ranks);
  std::iota(placed.places.begin(), placed.places.end(), 0);
  placed.bytes = bytes;
  placed.parameters = parameters;
  return placed;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_CHUNKS_CASES_H_
