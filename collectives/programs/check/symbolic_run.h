#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_SYMBOLIC_RUN_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_SYMBOLIC_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/programs/check/buffers.h"
#include "collectives/programs/check/connections.h"
#include "collectives/programs/check/provenance.h"
#include "collectives/programs/chunk_program.h"

namespace plancast {

// What memory holds after one turn of a program on symbols.
struct SymbolicResult {
  struct Cell {
    Provenance::Value value = Provenance::kNothing;
    int32_t block = -1, step = -1;  // of the rank: who wrote it; -1: nobody
  };
  Provenance values;
  std::vector<BufferLayout> layouts;  // per rank
  std::vector<int64_t> first_cell;    // per rank
  std::vector<Cell> cells;
};

// Errors: see CheckChunkProgram.
absl::StatusOr<SymbolicResult> RunOnSymbols(const ChunkProgram& program,
                                            const ChunkConnections& connections);

// `the sum of chunk 2 of gpus 0, 1 and 3`, for messages.
std::string DescribeValue(const Provenance& values, Provenance::Value value);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_SYMBOLIC_RUN_H_
