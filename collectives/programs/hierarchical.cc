#include <vector>

#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// One rank of a hierarchical collective: a ring in each level. The part that a rank
// works on shrinks from level to level as they reduce and scatter, and grows back
// as they gather.
class Hierarchy {
 public:
  Hierarchy(const ProgramRequest& request, const ChunkProgram& head, int32_t rank, int32_t channels)
      : levels_(request.levels),
        head_(head),
        rank_(rank),
        channels_(channels),
        builder_(head.chunks, head.chunks) {
    for (const int32_t level : levels_) {
      digits_.push_back(rank % level);
      rank /= level;
    }
  }

  RankProgram Make() {
    const auto levels = static_cast<int32_t>(levels_.size());
    for (c_ = 0; c_ < channels_; ++c_) {
      std::vector<int32_t> blocks(levels, -1);
      ready_ = {};
      int32_t stride = 1;
      for (int32_t l = 0; l < levels; stride *= levels_[l++]) {
        const int32_t size = levels_[l];
        if (size == 1) continue;
        const auto neighbour = [&](int32_t by) {
          return rank_ + ((digits_[l] + by) % size - digits_[l]) * stride;
        };
        blocks[l] = builder_.Block(neighbour(1), neighbour(size - 1), c_);
      }
      const bool scatters = head_.kind != ProgramKind::kAllGather;
      const bool gathers = head_.kind != ProgramKind::kReduceScatter;
      for (int32_t l = 0; l < levels && scatters; ++l) {
        if (blocks[l] >= 0) ReduceScatter(blocks[l], l);
      }
      for (int32_t l = levels - 1; l >= 0 && gathers; --l) {
        if (blocks[l] >= 0) AllGather(blocks[l], l);
      }
    }
    return builder_.Take();
  }

 private:
  void ReduceScatter(int32_t block, int32_t l) {
    const int32_t n = levels_[l];
    Steps(block, ChunkOp::kSend, l, digits_[l] - 1 + n);
    for (int32_t s = 2; s < n; ++s) {
      Steps(block, ChunkOp::kRecvReduceSend, l, digits_[l] - s + n);
    }
    Steps(block, ChunkOp::kRecvReduceCopy, l, digits_[l]);
  }
  void AllGather(int32_t block, int32_t l) {
    const int32_t n = levels_[l];
    Steps(block, ChunkOp::kSend, l, digits_[l]);
    for (int32_t s = 1; s < n - 1; ++s) {
      Steps(block, ChunkOp::kRecvCopySend, l, digits_[l] - s + n);
    }
    Steps(block, ChunkOp::kRecv, l, digits_[l] + 1);
  }

  // On all pieces whose owners agree with this rank below level `l`, and are `digit`
  // there: a step for every run of them.
  void Steps(int32_t block, ChunkOp op, int32_t l, int32_t digit) {
    const auto levels = static_cast<int32_t>(levels_.size());
    std::vector<int32_t> owner(digits_);
    owner[l] = digit % levels_[l];
    for (int32_t i = l + 1; i < levels; ++i) owner[i] = 0;
    const ChunkBuffer buffer =
        head_.kind == ProgramKind::kAllGather ? ChunkBuffer::kOutput : ChunkBuffer::kInput;
    ChunkDependency after = ready_, last;
    ChunkSpan run{buffer, 0, 0};
    const auto flush = [&] {
      if (run.count == 0) return;
      last = builder_.Step(block, op, run, after);
      after = {};
    };
    while (true) {
      const int32_t chunk = PieceOf(owner) * head_.channels + c_;
      if (run.count > 0 && chunk == run.first + run.count) {
        ++run.count;
      } else {
        flush();
        run = {buffer, chunk, 1};
      }
      int32_t i = levels - 1;  // the next owner; all_reduce counts the outermost fastest
      while (i > l && ++owner[i] == levels_[i]) owner[i--] = 0;
      if (i == l) break;
    }
    flush();
    ready_ = last;
  }

  // Of all_reduce no part belongs to a rank, so that parts of one level can be runs.
  int32_t PieceOf(const std::vector<int32_t>& owner) const {
    int32_t piece = 0;
    const auto levels = static_cast<int32_t>(levels_.size());
    if (head_.kind == ProgramKind::kAllReduce) {
      for (int32_t i = 0; i < levels; ++i) piece = piece * levels_[i] + owner[i];
    } else {
      for (int32_t i = levels - 1; i >= 0; --i) piece = piece * levels_[i] + owner[i];
    }
    return piece;
  }

  const std::vector<int32_t> levels_;
  const ChunkProgram& head_;
  const int32_t rank_, channels_;
  std::vector<int32_t> digits_;
  int32_t c_ = 0;
  ChunkDependency ready_;
  RankBuilder builder_;
};

}  // namespace

absl::StatusOr<ProgramMaker> MakeHierarchical(const ProgramRequest& request) {
  if (!IsAllReduceOrHalf(request.kind)) return DoesNot(request);
  ProgramMaker maker;
  maker.num_ranks = request.ranks();
  maker.head = HeadOf(request, maker.num_ranks);
  maker.alike_channels = 1;
  maker.make = [request, head = maker.head](int32_t rank, int32_t channels) {
    return Hierarchy(request, head, rank, channels).Make();
  };
  return maker;
}

}  // namespace plancast
