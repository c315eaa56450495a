#ifndef PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_MAKER_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_MAKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/programs/chunk_program.h"

namespace plancast {

// Which program to make.
struct ProgramRequest {
  ProgramKind kind = ProgramKind::kAllReduce;
  std::string algorithm = "ring";  // see ProgramAlgorithms
  // Ranks as a product of levels, innermost first: {8, 4} are four hosts of eight
  // consecutive ranks.
  std::vector<int32_t> levels = {2};
  int32_t channels = 1;  // each moves its share of every rank's part
  std::string protocol = "Simple";
  int32_t root = 0, receiver = 1;
  int32_t servers = 1;  // of `parameter_server`

  int32_t ranks() const;
};

// A program whose ranks are made on demand: nothing is as large as all of them.
struct ProgramMaker {
  ChunkProgram head;  // without ranks
  int32_t num_ranks = 0;
  // The thread blocks of a rank on the first `channels` channels.
  std::function<RankProgram(int32_t rank, int32_t channels)> make;
  // The same without their steps, where the thread blocks of all ranks do the same
  // but for which chunks. Else empty.
  std::function<RankProgram(int32_t rank, int32_t channels)> outline;

  // Symmetries. Channel c does what channel c mod `alike_channels` does, but for
  // which chunks; 0: unknown.
  int32_t alike_channels = 0;
  // Channel c + `rotation` does at the next rank of the innermost level, which has
  // `inner` ranks, what channel c does; channels count modulo alike_channels. 0: no.
  int32_t rotation = 0, inner = 1;

  RankProgram rank(int32_t r) const { return make(r, head.channels); }
  // InvalidArgument where all ranks together have more than kMostProgramSteps steps.
  absl::StatusOr<ChunkProgram> MakeAll() const;
};

// Of a program that is made whole: some 200 MB of them.
inline constexpr int64_t kMostProgramSteps = 4'000'000;

// InvalidArgument where the algorithm does not do the kind, or not over these
// levels.
absl::StatusOr<ProgramMaker> MakerOf(const ProgramRequest& request);
absl::StatusOr<ChunkProgram> MakeProgram(const ProgramRequest& request);

// Names, in the order of docs/collectives.md: `ring`, `tree`, ...
std::vector<absl::string_view> ProgramAlgorithms();

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_MAKER_H_
