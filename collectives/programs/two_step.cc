#include <vector>

#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// One channel of one rank: gives each rank of its node what goes to the places like
// that one's in all nodes; sends what it got on to its own place in each.
void AddChannel(RankBuilder& builder, const ChunkProgram& head, int32_t inner, int32_t nodes,
                int32_t rank, int32_t c) {
  const int32_t node = rank / inner, local = rank % inner;
  const auto share = [&](ChunkBuffer buffer, int32_t piece) {
    return ChunkSpan{buffer, piece * head.channels + c, 1};
  };
  // Where scratch keeps what `from` of this node sends to node `to`.
  const auto kept = [&](int32_t to, int32_t from) {
    const int32_t slot = (to - node - 1 + nodes) % nodes;
    return share(ChunkBuffer::kScratch, slot * inner + from);
  };
  std::vector<ChunkDependency> got;
  for (int32_t d = 0; d < inner; ++d) {
    const int32_t to = (local + d) % inner, from = (local - d + inner) % inner;
    const int32_t send = builder.Block(d == 0 ? -1 : node * inner + to, -1, c);
    const int32_t recv = d == 0 ? send : builder.Block(-1, node * inner + from, c);
    ChunkDependency last;
    for (int32_t e = 0; e < nodes; ++e) {
      const int32_t to_node = (node + e) % nodes;
      const ChunkSpan source = share(ChunkBuffer::kInput, to_node * inner + to);
      const ChunkSpan target =
          e == 0 ? share(ChunkBuffer::kOutput, node * inner + from) : kept(to_node, from);
      if (d == 0) {
        last = builder.Step(send, ChunkOp::kCopy, source, target, {});
        continue;
      }
      builder.Step(send, ChunkOp::kSend, source);
      last = builder.Step(recv, ChunkOp::kRecv, target);
    }
    got.push_back(last);
  }
  for (int32_t e = 1; e < nodes; ++e) {
    const int32_t to = (node + e) % nodes, from = (node - e + nodes) % nodes;
    const int32_t send = builder.Block(to * inner + local, -1, c);
    const int32_t recv = builder.Block(-1, from * inner + local, c);
    for (const ChunkDependency& step : got) builder.Wait(send, step);
    const int32_t messages = head.channels == 1 ? 1 : inner;
    for (int32_t i = 0; i < messages; ++i) {
      ChunkSpan source = kept(to, i), target = share(ChunkBuffer::kOutput, from * inner + i);
      source.count = target.count = head.channels == 1 ? inner : 1;
      builder.Step(send, ChunkOp::kSend, source);
      builder.Step(recv, ChunkOp::kRecv, target);
    }
  }
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeTwoStep(const ProgramRequest& request) {
  if (request.kind != ProgramKind::kAllToAll) return DoesNot(request);
  const int32_t n = request.ranks(), inner = request.levels[0];
  ProgramMaker maker;
  maker.num_ranks = n;
  maker.head = HeadOf(request, n);
  maker.head.in_place = false;
  maker.alike_channels = 1;
  maker.make = [n, inner, head = maker.head](int32_t rank, int32_t channels) {
    RankBuilder builder(head.chunks, head.chunks, (n - inner) * head.channels);
    for (int32_t c = 0; c < channels; ++c) {
      AddChannel(builder, head, inner, n / inner, rank, c);
    }
    return builder.Take();
  };
  return maker;
}

}  // namespace plancast
