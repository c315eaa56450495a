#ifndef PLANCAST_COLLECTIVES_PROGRAMS_FLOWS_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_FLOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/programs/chunk_program.h"

namespace plancast {

// One message of a collective, for network simulators that know nothing of it.
struct Flow {
  int64_t id = 0;  // counts from 0; dependencies have lower ids
  int32_t src = 0, dst = 0;
  int64_t bytes = 0;
  int32_t channel = 0;
  int32_t step = 0;  // messages before it on the longest way
  // Flows that must have arrived, or have been sent where they leave from here: what
  // its thread block received and sent before, and what that waited for.
  std::vector<int64_t> deps;
};

// The messages of a program over a buffer of `bytes` (as CollectiveKind counts) that
// one turn of its loop moves, by step, source, destination and channel. Chunk i holds
// bytes from i * bytes / chunks on, rounded down, so that all sizes add up whatever
// the number of channels.
//
// InvalidArgument where ConnectChunks fails, the program hangs or has more than kMostFlows
// messages.
inline constexpr int64_t kMostFlows = 1'000'000;
absl::StatusOr<std::vector<Flow>> FlowsOf(const ChunkProgram& program, int64_t bytes);

// `id,src,dst,bytes,channel,step,deps`, the last separated by spaces.
std::string FlowsCsv(const std::vector<Flow>& flows);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_FLOWS_H_
