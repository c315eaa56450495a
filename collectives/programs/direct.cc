#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

// Messages between all pairs of ranks, or with the root alone. A rank begins with
// the peer after it, so that no rank is everyone's first.
class Direct {
 public:
  Direct(const ChunkProgram& head, int32_t n, int32_t rank, int32_t channels)
      : head_(head), n_(n), rank_(rank), channels_(channels), builder_(head.chunks, head.chunks) {}

  RankProgram Make() {
    for (c_ = 0; c_ < channels_; ++c_) {
      switch (head_.kind) {
        case ProgramKind::kAllReduce:
        case ProgramKind::kReduceScatter:
          ReduceParts();
          break;
        case ProgramKind::kAllGather:
        case ProgramKind::kAllToAll:
          Exchange();
          break;
        case ProgramKind::kSendRecv:
          Send();
          break;
        default:
          WithRoot();
      }
    }
    return builder_.Take();
  }

 private:
  ChunkSpan Share(ChunkBuffer buffer, int32_t piece) const {
    return {buffer, piece * head_.channels + c_, 1};
  }
  ChunkSpan In(int32_t piece) const { return Share(ChunkBuffer::kInput, piece); }
  ChunkSpan Out(int32_t piece) const { return Share(ChunkBuffer::kOutput, piece); }

  // Everyone sums up its part; all_reduce hands the sum to all.
  void ReduceParts() {
    ChunkDependency sum;
    const int32_t first = static_cast<int32_t>(builder_.num_blocks());
    for (int32_t d = 1; d < n_; ++d) {
      // Sends to the rank d after, hears from the rank d before: both at once.
      const int32_t to = (rank_ + d) % n_, from = (rank_ - d + n_) % n_;
      const int32_t block = builder_.Block(to, from, c_);
      builder_.Step(block, ChunkOp::kSend, In(to));
      sum = builder_.Step(block, ChunkOp::kRecvReduceCopy, In(rank_), sum);
    }
    if (head_.kind == ProgramKind::kReduceScatter) return;
    for (int32_t d = 1; d < n_; ++d) {
      builder_.Step(first + d - 1, ChunkOp::kSend, In(rank_), sum);
      // Other blocks have sent what comes in here before: their steps are over.
      builder_.Step(first + d - 1, ChunkOp::kRecv, In((rank_ - d + n_) % n_));
    }
  }

  void Exchange() {
    const bool gathers = head_.kind == ProgramKind::kAllGather;
    if (!gathers) {
      builder_.Step(builder_.Block(-1, -1, c_), ChunkOp::kCopy, In(rank_), Out(rank_), {});
    }
    for (int32_t d = 1; d < n_; ++d) {
      const int32_t to = (rank_ + d) % n_, from = (rank_ - d + n_) % n_;
      const int32_t block = builder_.Block(to, from, c_);
      builder_.Step(block, ChunkOp::kSend, gathers ? Out(rank_) : In(to));
      builder_.Step(block, ChunkOp::kRecv, Out(from));
    }
  }

  void Send() {
    if (head_.root == head_.receiver) {
      if (rank_ != head_.root) return;
      builder_.Step(builder_.Block(-1, -1, c_), ChunkOp::kCopy, In(0), Out(0), {});
    } else if (rank_ == head_.root) {
      builder_.Step(builder_.Block(head_.receiver, -1, c_), ChunkOp::kSend, In(0));
    } else if (rank_ == head_.receiver) {
      builder_.Step(builder_.Block(-1, head_.root, c_), ChunkOp::kRecv, Out(0));
    }
  }

  // Broadcast, scatter, reduce, gather.
  void WithRoot() {
    const bool from_root =
        head_.kind == ProgramKind::kBroadcast || head_.kind == ProgramKind::kScatter;
    const bool parts = head_.kind == ProgramKind::kScatter || head_.kind == ProgramKind::kGather;
    const ChunkBuffer buffer =
        head_.kind == ProgramKind::kReduce || head_.kind == ProgramKind::kScatter
            ? ChunkBuffer::kInput
            : ChunkBuffer::kOutput;
    if (rank_ == head_.root) {
      ChunkDependency last;
      for (int32_t d = 1; d < n_; ++d) {
        const int32_t peer = (rank_ + d) % n_;
        const ChunkSpan span = Share(buffer, parts ? peer : 0);
        const int32_t block = builder_.Block(from_root ? peer : -1, from_root ? -1 : peer, c_);
        if (head_.kind == ProgramKind::kReduce) {
          last = builder_.Step(block, ChunkOp::kRecvReduceCopy, span, last);
        } else {
          builder_.Step(block, from_root ? ChunkOp::kSend : ChunkOp::kRecv, span);
        }
      }
      return;
    }
    const int32_t block =
        builder_.Block(from_root ? -1 : head_.root, from_root ? head_.root : -1, c_);
    builder_.Step(block, from_root ? ChunkOp::kRecv : ChunkOp::kSend, from_root ? Out(0) : In(0));
  }

  const ChunkProgram& head_;
  const int32_t n_, rank_, channels_;
  int32_t c_ = 0;
  RankBuilder builder_;
};

}  // namespace

absl::StatusOr<ProgramMaker> MakeDirect(const ProgramRequest& request) {
  bool parts = true;
  switch (request.kind) {
    case ProgramKind::kBroadcast:
    case ProgramKind::kReduce:
    case ProgramKind::kSendRecv:
      parts = false;
      break;
    case ProgramKind::kCustom:
      return DoesNot(request);
    default:
      break;
  }
  ProgramMaker maker;
  maker.num_ranks = request.ranks();
  maker.head = HeadOf(request, parts ? maker.num_ranks : 1);
  maker.head.in_place =
      request.kind != ProgramKind::kAllToAll && request.kind != ProgramKind::kSendRecv;
  maker.alike_channels = 1;
  maker.make = [n = maker.num_ranks, head = maker.head](int32_t rank, int32_t channels) {
    return Direct(head, n, rank, channels).Make();
  };
  return maker;
}

}  // namespace plancast
