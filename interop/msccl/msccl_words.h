#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_WORDS_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_WORDS_H_

#include <array>
#include <utility>

#include "absl/strings/string_view.h"
#include "collectives/programs/chunk_program.h"
#include "collectives/programs/protocol.h"

// The words of MSCCL's XML; the first spelling of a value is the one written.

namespace plancast {

inline constexpr std::array<std::pair<absl::string_view, ProgramKind>, 10> kMscclCollectives = {{
    {"allreduce", ProgramKind::kAllReduce},
    {"allgather", ProgramKind::kAllGather},
    {"reduce_scatter", ProgramKind::kReduceScatter},
    {"reducescatter", ProgramKind::kReduceScatter},  // RCCL
    {"alltoall", ProgramKind::kAllToAll},
    {"broadcast", ProgramKind::kBroadcast},
    {"reduce", ProgramKind::kReduce},
    {"gather", ProgramKind::kGather},    // RCCL
    {"scatter", ProgramKind::kScatter},  // RCCL
    {"custom", ProgramKind::kCustom},
}};

inline constexpr std::array<std::pair<absl::string_view, ChunkOp>, 10> kMscclOps = {{
    {"s", ChunkOp::kSend},
    {"r", ChunkOp::kRecv},
    {"rcs", ChunkOp::kRecvCopySend},
    {"rrs", ChunkOp::kRecvReduceSend},
    {"rrc", ChunkOp::kRecvReduceCopy},
    {"rrcs", ChunkOp::kRecvReduceCopySend},
    {"cpy", ChunkOp::kCopy},
    {"re", ChunkOp::kReduce},
    {"ra", ChunkOp::kReduce},
    {"nop", ChunkOp::kNop},
}};

inline constexpr std::array<std::pair<absl::string_view, ChunkBuffer>, 3> kMscclBuffers = {{
    {"i", ChunkBuffer::kInput},
    {"o", ChunkBuffer::kOutput},
    {"s", ChunkBuffer::kScratch},
}};

inline constexpr std::array<absl::string_view, kNumProtocols> kMscclProtocols = {
    kProtocolNames[Protocol::kSimple], kProtocolNames[Protocol::kLl],
    kProtocolNames[Protocol::kLl128]};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_WORDS_H_
