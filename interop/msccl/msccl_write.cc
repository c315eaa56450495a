#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/programs/check/buffers.h"
#include "interop/msccl/msccl_messages.h"
#include "interop/msccl/msccl_validate.h"
#include "interop/msccl/msccl_words.h"
#include "interop/msccl/msccl_xml.h"

namespace plancast {
namespace {

template <typename Table, typename Value>
std::string Word(const Table& table, Value value) {
  for (const auto& [spelling, meaning] : table) {
    if (meaning == value) return std::string(spelling);
  }
  return "custom";  // kinds that MSCCL has no name for
}

void Set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name) = value.c_str();
}

void Set(pugi::xml_node node, const char* name, int64_t value) {
  node.append_attribute(name) = static_cast<long long>(value);  // NOLINT: pugixml's type
}

void Set(pugi::xml_node node, const char* name, const std::optional<int64_t>& value) {
  if (value) Set(node, name, *value);
}

void WriteStep(pugi::xml_node parent, const ChunkStep& step, int32_t number, bool residual,
               bool published) {
  pugi::xml_node node = parent.append_child("step");
  Set(node, "s", int64_t{number});
  Set(node, "type", residual ? std::string("ra") : Word(kMscclOps, step.op));
  Set(node, "srcbuf", Word(kMscclBuffers, step.source.buffer));
  Set(node, "srcoff", int64_t{step.source.first});
  Set(node, "dstbuf", Word(kMscclBuffers, step.target.buffer));
  Set(node, "dstoff", int64_t{step.target.first});
  Set(node, "cnt", int64_t{step.source.count});
  Set(node, "depid", int64_t{step.after.block});
  Set(node, "deps", int64_t{step.after.step});
  Set(node, "hasdep", int64_t{published});
}

void WriteRank(pugi::xml_node parent, const MscclAlgorithm& algorithm, int32_t r) {
  const RankProgram& rank = algorithm.program.ranks[r];
  pugi::xml_node gpu = parent.append_child("gpu");
  Set(gpu, "id", int64_t{r});
  Set(gpu, "i_chunks", int64_t{rank.input_chunks});
  Set(gpu, "o_chunks", int64_t{rank.output_chunks});
  Set(gpu, "s_chunks", int64_t{rank.scratch_chunks});
  std::set<std::pair<int32_t, int32_t>> awaited;
  for (const ThreadBlock& block : rank.blocks) {
    for (const ChunkStep& step : block.steps) awaited.emplace(step.after.block, step.after.step);
  }
  for (int32_t b = 0; b < static_cast<int32_t>(rank.blocks.size()); ++b) {
    const ThreadBlock& block = rank.blocks[b];
    pugi::xml_node tb = gpu.append_child("tb");
    Set(tb, "id", int64_t{b});
    Set(tb, "send", int64_t{block.send_peer});
    Set(tb, "recv", int64_t{block.recv_peer});
    Set(tb, "chan", int64_t{block.channel});
    for (int32_t s = 0; s < static_cast<int32_t>(block.steps.size()); ++s) {
      MscclStepNote note;
      if (!algorithm.notes.empty()) note = algorithm.notes[r][b][s];
      WriteStep(tb, block.steps[s], s, note.residual, note.published || awaited.count({b, s}) > 0);
    }
  }
}

// A step that only waits names no chunk.
void EmptyNops(ChunkProgram& program) {
  for (RankProgram& rank : program.ranks) {
    for (ThreadBlock& block : rank.blocks) {
      for (ChunkStep& step : block.steps) {
        if (step.op != ChunkOp::kNop) continue;
        step.source = {ChunkBuffer::kInput, -1, 0};
        step.target = {ChunkBuffer::kOutput, -1, 0};
      }
    }
  }
}

// In place MSCCL's tools name one buffer, the larger, and declare the other empty.
void NameOneBuffer(ChunkProgram& program) {
  if (!program.in_place || program.kind == ProgramKind::kCustom) return;
  const bool gathers =
      program.kind == ProgramKind::kAllGather || program.kind == ProgramKind::kGather;
  const ChunkBuffer whole = gathers ? ChunkBuffer::kOutput : ChunkBuffer::kInput;
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    RankProgram& rank = program.ranks[r];
    const ChunkShare share = ShareOf(program, r);
    rank.input_chunks = share.input;
    rank.output_chunks = share.output;
    const BufferLayout layout = LayoutOf(program, r);
    const auto rename = [&](ChunkSpan& span) {
      if (span.buffer == ChunkBuffer::kScratch || span.buffer == whole) return;
      const int64_t cell = layout.of(span.buffer).start + span.first;
      span.first = static_cast<int32_t>(cell - layout.of(whole).start);
      span.buffer = whole;
    };
    for (ThreadBlock& block : rank.blocks) {
      for (ChunkStep& step : block.steps) {
        if (step.op == ChunkOp::kNop) continue;
        rename(step.source);
        rename(step.target);
      }
    }
    const auto chunks = static_cast<int32_t>(layout.scratch.start);
    rank.input_chunks = gathers ? 0 : chunks;
    rank.output_chunks = gathers ? chunks : 0;
  }
}

}  // namespace

std::string MscclWord(ChunkOp op) { return Word(kMscclOps, op); }

absl::StatusOr<std::string> WriteMscclAlgorithm(const MscclAlgorithm& algorithm) {
  constexpr char kCannot[] = "cannot be written as MSCCL XML";
  const ChunkProgram& head = algorithm.program;
  if (head.helpers > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCannot, ": `", head.name, "` has ", head.helpers,
                     " helpers (switches or servers) beside its GPUs."));
  }
  MscclAlgorithm told = algorithm;
  RETURN_IF_ERROR(ValidateLimits(told)) << kCannot;
  if (algorithm.notes.empty()) {
    EmptyNops(told.program);
    NameOneBuffer(told.program);
    RETURN_IF_ERROR(TellPeers(told)) << kCannot;
  }
  const ChunkProgram& program = told.program;
  pugi::xml_document document;
  pugi::xml_node algo = document.append_child("algo");
  Set(algo, "name", program.name);
  Set(algo, "proto", program.protocol);
  Set(algo, "nchannels", int64_t{program.channels});
  Set(algo, "nchunksperloop", int64_t{program.chunks});
  Set(algo, "ngpus", int64_t{program.num_ranks()});
  Set(algo, "coll",
      algorithm.collective.empty() ? Word(kMscclCollectives, program.kind) : algorithm.collective);
  Set(algo, "inplace", int64_t{program.in_place});
  Set(algo, "outofplace", algorithm.out_of_place);
  if (!algorithm.reduction.empty()) Set(algo, "redop", algorithm.reduction);
  Set(algo, "nthreads", algorithm.threads);
  Set(algo, "minBytes", algorithm.min_bytes);
  Set(algo, "maxBytes", algorithm.max_bytes);
  for (int32_t r = 0; r < program.num_ranks(); ++r) WriteRank(algo, told, r);
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default | pugi::format_no_declaration);
  return out.str();
}

}  // namespace plancast
