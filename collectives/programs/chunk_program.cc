#include "collectives/programs/chunk_program.h"

namespace plancast {

bool Receives(ChunkOp op) {
  switch (op) {
    case ChunkOp::kRecv:
    case ChunkOp::kRecvCopySend:
    case ChunkOp::kRecvReduceSend:
    case ChunkOp::kRecvReduceCopy:
    case ChunkOp::kRecvReduceCopySend:
      return true;
    default:
      return false;
  }
}

bool Sends(ChunkOp op) {
  switch (op) {
    case ChunkOp::kSend:
    case ChunkOp::kRecvCopySend:
    case ChunkOp::kRecvReduceSend:
    case ChunkOp::kRecvReduceCopySend:
      return true;
    default:
      return false;
  }
}

bool Reduces(ChunkOp op) {
  switch (op) {
    case ChunkOp::kRecvReduceSend:
    case ChunkOp::kRecvReduceCopy:
    case ChunkOp::kRecvReduceCopySend:
    case ChunkOp::kReduce:
      return true;
    default:
      return false;
  }
}

}  // namespace plancast
