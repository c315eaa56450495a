#include "collectives/programs/program_maker.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "collectives/programs/check/connections.h"
#include "collectives/programs/makers.h"

namespace plancast {
namespace {

struct Algorithm {
  absl::string_view name;
  absl::StatusOr<ProgramMaker> (*make)(const ProgramRequest& request);
};
constexpr std::array kAlgorithms = {
    Algorithm{"ring", MakeRing},
    Algorithm{"tree", MakeTree},
    Algorithm{"halving_doubling", MakeHalvingDoubling},
    Algorithm{"direct", MakeDirect},
    Algorithm{"hierarchical", MakeHierarchical},
    Algorithm{"nvls", MakeNvls},
    Algorithm{"nvls_tree", MakeNvlsTree},
    Algorithm{"pat", MakePat},
    Algorithm{"parameter_server", MakeParameterServer},
    Algorithm{"two_step", MakeTwoStep},
};

constexpr int32_t kMaxChannels = 1024;

absl::Status CheckRequest(const ProgramRequest& request) {
  int64_t ranks = 1;
  for (const int32_t level : request.levels) {
    if (level < 1 || (ranks *= level) > kMaxChunkRanks) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a chunk program over ", absl::StrJoin(request.levels, " x "),
          " ranks; levels have to be positive, their product at most ", kMaxChunkRanks, "."));
    }
  }
  if (request.levels.empty()) {
    return absl::InvalidArgumentError("a chunk program over no ranks; name one level at least.");
  }
  if (request.channels < 1 || request.channels > kMaxChannels) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk program with ", request.channels,
                                                   " channels; there may be 1 to ", kMaxChannels,
                                                   "."));
  }
  for (const auto& [what, rank] :
       {std::make_pair("root", request.root), {"receiver", request.receiver}}) {
    if (rank >= 0 && (rank < ranks || request.kind != ProgramKind::kSendRecv)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " is rank ", rank, "; there are ranks 0 to ", ranks - 1, "."));
  }
  if (request.root >= ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the root is rank ", request.root, "; there are ranks 0 to ", ranks - 1, "."));
  }
  return absl::OkStatus();
}

}  // namespace

int32_t ProgramRequest::ranks() const {
  int32_t product = 1;
  for (const int32_t level : levels) product *= level;
  return product;
}

absl::StatusOr<ChunkProgram> ProgramMaker::MakeAll() const {
  ChunkProgram program = head;
  int64_t steps = 0;
  for (int32_t r = 0; r < num_ranks; ++r) {
    program.ranks.push_back(rank(r));
    for (const ThreadBlock& block : program.ranks.back().blocks) {
      steps += static_cast<int64_t>(block.steps.size());
    }
    if (steps > kMostProgramSteps) {
      return absl::InvalidArgumentError(
          absl::StrCat("a program of `", head.name, "` over ", num_ranks, " ranks and ",
                       head.channels, " channels has more than ", kMostProgramSteps,
                       " steps, the most that is written out. Take fewer GPUs or fewer channels."));
    }
  }
  return program;
}

absl::StatusOr<ProgramMaker> MakerOf(const ProgramRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == request.algorithm) return algorithm.make(request);
  }
  const std::vector<absl::string_view> names = ProgramAlgorithms();
  return absl::InvalidArgumentError(
      absl::StrCat("no algorithm `", request.algorithm, "`.", Offer(request.algorithm, names)));
}

absl::StatusOr<ChunkProgram> MakeProgram(const ProgramRequest& request) {
  ASSIGN_OR_RETURN(const ProgramMaker maker, MakerOf(request));
  return maker.MakeAll();
}

std::vector<absl::string_view> ProgramAlgorithms() {
  std::vector<absl::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) names.push_back(algorithm.name);
  return names;
}

absl::Status DoesNot(const ProgramRequest& request) {
  return absl::InvalidArgumentError(absl::StrCat(
      "`", request.algorithm, "` does not do ", kProgramKindNames[request.kind], " over ",
      absl::StrJoin(request.levels, " x "), " ranks. Choose another algorithm."));
}

ChunkProgram HeadOf(const ProgramRequest& request, int32_t pieces) {
  ChunkProgram head;
  head.name = absl::StrCat(request.algorithm, "_", kProgramKindNames[request.kind]);
  head.kind = request.kind;
  head.root = request.root;
  head.receiver = request.receiver < request.ranks() ? request.receiver : 0;
  head.protocol = request.protocol;
  head.channels = request.channels;
  head.chunks = pieces * request.channels;
  head.in_place = true;
  return head;
}

}  // namespace plancast
