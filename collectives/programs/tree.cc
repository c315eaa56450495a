#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/programs/double_tree.h"
#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

using Place = TreePlace;

// Double binary trees over the nodes, in each node a chain from the rank that the
// tree enters by. Channels take turns with the trees and the ranks of a node.
Place PlaceOf(const ProgramRequest& request, int32_t rank, int32_t channel) {
  const int32_t inner = request.levels[0];
  const int32_t nodes = request.ranks() / inner;
  const int32_t node = rank / inner;
  const int32_t head = channel / 2 % inner;
  const int32_t position = (rank - head + inner) % inner;
  const auto at = [&](int32_t of_node, int32_t local) {
    return of_node * inner + (local + head) % inner;
  };
  Place place;
  if (position + 1 < inner) place.down.push_back(at(node, position + 1));
  if (position > 0) {
    place.up = at(node, position - 1);
    return place;
  }
  const TreeNode tree = DoubleTreeNode(nodes, node, channel % 2);
  if (tree.up >= 0) place.up = at(tree.up, 0);
  for (const int32_t down : tree.down) {
    if (down >= 0) place.down.push_back(at(down, 0));
  }
  return place;
}

// Two trees over all ranks but the root, which feeds the root of each (Sanders,
// Speck and Träff, 2009).
Place PlaceBelowRoot(const ProgramRequest& request, int32_t rank, int32_t channel) {
  const int32_t n = request.ranks(), root = request.root;
  const int32_t tree = channel % 2;
  const auto rank_of = [&](int32_t i) { return (root + 1 + i) % n; };  // without the root
  Place place;
  if (rank == root) {
    for (int32_t i = 0; i < n - 1; ++i) {
      if (DoubleTreeNode(n - 1, i, tree).up < 0) place.down.push_back(rank_of(i));
    }
    return place;
  }
  const TreeNode node = DoubleTreeNode(n - 1, (rank - root - 1 + n) % n, tree);
  place.up = node.up < 0 ? root : rank_of(node.up);
  for (const int32_t down : node.down) {
    if (down >= 0) place.down.push_back(rank_of(down));
  }
  return place;
}

// Sums the children's chunks into one's own and sends the sum up. Returns the step
// after which the chunk at the root is whole.
ChunkDependency AddUp(RankBuilder& builder, const Place& place, int32_t c, const ChunkSpan& span) {
  ChunkDependency last;
  if (place.down.empty()) {
    if (place.up >= 0) last = builder.Step(builder.Block(place.up, -1, c), ChunkOp::kSend, span);
    return last;
  }
  for (size_t i = 0; i < place.down.size(); ++i) {
    const bool sends = i + 1 == place.down.size() && place.up >= 0;
    const int32_t block = builder.Block(sends ? place.up : -1, place.down[i], c);
    last = builder.Step(block, sends ? ChunkOp::kRecvReduceSend : ChunkOp::kRecvReduceCopy, span,
                        last);
  }
  return last;
}

void AddDown(RankBuilder& builder, const Place& place, int32_t c, const ChunkSpan& span,
             ChunkDependency have) {
  size_t i = 0;
  if (place.up >= 0) {
    const bool passes = !place.down.empty();
    const int32_t block = builder.Block(passes ? place.down[i++] : -1, place.up, c);
    have = builder.Step(block, passes ? ChunkOp::kRecvCopySend : ChunkOp::kRecv, span);
  }
  for (; i < place.down.size(); ++i) {
    builder.Step(builder.Block(place.down[i], -1, c), ChunkOp::kSend, span, have);
  }
}

RankProgram MakeRank(const ChunkProgram& head, int32_t channels,
                     const std::function<Place(int32_t channel)>& place_of) {
  RankBuilder builder(head.chunks, head.chunks);
  for (int32_t c = 0; c < channels; ++c) {
    const Place place = place_of(c);
    const bool output = head.kind == ProgramKind::kBroadcast;
    const ChunkSpan span{output ? ChunkBuffer::kOutput : ChunkBuffer::kInput, c, 1};
    ChunkDependency whole;
    if (head.kind != ProgramKind::kBroadcast) whole = AddUp(builder, place, c, span);
    if (head.kind != ProgramKind::kReduce) AddDown(builder, place, c, span, whole);
  }
  return builder.Take();
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeTreeAlong(const ProgramRequest& request,
                                           std::vector<std::vector<TreePlace>> trees) {
  if (request.kind != ProgramKind::kAllReduce) return DoesNot(request);
  ProgramMaker maker;
  maker.head = HeadOf(request, 1);
  maker.num_ranks = request.ranks();
  auto shared = std::make_shared<const std::vector<std::vector<TreePlace>>>(std::move(trees));
  maker.make = [shared, head = maker.head](int32_t rank, int32_t channels) {
    return MakeRank(head, channels, [&](int32_t c) { return (*shared)[rank][c]; });
  };
  return maker;
}

absl::StatusOr<ProgramMaker> MakeTree(const ProgramRequest& request) {
  const ProgramKind kind = request.kind;
  if (kind != ProgramKind::kAllReduce && kind != ProgramKind::kBroadcast &&
      kind != ProgramKind::kReduce) {
    return DoesNot(request);
  }
  ProgramMaker maker;
  maker.head = HeadOf(request, 1);
  maker.num_ranks = request.ranks();
  const bool over_nodes = kind == ProgramKind::kAllReduce;
  maker.inner = over_nodes ? request.levels[0] : 1;
  maker.alike_channels = 2 * maker.inner;
  maker.rotation = over_nodes ? 2 : 0;
  maker.make = [request, over_nodes, head = maker.head](int32_t rank, int32_t channels) {
    return MakeRank(head, request.ranks() > 1 ? channels : 0, [&](int32_t c) {
      return over_nodes ? PlaceOf(request, rank, c) : PlaceBelowRoot(request, rank, c);
    });
  };
  return maker;
}

}  // namespace plancast
