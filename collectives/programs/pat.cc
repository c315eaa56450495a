#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// Parallel aggregated trees (NCCL 2.23): every part travels a binomial tree of its
// own, all trees at once, the farthest hops first while there is little to send.
// A part is `offset` ranks behind a rank that has it; its bits are the hops that it
// came by.
RankProgram AllGather(const ChunkProgram& head, int32_t n, int32_t rank, int32_t channels) {
  RankBuilder builder(head.chunks, head.chunks);
  for (int32_t c = 0; c < channels; ++c) {
    int32_t distance = 1;
    while (distance * 2 < n) distance *= 2;
    ChunkDependency ready;
    const auto share = [&](int32_t offset) {
      return ChunkSpan{ChunkBuffer::kOutput, (rank - offset + n) % n * head.channels + c, 1};
    };
    for (; distance >= 1 && n > 1; distance /= 2) {
      const int32_t to = builder.Block((rank + distance) % n, -1, c);
      const int32_t from = builder.Block(-1, (rank - distance + n) % n, c);
      ChunkDependency got;
      for (int32_t offset = 0; offset + distance < n; offset += 2 * distance) {
        builder.Step(to, ChunkOp::kSend, share(offset), ready);
        got = builder.Step(from, ChunkOp::kRecv, share(offset + distance), ready);
        ready = {};
      }
      ready = got;
    }
  }
  return builder.Take();
}

// The same backwards: sums come together along the trees.
RankProgram ReduceScatter(const ChunkProgram& head, int32_t n, int32_t rank, int32_t channels) {
  RankBuilder builder(head.chunks, head.chunks);
  for (int32_t c = 0; c < channels; ++c) {
    ChunkDependency ready;
    const auto share = [&](int32_t offset) {
      return ChunkSpan{ChunkBuffer::kInput, (rank - offset + n) % n * head.channels + c, 1};
    };
    for (int32_t distance = 1; distance < n; distance *= 2) {
      const int32_t to = builder.Block((rank - distance + n) % n, -1, c);
      const int32_t from = builder.Block(-1, (rank + distance) % n, c);
      ChunkDependency got;
      for (int32_t offset = 0; offset + distance < n; offset += 2 * distance) {
        builder.Step(to, ChunkOp::kSend, share(offset + distance), ready);
        got = builder.Step(from, ChunkOp::kRecvReduceCopy, share(offset), ready);
        ready = {};
      }
      ready = got;
    }
  }
  return builder.Take();
}

}  // namespace

absl::StatusOr<ProgramMaker> MakePat(const ProgramRequest& request) {
  if (request.kind != ProgramKind::kAllGather && request.kind != ProgramKind::kReduceScatter) {
    return DoesNot(request);
  }
  ProgramMaker maker;
  maker.num_ranks = request.ranks();
  maker.head = HeadOf(request, maker.num_ranks);
  maker.alike_channels = 1;
  maker.make = [n = maker.num_ranks, head = maker.head](int32_t rank, int32_t channels) {
    return head.kind == ProgramKind::kAllGather ? AllGather(head, n, rank, channels)
                                                : ReduceScatter(head, n, rank, channels);
  };
  return maker;
}

}  // namespace plancast
