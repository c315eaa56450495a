#include <vector>

#include "collectives/programs/double_tree.h"
#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// The switches of a node are one helper. A part has a head, one rank of each node:
// the switch sums the part up over the node for its head, heads sum up over the
// nodes along a double binary tree, and the switch hands the sum to all.
class Nvls {
 public:
  Nvls(const ProgramRequest& request, const ChunkProgram& head, int32_t channels)
      : inner_(request.levels[0]),
        n_(request.ranks()),
        nodes_(n_ / inner_),
        head_(head),
        channels_(channels) {}

  RankProgram Make(int32_t rank) const { return rank < n_ ? Member(rank) : Switch(rank - n_); }

 private:
  bool reduces() const { return head_.kind != ProgramKind::kAllGather; }
  bool multicasts() const { return head_.kind != ProgramKind::kReduceScatter; }
  ChunkSpan Part(int32_t head, int32_t c, ChunkBuffer buffer) const {
    return {buffer, head * head_.channels + c, 1};
  }

  RankProgram Member(int32_t rank) const {
    const int32_t node = rank / inner_, local = rank % inner_, at_switch = n_ + node;
    const ChunkBuffer buffer =
        head_.kind == ProgramKind::kAllGather ? ChunkBuffer::kOutput : ChunkBuffer::kInput;
    RankBuilder builder(head_.chunks, head_.chunks);
    for (int32_t c = 0; c < channels_; ++c) {
      const ChunkSpan own = Part(local, c, buffer);
      ChunkDependency whole;
      std::vector<ChunkDependency> reads;  // of the own part, before it is overwritten
      if (reduces()) {
        // Pushes all parts to the switch, which answers with the sum of its own.
        const int32_t push = builder.Block(at_switch, -1, 2 * c);
        for (int32_t h = 0; h < inner_; ++h) {
          builder.Step(push, ChunkOp::kSend, Part(h, c, buffer));
        }
        const int32_t pull = builder.Block(-1, at_switch, 2 * c);
        whole = builder.Step(pull, ChunkOp::kRecv, own);
        if (nodes_ > 1) {
          whole = AcrossNodes(builder, node, local, c, own, whole, reads);
        }
      }
      if (!multicasts()) continue;
      const int32_t store = builder.Block(at_switch, -1, 2 * c + 1);
      reads.push_back(builder.Step(store, ChunkOp::kSend, own, whole));
      const int32_t load = builder.Block(-1, at_switch, 2 * c + 1);
      for (int32_t h = 0; h < inner_; ++h) {
        if (h == local) {
          for (const ChunkDependency& read : reads) builder.Wait(load, read);
        }
        builder.Step(load, ChunkOp::kRecv, Part(h, c, buffer));
      }
    }
    return builder.Take();
  }

  // The tree over the nodes for the part of place `local`; places and channels take
  // turns with the two.
  ChunkDependency AcrossNodes(RankBuilder& builder, int32_t node, int32_t local, int32_t c,
                              const ChunkSpan& own, ChunkDependency ready,
                              std::vector<ChunkDependency>& reads) const {
    const TreeNode tree = DoubleTreeNode(nodes_, node, (local + c) % 2);
    const auto peer = [&](int32_t of) { return of * inner_ + local; };
    for (const int32_t down : tree.down) {
      if (down < 0) continue;
      ready =
          builder.Step(builder.Block(-1, peer(down), 2 * c), ChunkOp::kRecvReduceCopy, own, ready);
    }
    if (tree.up >= 0) {
      builder.Step(builder.Block(peer(tree.up), -1, 2 * c), ChunkOp::kSend, own, ready);
      ready = builder.Step(builder.Block(-1, peer(tree.up), 2 * c), ChunkOp::kRecv, own);
    }
    for (const int32_t down : tree.down) {
      if (down < 0) continue;
      const int32_t block = builder.Block(peer(down), -1, 2 * c);
      reads.push_back(builder.Step(block, ChunkOp::kSend, own, ready));
    }
    return ready;
  }

  RankProgram Switch(int32_t node) const {
    const int32_t parts = inner_ * head_.channels;
    RankBuilder builder(0, 0, 2 * parts);
    for (int32_t c = 0; c < channels_; ++c) {
      const auto sum = [&](int32_t h) { return Part(h, c, ChunkBuffer::kScratch); };
      const auto spread = [&](int32_t h) {
        ChunkSpan span = sum(h);
        span.first += parts;
        return span;
      };
      if (reduces()) {
        std::vector<ChunkDependency> summed(inner_);
        for (int32_t m = 0; m < inner_; ++m) {
          const int32_t block = builder.Block(-1, node * inner_ + m, 2 * c);
          for (int32_t h = 0; h < inner_; ++h) {
            summed[h] = builder.Step(block, m == 0 ? ChunkOp::kRecv : ChunkOp::kRecvReduceCopy,
                                     sum(h), summed[h]);
          }
        }
        for (int32_t h = 0; h < inner_; ++h) {
          builder.Step(builder.Block(node * inner_ + h, -1, 2 * c), ChunkOp::kSend, sum(h),
                       summed[h]);
        }
      }
      if (!multicasts()) continue;
      std::vector<ChunkDependency> stored;
      for (int32_t h = 0; h < inner_; ++h) {
        stored.push_back(builder.Step(builder.Block(-1, node * inner_ + h, 2 * c + 1),
                                      ChunkOp::kRecv, spread(h)));
      }
      for (int32_t m = 0; m < inner_; ++m) {
        const int32_t block = builder.Block(node * inner_ + m, -1, 2 * c + 1);
        for (int32_t h = 0; h < inner_; ++h) {
          builder.Step(block, ChunkOp::kSend, spread(h), stored[h]);
        }
      }
    }
    return builder.Take();
  }

  const int32_t inner_, n_, nodes_;
  const ChunkProgram& head_;
  const int32_t channels_;
};

absl::StatusOr<ProgramMaker> Make(const ProgramRequest& request) {
  ProgramMaker maker;
  const int32_t inner = request.levels[0], nodes = request.ranks() / inner;
  maker.num_ranks = request.ranks() + nodes;
  maker.head = HeadOf(request, inner);
  maker.head.helpers = nodes;
  maker.head.channels = 2 * request.channels;  // to the switch to reduce, and to multicast
  maker.alike_channels = nodes > 1 ? 4 : 2;
  maker.make = [request, head = HeadOf(request, inner)](int32_t rank, int32_t channels) {
    return Nvls(request, head, channels / 2).Make(rank);
  };
  return maker;
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeNvls(const ProgramRequest& request) {
  if (!IsAllReduceOrHalf(request.kind)) return DoesNot(request);
  if (request.levels[0] != request.ranks()) return DoesNot(request);  // `nvls_tree` does
  return Make(request);
}

absl::StatusOr<ProgramMaker> MakeNvlsTree(const ProgramRequest& request) {
  if (request.kind != ProgramKind::kAllReduce || request.levels[0] == request.ranks()) {
    return DoesNot(request);
  }
  return Make(request);
}

}  // namespace plancast
