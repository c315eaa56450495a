#include "absl/strings/str_cat.h"
#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// A server has one part: it sums up what the workers push and lets them pull it.
RankProgram Server(const ChunkProgram& head, int32_t workers, int32_t channels) {
  RankBuilder builder(0, 0, head.channels);
  for (int32_t c = 0; c < channels; ++c) {
    const ChunkSpan part{ChunkBuffer::kScratch, c, 1};
    const auto first = static_cast<int32_t>(builder.num_blocks());
    ChunkDependency sum;
    for (int32_t w = 0; w < workers; ++w) {
      const int32_t block = builder.Block(w, w, c);
      sum = builder.Step(block, w == 0 ? ChunkOp::kRecv : ChunkOp::kRecvReduceCopy, part, sum);
    }
    for (int32_t w = 0; w < workers; ++w) builder.Step(first + w, ChunkOp::kSend, part, sum);
  }
  return builder.Take();
}

RankProgram Worker(const ChunkProgram& head, int32_t workers, int32_t servers, int32_t rank,
                   int32_t channels) {
  RankBuilder builder(head.chunks, head.chunks);
  for (int32_t c = 0; c < channels; ++c) {
    for (int32_t i = 0; i < servers; ++i) {
      const int32_t server = (rank + i) % servers;  // not all at one
      const ChunkSpan part{ChunkBuffer::kInput, server * head.channels + c, 1};
      const int32_t block = builder.Block(workers + server, workers + server, c);
      builder.Step(block, ChunkOp::kSend, part);
      builder.Step(block, ChunkOp::kRecv, part);
    }
  }
  return builder.Take();
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeParameterServer(const ProgramRequest& request) {
  if (request.kind != ProgramKind::kAllReduce) return DoesNot(request);
  const int32_t workers = request.ranks(), servers = request.servers;
  if (servers < 1 || servers > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("`parameter_server` with ", servers, " servers; it takes 1 to 4096."));
  }
  ProgramMaker maker;
  maker.num_ranks = workers + servers;
  maker.head = HeadOf(request, servers);
  maker.head.helpers = servers;
  maker.alike_channels = 1;
  maker.make = [workers, servers, head = maker.head](int32_t rank, int32_t channels) {
    return rank < workers ? Worker(head, workers, servers, rank, channels)
                          : Server(head, workers, channels);
  };
  return maker;
}

}  // namespace plancast
