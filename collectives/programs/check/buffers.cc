#include "collectives/programs/check/buffers.h"

#include <algorithm>

namespace plancast {
namespace {

bool InputIsPart(ProgramKind kind) {
  return kind == ProgramKind::kAllGather || kind == ProgramKind::kGather;
}
bool OutputIsPart(ProgramKind kind) {
  return kind == ProgramKind::kReduceScatter || kind == ProgramKind::kScatter;
}

}  // namespace

ChunkShare ShareOf(const ChunkProgram& program, int32_t rank) {
  if (rank >= program.members()) return {};
  const int32_t all = program.chunks;
  const int32_t part = all / program.members();
  const bool is_root = rank == program.root;
  switch (program.kind) {
    case ProgramKind::kAllReduce:
    case ProgramKind::kAllToAll:
      return {all, all};
    case ProgramKind::kAllGather:
      return {part, all};
    case ProgramKind::kReduceScatter:
      return {all, part};
    case ProgramKind::kBroadcast:
      return {is_root ? all : 0, all};
    case ProgramKind::kReduce:
      return {all, is_root ? all : 0};
    case ProgramKind::kGather:
      return {part, is_root ? all : 0};
    case ProgramKind::kScatter:
      return {is_root ? all : 0, part};
    case ProgramKind::kSendRecv:
      return {is_root ? all : 0, rank == program.receiver ? all : 0};
    case ProgramKind::kCustom:
      return {program.ranks[rank].input_chunks, 0};
  }
  return {};
}

int64_t PartStart(const ChunkProgram& program, int32_t rank) {
  return int64_t{program.chunks / program.members()} * rank;
}

BufferLayout LayoutOf(const ChunkProgram& program, int32_t rank) {
  const RankProgram& declared = program.ranks[rank];
  BufferLayout layout;
  layout.scratch.chunks = declared.scratch_chunks;
  if (!program.in_place) {
    layout.input.chunks = declared.input_chunks;
    layout.output = {declared.input_chunks, declared.output_chunks};
    layout.scratch.start = layout.output.start + declared.output_chunks;
  } else {
    const ChunkShare share = ShareOf(program, rank);
    const bool member = rank < program.members();
    const bool at_part =
        member && (rank == program.root || program.kind == ProgramKind::kAllGather);
    const bool from_part =
        member && (rank == program.root || program.kind == ProgramKind::kReduceScatter);
    if (InputIsPart(program.kind) && at_part) layout.input.start = PartStart(program, rank);
    if (OutputIsPart(program.kind) && from_part) layout.output.start = PartStart(program, rank);
    const int64_t cells =
        std::max({layout.input.start + std::max<int64_t>(share.input, declared.input_chunks),
                  layout.output.start + std::max<int64_t>(share.output, declared.output_chunks)});
    layout.input.chunks = cells - layout.input.start;
    layout.output.chunks = cells - layout.output.start;
    layout.scratch.start = cells;
  }
  layout.cells = layout.scratch.start + layout.scratch.chunks;
  return layout;
}

int32_t MessageChunks(const ChunkStep& step) {
  return ReadsSource(step.op) ? step.source.count : step.target.count;
}

bool ReadsSource(ChunkOp op) {
  switch (op) {
    case ChunkOp::kRecv:
    case ChunkOp::kRecvCopySend:
    case ChunkOp::kNop:
      return false;
    default:
      return true;
  }
}

bool WritesTarget(ChunkOp op) {
  switch (op) {
    case ChunkOp::kSend:
    case ChunkOp::kRecvReduceSend:
    case ChunkOp::kNop:
      return false;
    default:
      return true;
  }
}

}  // namespace plancast
