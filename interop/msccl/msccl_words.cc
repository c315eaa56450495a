#include "interop/msccl/msccl_words.h"

namespace plancast {

bool ReadsSource(ChunkOp op) { return op == ChunkOp::kSend || op == ChunkOp::kCopy || Reduces(op); }

bool WritesTarget(ChunkOp op) {
  switch (op) {
    case ChunkOp::kRecv:
    case ChunkOp::kRecvCopySend:
    case ChunkOp::kRecvReduceCopy:
    case ChunkOp::kRecvReduceCopySend:
    case ChunkOp::kCopy:
    case ChunkOp::kReduce:
      return true;
    default:
      return false;
  }
}

}  // namespace plancast
