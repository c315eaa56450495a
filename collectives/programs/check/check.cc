#include "collectives/programs/check/check.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/programs/check/buffers.h"
#include "collectives/programs/check/connections.h"
#include "collectives/programs/check/symbolic_run.h"

namespace plancast {
namespace {

// What chunk `j` of a rank's output must be: the sum over `ranks` ranks from
// `first` on, of chunk `chunk` each.
struct Wanted {
  int32_t first = 0, ranks = 1;
  int64_t chunk = 0;
};

Wanted WantedOf(const ChunkProgram& p, int32_t rank, int64_t j) {
  const int64_t part = p.chunks / p.members();
  const auto of_part = [&](int64_t chunk) { return static_cast<int32_t>(chunk / part); };
  switch (p.kind) {
    case ProgramKind::kAllReduce:
    case ProgramKind::kReduce:
      return {0, p.members(), j};
    case ProgramKind::kAllGather:
    case ProgramKind::kGather:
      return {of_part(j), 1, j % part};
    case ProgramKind::kReduceScatter:
      return {0, p.members(), rank * part + j};
    case ProgramKind::kAllToAll:
      return {of_part(j), 1, rank * part + j % part};
    case ProgramKind::kBroadcast:
    case ProgramKind::kSendRecv:
      return {p.root, 1, j};
    case ProgramKind::kScatter:
      return {p.root, 1, rank * part + j};
    case ProgramKind::kCustom:
      break;
  }
  return {};
}

bool Holds(absl::Span<const uint64_t> atoms, const Wanted& wanted) {
  if (static_cast<int64_t>(atoms.size()) != wanted.ranks) return false;
  for (int32_t r = 0; r < wanted.ranks; ++r) {
    const auto rank = static_cast<uint64_t>(wanted.first) + static_cast<uint64_t>(r);
    if (atoms[r] != (rank << 32 | static_cast<uint64_t>(wanted.chunk))) return false;
  }
  return true;
}

absl::Status CheckOutputs(const ChunkProgram& p, const SymbolicResult& result) {
  for (int32_t rank = 0; rank < p.members(); ++rank) {
    const int64_t start = result.first_cell[rank] + result.layouts[rank].output.start;
    const int32_t output = ShareOf(p, rank).output;
    for (int32_t j = 0; j < output; ++j) {
      const SymbolicResult::Cell& cell = result.cells[start + j];
      const Wanted wanted = WantedOf(p, rank, j);
      if (Holds(result.values.Atoms(cell.value), wanted)) continue;
      const std::string who =
          cell.block < 0 ? absl::StrCat("no step of gpu ", rank, " writes it")
                         : absl::StrCat(ToString({rank, cell.block, cell.step}), " wrote it last");
      const std::string should =
          wanted.ranks == 1
              ? absl::StrCat("chunk ", wanted.chunk, " of gpu ", wanted.first)
              : absl::StrCat("the sum of chunk ", wanted.chunk, " of all ", wanted.ranks, " gpus");
      return absl::InvalidArgumentError(
          absl::StrCat(p.name.empty() ? "" : absl::StrCat("`", p.name, "`: "), "gpu ", rank,
                       " ends with the wrong chunk ", j,
                       " of the output: ", DescribeValue(result.values, cell.value), "; ", who,
                       ". ", kProgramKindNames[p.kind], " has to leave ", should, " there."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckChunkProgram(const ChunkProgram& program) {
  ASSIGN_OR_RETURN(const ChunkConnections connections, ConnectChunks(program));
  ASSIGN_OR_RETURN(const SymbolicResult result, RunOnSymbols(program, connections));
  return CheckOutputs(program, result);
}

}  // namespace plancast
