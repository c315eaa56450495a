#include "interop/msccl/msccl_validate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "collectives/programs/check/buffers.h"
#include "interop/msccl/msccl_words.h"

namespace plancast {
namespace {

int32_t Size(const RankProgram& rank, ChunkBuffer buffer) {
  switch (buffer) {
    case ChunkBuffer::kInput:
      return rank.input_chunks;
    case ChunkBuffer::kOutput:
      return rank.output_chunks;
    case ChunkBuffer::kScratch:
      return rank.scratch_chunks;
  }
  return 0;
}

absl::Status ValidateSpan(const RankProgram& rank, const ChunkSpan& span, absl::string_view name,
                          const std::string& place) {
  const int64_t size = Size(rank, span.buffer);
  if (span.first >= 0 && int64_t{span.first} + span.count <= size) return absl::OkStatus();
  const absl::string_view buffer = kMscclBuffers[static_cast<size_t>(span.buffer)].first;
  return Wrong(place, ": the ", name, " is chunk ", span.first,
               span.count == 1 ? "" : absl::StrCat(" to ", int64_t{span.first} + span.count - 1),
               " of buffer `", buffer, "`, which has ", size, " chunks.");
}

absl::Status ValidateStep(const MscclAlgorithm& algorithm, int32_t r, int32_t b, int32_t s) {
  const RankProgram& rank = algorithm.program.ranks[r];
  const ThreadBlock& block = rank.blocks[b];
  const ChunkStep& step = block.steps[s];
  const std::string place = MscclPlace(algorithm, r, b, s);
  if (Sends(step.op) && block.send_peer < 0) {
    return Wrong(place, " sends, and its thread block has no send peer.");
  }
  if (Receives(step.op) && block.recv_peer < 0) {
    return Wrong(place, " receives, and its thread block has no receive peer.");
  }
  if (step.op != ChunkOp::kNop && step.source.count < 1) {
    return Wrong(place, " moves no chunk: `cnt` must be 1 or more.");
  }
  if (ReadsSource(step.op)) {
    RETURN_IF_ERROR(ValidateSpan(rank, step.source, "source", place));
  }
  if (WritesTarget(step.op)) {
    RETURN_IF_ERROR(ValidateSpan(rank, step.target, "destination", place));
  }
  if (step.after.block < 0) return absl::OkStatus();
  if (step.after.block >= static_cast<int32_t>(rank.blocks.size())) {
    return Wrong(place, " waits for thread block ", step.after.block, ", and gpu ", r, " has ",
                 rank.blocks.size(), " of them.");
  }
  const auto& others = rank.blocks[step.after.block].steps;
  if (step.after.step < 0 || step.after.step >= static_cast<int32_t>(others.size())) {
    return Wrong(place, " waits for step ", step.after.step, " of thread block ", step.after.block,
                 ", which has ", others.size(), " steps.");
  }
  if (step.after.block == b && step.after.step >= s) {
    return Wrong(place, " waits for step ", step.after.step,
                 " of its own thread block, which comes no earlier: a cycle.");
  }
  if (!algorithm.notes.empty() &&
      !algorithm.notes[r][step.after.block][step.after.step].published) {
    return Wrong(place, " waits for ", MscclPlace(algorithm, r, step.after.block, step.after.step),
                 ", whose `hasdep` is 0: it would wait for ever.");
  }
  return absl::OkStatus();
}

absl::Status ValidateBuffers(const ChunkProgram& program, int32_t r) {
  const RankProgram& rank = program.ranks[r];
  const auto check = [&](absl::string_view name, int64_t chunks, int64_t times) -> absl::Status {
    if (chunks == 0 || chunks * times == program.chunks) return absl::OkStatus();
    return Wrong("gpu ", r, ": `", name, "` is ", chunks, " and `nchunksperloop` ", program.chunks,
                 "; ", kProgramKindNames[program.kind], " on ", program.num_ranks(), " GPUs takes ",
                 program.chunks / times, " (or 0).");
  };
  switch (program.kind) {
    case ProgramKind::kCustom:
    case ProgramKind::kGather:  // whose ranks differ
    case ProgramKind::kScatter:
      return absl::OkStatus();
    default:
      break;
  }
  const int64_t n = program.num_ranks();
  RETURN_IF_ERROR(
      check("i_chunks", rank.input_chunks, program.kind == ProgramKind::kAllGather ? n : 1));
  return check("o_chunks", rank.output_chunks, program.kind == ProgramKind::kReduceScatter ? n : 1);
}

}  // namespace

std::string MscclPlace(const MscclAlgorithm& algorithm, int32_t rank, int32_t block, int32_t step) {
  return absl::StrCat("gpu ", rank, ", thread block ", block, ", step ", step,
                      algorithm.LineOf(rank, block, step));
}

absl::Status ValidateSteps(const MscclAlgorithm& algorithm) {
  const ChunkProgram& program = algorithm.program;
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    RETURN_IF_ERROR(ValidateBuffers(program, r));
    const auto& blocks = program.ranks[r].blocks;
    for (int32_t b = 0; b < static_cast<int32_t>(blocks.size()); ++b) {
      for (int32_t s = 0; s < static_cast<int32_t>(blocks[b].steps.size()); ++s) {
        RETURN_IF_ERROR(ValidateStep(algorithm, r, b, s));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateLimits(MscclAlgorithm& algorithm) {
  const ChunkProgram& program = algorithm.program;
  if (program.channels > kRcclChannels) {
    return Wrong("`nchannels` is ", program.channels, "; RCCL has room for ", kRcclChannels,
                 " and MSCCL for ", kMscclChannels, ".");
  }
  if (program.channels > kMscclChannels) {
    algorithm.warnings.push_back(absl::StrCat("`nchannels` is ", program.channels,
                                              "; MSCCL has room for ", kMscclChannels, "."));
  }
  size_t most = 0;
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    const auto& blocks = program.ranks[r].blocks;
    most = std::max(most, blocks.size());
    std::map<std::pair<bool, int32_t>, int32_t> users;  // (sends, channel)
    for (int32_t b = 0; b < static_cast<int32_t>(blocks.size()); ++b) {
      const ThreadBlock& block = blocks[b];
      if (block.steps.size() > static_cast<size_t>(kMscclSteps)) {
        return Wrong("gpu ", r, ", thread block ", b, " has ", block.steps.size(),
                     " steps; a thread block has room for ", kMscclSteps,
                     ". Spread them over more channels.");
      }
      for (int32_t s = 0; s < static_cast<int32_t>(block.steps.size()); ++s) {
        if (block.steps[s].source.count <= kMscclCount) continue;
        return Wrong(MscclPlace(algorithm, r, b, s), " moves ", block.steps[s].source.count,
                     " chunks; a step moves at most ", kMscclCount, ".");
      }
      for (const bool sends : {true, false}) {
        if ((sends ? block.send_peer : block.recv_peer) < 0) continue;
        if (++users[{sends, block.channel}] <= kMscclBlocksPerChannel) continue;
        return Wrong("gpu ", r, ", thread block ", b, ": more than ", kMscclBlocksPerChannel,
                     " thread blocks ", sends ? "send" : "receive", " on channel ", block.channel,
                     ". Spread them over more channels.");
      }
    }
  }
  if (most > static_cast<size_t>(kMscclBlocks)) {
    algorithm.warnings.push_back(
        absl::StrCat("a GPU has ", most, " thread blocks; MSCCL has room for ", kMscclBlocks, "."));
  }
  return absl::OkStatus();
}

}  // namespace plancast
