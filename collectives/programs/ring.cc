#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

struct Rings {
  ProgramKind kind;
  int32_t n, root;
  std::vector<std::vector<int32_t>> orders, positions;  // per channel

  int32_t channels() const { return static_cast<int32_t>(orders.size()); }
  // The rank `steps` before `position`.
  int32_t Before(int32_t channel, int32_t position, int32_t steps) const {
    return orders[channel][(position - steps % n + n) % n];
  }
};

// A step on the share that channel `c` has of the part of `rank`.
void AddStep(RankBuilder& builder, const Rings& rings, int32_t c, ChunkOp op, int32_t rank) {
  const ChunkBuffer buffer =
      rings.kind == ProgramKind::kAllGather || rings.kind == ProgramKind::kBroadcast
          ? ChunkBuffer::kOutput
          : ChunkBuffer::kInput;
  builder.Step(c, op, {buffer, rank * rings.channels() + c, 1});
}

void AddChannel(RankBuilder& builder, const Rings& rings, int32_t c, int32_t position) {
  const int32_t n = rings.n;
  const auto before = [&](int32_t steps) { return rings.Before(c, position, steps); };
  const auto add = [&](ChunkOp op, int32_t rank) { AddStep(builder, rings, c, op, rank); };
  switch (rings.kind) {
    case ProgramKind::kAllReduce:
      add(ChunkOp::kSend, before(0));
      for (int32_t s = 1; s < n - 1; ++s) add(ChunkOp::kRecvReduceSend, before(s));
      add(ChunkOp::kRecvReduceCopySend, before(n - 1));
      for (int32_t s = 0; s < n - 2; ++s) add(ChunkOp::kRecvCopySend, before(s));
      add(ChunkOp::kRecv, before(n - 2));
      break;
    case ProgramKind::kAllGather:
      add(ChunkOp::kSend, before(0));
      for (int32_t s = 1; s < n - 1; ++s) add(ChunkOp::kRecvCopySend, before(s));
      add(ChunkOp::kRecv, before(n - 1));
      break;
    case ProgramKind::kReduceScatter:
      add(ChunkOp::kSend, before(1));
      for (int32_t s = 2; s < n; ++s) add(ChunkOp::kRecvReduceSend, before(s));
      add(ChunkOp::kRecvReduceCopy, before(0));
      break;
    default: {  // a chain from the root, or to it
      const bool broadcast = rings.kind == ProgramKind::kBroadcast;
      const int32_t from_root = (position - rings.positions[c][rings.root] + n) % n;
      const bool first = from_root == (broadcast ? 0 : 1 % n);
      const bool last = from_root == (broadcast ? n - 1 : 0);
      add(first  ? ChunkOp::kSend
          : last ? (broadcast ? ChunkOp::kRecv : ChunkOp::kRecvReduceCopy)
                 : (broadcast ? ChunkOp::kRecvCopySend : ChunkOp::kRecvReduceSend),
          0);
      break;
    }
  }
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeRingAlong(const ProgramRequest& request,
                                           std::vector<std::vector<int32_t>> orders) {
  bool parts = true;
  switch (request.kind) {
    case ProgramKind::kAllReduce:
    case ProgramKind::kAllGather:
    case ProgramKind::kReduceScatter:
      break;
    case ProgramKind::kBroadcast:
    case ProgramKind::kReduce:
      parts = false;
      break;
    default:
      return DoesNot(request);
  }
  auto rings = std::make_shared<Rings>();
  rings->kind = request.kind;
  rings->n = request.ranks();
  rings->root = request.root;
  for (const std::vector<int32_t>& order : orders) {
    std::vector<int32_t>& positions = rings->positions.emplace_back(order.size());
    for (size_t i = 0; i < order.size(); ++i) positions[order[i]] = static_cast<int32_t>(i);
  }
  rings->orders = std::move(orders);

  ProgramMaker maker;
  maker.head = HeadOf(request, parts ? rings->n : 1);
  maker.num_ranks = rings->n;
  const auto make = [rings, head = maker.head](int32_t rank, int32_t channels, bool steps) {
    RankBuilder builder(head.chunks, head.chunks);
    if (rings->n == 1) return builder.Take();
    for (int32_t c = 0; c < channels; ++c) {
      const int32_t position = rings->positions[c][rank];
      const int32_t next = rings->orders[c][(position + 1) % rings->n];
      builder.Block(next, rings->Before(c, position, 1), c);
      if (steps) AddChannel(builder, *rings, c, position);
    }
    return builder.Take();
  };
  maker.make = [make](int32_t rank, int32_t channels) { return make(rank, channels, true); };
  if (parts) {
    maker.outline = [make](int32_t rank, int32_t channels) { return make(rank, channels, false); };
  }
  return maker;
}

absl::StatusOr<ProgramMaker> MakeRing(const ProgramRequest& request) {
  const int32_t n = request.ranks(), inner = request.levels[0];
  std::vector<std::vector<int32_t>> orders(request.channels, std::vector<int32_t>(n));
  for (int32_t c = 0; c < request.channels; ++c) {
    for (int32_t i = 0; i < n; ++i) orders[c][i] = i - i % inner + (i + c) % inner;
  }
  ASSIGN_OR_RETURN(ProgramMaker maker, MakeRingAlong(request, std::move(orders)));
  maker.alike_channels = maker.inner = inner;
  const bool rooted =
      request.kind == ProgramKind::kBroadcast || request.kind == ProgramKind::kReduce;
  maker.rotation = rooted ? 0 : 1;
  return maker;
}

}  // namespace plancast
