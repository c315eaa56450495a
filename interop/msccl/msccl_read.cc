#include <algorithm>
#include <pugixml.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "interop/msccl/msccl_messages.h"
#include "interop/msccl/msccl_validate.h"
#include "interop/msccl/msccl_words.h"
#include "interop/msccl/msccl_xml.h"
#include "interop/msccl/xml_element.h"

namespace plancast {
namespace {

constexpr size_t kMostBytes = size_t{32} << 20;
constexpr int64_t kAnyNumber = int64_t{1} << 50;

// The value that a word of `table` stands for.
template <typename Table>
auto Meaning(const XmlElement& element, const char* attribute, const Table& table)
    -> absl::StatusOr<decltype(table[0].second)> {
  ASSIGN_OR_RETURN(const std::string word, element.Text(attribute));
  std::vector<absl::string_view> words;
  for (const auto& [spelling, value] : table) {
    if (spelling == word) return value;
    words.push_back(spelling);
  }
  return element.Error("`", attribute, "` cannot be `", word.substr(0, 40), "`.",
                       Offer(word.substr(0, 40), words));
}

absl::Status ReadStep(const XmlElement& element, int32_t number, ChunkStep& step,
                      MscclStepNote& note) {
  note.line = element.line();
  ASSIGN_OR_RETURN(const int64_t told, element.Integer("s", 0, kMscclChunks));
  if (told != number) {
    return element.Error("`s` is ", told, " where step ", number,
                         " belongs; steps count from 0, without a gap.");
  }
  ASSIGN_OR_RETURN(step.op, Meaning(element, "type", kMscclOps));
  note.residual = element.node().attribute("type").value() == absl::string_view("ra");
  const bool nop = step.op == ChunkOp::kNop;
  // A step that only waits may leave out what it does not move.
  const auto span = [&](const char* buffer, const char* first, ChunkSpan& out) -> absl::Status {
    if (!nop || element.Has(buffer)) {
      ASSIGN_OR_RETURN(out.buffer, Meaning(element, buffer, kMscclBuffers));
    }
    out.first = -1;
    if (!nop || element.Has(first)) {
      ASSIGN_OR_RETURN(out.first, element.Integer(first, -1, kMscclChunks));
    }
    out.count = 0;
    if (!nop || element.Has("cnt")) {
      ASSIGN_OR_RETURN(out.count, element.Integer("cnt", 0, kMscclChunks));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(span("srcbuf", "srcoff", step.source));
  RETURN_IF_ERROR(span("dstbuf", "dstoff", step.target));
  ASSIGN_OR_RETURN(step.after.block, element.Integer("depid", -1, kMscclChunks));
  ASSIGN_OR_RETURN(step.after.step, element.Integer("deps", -1, kMscclChunks));
  if ((step.after.block < 0) != (step.after.step < 0)) {
    return element.Error("`depid` is ", step.after.block, " and `deps` ", step.after.step,
                         "; both name a step, or both are -1.");
  }
  ASSIGN_OR_RETURN(note.published, element.Integer("hasdep", 0, 1));
  return absl::OkStatus();
}

absl::Status ReadBlock(const XmlElement& element, int32_t rank, const ChunkProgram& program,
                       ThreadBlock& block, std::vector<MscclStepNote>& notes) {
  const int32_t most = program.num_ranks() - 1;
  const auto peer = [&](const char* attribute) -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(const int64_t value, element.Integer(attribute, -1, most));
    if (value == rank) return element.Error("`", attribute, "` is the gpu itself.");
    return value;
  };
  ASSIGN_OR_RETURN(block.send_peer, peer("send"));
  ASSIGN_OR_RETURN(block.recv_peer, peer("recv"));
  ASSIGN_OR_RETURN(block.channel, element.Integer("chan", 0, program.channels - 1));
  if (!element.node().child("step")) return element.Error("there is no step 0.");
  for (const pugi::xml_node node : element.node().children("step")) {
    const auto number = static_cast<int32_t>(block.steps.size());
    XmlElement child = element.Child(node);
    child.set_place(absl::StrCat(element.place(), ", step ", number));
    RETURN_IF_ERROR(ReadStep(child, number, block.steps.emplace_back(), notes.emplace_back()));
  }
  return absl::OkStatus();
}

// The children called `name`, in the order of their `id`, which counts from 0.
absl::StatusOr<std::vector<XmlElement>> Numbered(const XmlElement& parent, const char* name,
                                                 absl::string_view called) {
  std::vector<std::pair<int64_t, XmlElement>> found;
  for (const pugi::xml_node node : parent.node().children(name)) {
    found.emplace_back(0, parent.Child(node));
    ASSIGN_OR_RETURN(found.back().first, found.back().second.Integer("id", 0, kMscclChunks));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<XmlElement> out;
  for (auto& [id, element] : found) {
    const auto next = static_cast<int64_t>(out.size());
    if (id < next) return element.Error(called, " ", id, " is there twice.");
    if (id > next) return element.Error("no ", called, " ", next, " comes before ", id, ".");
    element.set_place(
        absl::StrCat(parent.place(), parent.place().empty() ? "" : ", ", called, " ", id));
    out.push_back(std::move(element));
  }
  return out;
}

absl::Status ReadRank(const XmlElement& element, int32_t r, MscclAlgorithm& out) {
  RankProgram& rank = out.program.ranks[r];
  ASSIGN_OR_RETURN(rank.input_chunks, element.Integer("i_chunks", 0, kMscclChunks));
  ASSIGN_OR_RETURN(rank.output_chunks, element.Integer("o_chunks", 0, kMscclChunks));
  ASSIGN_OR_RETURN(rank.scratch_chunks, element.Integer("s_chunks", 0, kMscclChunks));
  ASSIGN_OR_RETURN(const std::vector<XmlElement> blocks, Numbered(element, "tb", "thread block"));
  for (const XmlElement& block : blocks) {
    RETURN_IF_ERROR(
        ReadBlock(block, r, out.program, rank.blocks.emplace_back(), out.notes[r].emplace_back()));
  }
  return absl::OkStatus();
}

// The rank that alone never receives (broadcast, scatter) or never sends (reduce,
// gather): the XML names no root. Where several do, the first.
int32_t FindRoot(const ChunkProgram& program) {
  const bool spreads =
      program.kind == ProgramKind::kBroadcast || program.kind == ProgramKind::kScatter;
  if (!spreads && program.kind != ProgramKind::kReduce && program.kind != ProgramKind::kGather) {
    return 0;
  }
  const auto moves = [&](const RankProgram& rank) {
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps) {
        if (spreads ? Receives(step.op) : Sends(step.op)) {
          return true;
        }
      }
    }
    return false;
  };
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    if (!moves(program.ranks[r])) return r;
  }
  return 0;
}

absl::Status ReadOptions(const XmlElement& algo, MscclAlgorithm& out) {
  const auto number = [&](const char* attribute, int64_t most,
                          std::optional<int64_t>& value) -> absl::Status {
    if (!algo.Has(attribute)) return absl::OkStatus();
    ASSIGN_OR_RETURN(value, algo.Integer(attribute, 0, most));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(number("outofplace", 1, out.out_of_place));
  RETURN_IF_ERROR(number("nthreads", 1024, out.threads));
  if (out.threads.value_or(0) % 32 != 0) {
    return algo.Error("`nthreads` is ", *out.threads, "; it is a multiple of 32.");
  }
  RETURN_IF_ERROR(number("minBytes", kAnyNumber, out.min_bytes));
  RETURN_IF_ERROR(number("maxBytes", kAnyNumber, out.max_bytes));
  if (out.min_bytes && out.max_bytes && *out.min_bytes > *out.max_bytes) {
    return algo.Error("`minBytes` is ", *out.min_bytes, ", more than `maxBytes`, ", *out.max_bytes,
                      ".");
  }
  if (algo.Has("redop")) out.reduction = algo.node().attribute("redop").value();
  return absl::OkStatus();
}

absl::Status ReadAlgo(const XmlElement& algo, MscclAlgorithm& out) {
  ChunkProgram& program = out.program;
  program.name = algo.node().attribute("name").value();
  ASSIGN_OR_RETURN(program.protocol, algo.Text("proto"));
  if (std::find(kMscclProtocols.begin(), kMscclProtocols.end(), program.protocol) ==
      kMscclProtocols.end()) {
    return algo.Error("`proto` cannot be `", program.protocol.substr(0, 40), "`.",
                      Offer(program.protocol.substr(0, 40), kMscclProtocols));
  }
  ASSIGN_OR_RETURN(program.channels, algo.Integer("nchannels", 1, kMscclChunks));
  ASSIGN_OR_RETURN(program.chunks, algo.Integer("nchunksperloop", 1, kMscclChunks));
  ASSIGN_OR_RETURN(const int64_t ranks, algo.Integer("ngpus", 1, kMscclRanks));
  ASSIGN_OR_RETURN(program.kind, Meaning(algo, "coll", kMscclCollectives));
  out.collective = algo.node().attribute("coll").value();
  ASSIGN_OR_RETURN(program.in_place, algo.Integer("inplace", 0, 1));
  RETURN_IF_ERROR(ReadOptions(algo, out));

  ASSIGN_OR_RETURN(const std::vector<XmlElement> gpus, Numbered(algo, "gpu", "gpu"));
  if (static_cast<int64_t>(gpus.size()) != ranks) {
    return algo.Error("`ngpus` is ", ranks, ", and there are ", gpus.size(), " <gpu> elements.");
  }
  program.ranks.resize(ranks);
  out.notes.resize(ranks);
  for (int32_t r = 0; r < ranks; ++r) RETURN_IF_ERROR(ReadRank(gpus[r], r, out));
  program.root = FindRoot(program);
  return absl::OkStatus();
}

absl::StatusOr<MscclAlgorithm> ReadText(absl::string_view text) {
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(text.size(), " bytes are more than the ",
                                                   kMostBytes, " of an MSCCL algorithm."));
  }
  const LineIndex lines(text);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", lines.Line(parsed.offset), ": not XML: ", parsed.description(), "."));
  }
  const pugi::xml_node node = document.child("algo");
  if (!node) {
    return absl::InvalidArgumentError(
        "has no <algo> element. MSCCL's tools write one, and so does `plancast export msccl`.");
  }
  MscclAlgorithm out;
  RETURN_IF_ERROR(ReadAlgo(XmlElement(node, &lines, ""), out));
  RETURN_IF_ERROR(ValidateSteps(out));
  RETURN_IF_ERROR(ValidateMessages(out));
  RETURN_IF_ERROR(ValidateLimits(out));
  return out;
}

}  // namespace

std::string MscclAlgorithm::LineOf(int32_t rank, int32_t block, int32_t step) const {
  const auto has = [](const auto& items, int32_t i) {
    return i >= 0 && i < static_cast<int32_t>(items.size());
  };
  if (!has(notes, rank) || !has(notes[rank], block) || !has(notes[rank][block], step)) return "";
  return absl::StrCat(" (line ", notes[rank][block][step].line, ")");
}

absl::StatusOr<MscclAlgorithm> ReadMscclAlgorithm(absl::string_view text, absl::string_view what) {
  absl::StatusOr<MscclAlgorithm> out = ReadText(text);
  if (out.ok()) return out;
  return absl::InvalidArgumentError(absl::StrCat("`", what, "`: ", out.status().message()));
}

}  // namespace plancast
