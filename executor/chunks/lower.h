#ifndef PLANCAST_EXECUTOR_CHUNKS_LOWER_H_
#define PLANCAST_EXECUTOR_CHUNKS_LOWER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collectives/programs/program_maker.h"
#include "executor/chunks/chunk_graph.h"
#include "executor/chunks/network.h"
#include "executor/chunks/parameters.h"

namespace plancast {

// A program to run: rank r at places[r] of the network.
struct PlacedProgram {
  ProgramMaker program;
  std::vector<int64_t> places;
  int64_t bytes = 0;  // of the buffer, as CollectiveKind counts
  ChunkParameters parameters;
  int64_t start_ps = 0;
};

// A program as a maker, for those that are written out. It is copied.
ProgramMaker MakerOfProgram(const ChunkProgram& program);

// The thread blocks of every rank, ranks of a program one after the other.
struct LoweredPrograms {
  ChunkGraph graph;
  std::vector<int32_t> first_block;  // per program, and the number of blocks
  // Channels that are there, of as many as the program has.
  std::vector<int32_t> channels;
  // Ranks that were turned into each other: so many consecutive ones together do
  // what each of them does. 1: none.
  std::vector<int32_t> turned_ranks;
};

// InvalidArgument where ranks and places do not match, ends of connections do not
// meet, or the network does not join them.
//
// `symmetric`: of channels that are alike, and alike but for a turn of the devices of
// every domain, the first only; their transfers load links for all of them.
absl::StatusOr<LoweredPrograms> LowerPrograms(const ChunkNetwork& network,
                                              absl::Span<const PlacedProgram> programs,
                                              bool symmetric);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_LOWER_H_
