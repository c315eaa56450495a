#include "interop/msccl/msccl_xml.h"

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "collectives/programs/program_maker.h"
#include "collectives/synthesis/synthesise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/msccl/msccl_check.h"
#include "tests/interop/msccl/msccl_files.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Elements and attributes in a fixed order, one line each.
void Canonical(pugi::xml_node node, std::string& out) {
  std::vector<std::pair<std::string, std::string>> attributes;
  for (const pugi::xml_attribute a : node.attributes())
    attributes.emplace_back(a.name(), a.value());
  std::sort(attributes.begin(), attributes.end());
  absl::StrAppend(&out, node.name());
  for (const auto& [name, value] : attributes) absl::StrAppend(&out, " ", name, "=", value);
  absl::StrAppend(&out, "\n");
  for (const pugi::xml_node child : node.children()) Canonical(child, out);
}

std::string Canonical(const std::string& text) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(text.c_str()));
  std::string out;
  Canonical(document.child("algo"), out);
  return out;
}

// Two GPUs exchange their halves: what the files of this test are edits of.
constexpr char kExchange[] =
    R"(<algo name="exchange" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="0">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)";

std::string Edited(absl::string_view before, absl::string_view after) {
  const absl::string_view text = kExchange;
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return absl::StrCat(text.substr(0, at), after, text.substr(at + before.size()));
}

absl::Status Refusal(const std::string& text) {
  return ReadMscclAlgorithm(text, "algo.xml").status();
}

TEST(MscclXml, AnExchangeReadsAndWritesItself) {
  ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(kExchange, "exchange"));
  const ChunkProgram& program = read.program;
  EXPECT_EQ(program.kind, ProgramKind::kAllGather);
  EXPECT_EQ(program.chunks, 2);
  EXPECT_FALSE(program.in_place);
  ASSERT_THAT(program.ranks, SizeIs(2));
  ASSERT_THAT(program.ranks[0].blocks, SizeIs(2));
  EXPECT_EQ(program.ranks[0].blocks[0].steps[1].op, ChunkOp::kRecv);
  EXPECT_EQ(program.ranks[0].blocks[0].steps[1].after.block, 1);
  EXPECT_EQ(program.ranks[1].blocks[0].send_peer, 0);
  EXPECT_EQ(read.LineOf(0, 0, 1), " (line 5)");
  EXPECT_THAT(read.warnings, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const std::string written, WriteMscclAlgorithm(read));
  EXPECT_EQ(written, absl::StrReplaceAll(kExchange, {{"\"/>", "\" />"}}));
}

TEST(MscclXml, AttributesThatMayBeAbsentStayAsTheyWere) {
  const std::string text = Edited("inplace=\"0\"",
                                  "inplace=\"0\" outofplace=\"1\" redop=\"sum\" nthreads=\"256\" "
                                  "minBytes=\"0\" maxBytes=\"9216\"");
  ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(text, "exchange"));
  EXPECT_EQ(read.max_bytes, 9216);
  ASSERT_OK_AND_ASSIGN(const std::string written, WriteMscclAlgorithm(read));
  EXPECT_EQ(Canonical(written), Canonical(text));
}

TEST(MscclXml, ANopMayLeaveOutWhatItDoesNotMove) {
  const std::string text = Edited("<step s=\"2\" type=\"cpy\"",
                                  "<step s=\"2\" type=\"nop\" depid=\"-1\" deps=\"-1\" "
                                  "hasdep=\"0\"/><step s=\"3\" type=\"cpy\"");
  ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(text, "exchange"));
  EXPECT_EQ(read.program.ranks[1].blocks[0].steps[2].op, ChunkOp::kNop);
  EXPECT_EQ(read.program.ranks[1].blocks[0].steps[2].source.count, 0);
}

TEST(MscclXml, WhatOnlyMscclRefusesIsAWarning) {
  ASSERT_OK_AND_ASSIGN(
      const MscclAlgorithm read,
      ReadMscclAlgorithm(Edited("nchannels=\"1\"", "nchannels=\"64\""), "exchange"));
  EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("MSCCL has room for 32")));
}

TEST(MscclXml, EveryFileReadsAndWritesItself) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  for (const std::string& name : MscclFiles()) {
    const std::string text = MscclText(name);
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(text, name));
    EXPECT_THAT(read.warnings, IsEmpty());
    ASSERT_OK_AND_ASSIGN(const std::string written, WriteMscclAlgorithm(read));
    EXPECT_EQ(Canonical(written), Canonical(text));
    // Nothing but the program itself is needed to write one that reads the same.
    MscclAlgorithm bare;
    bare.program = read.program;
    ASSERT_OK_AND_ASSIGN(const std::string again, WriteMscclAlgorithm(bare));
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm reread, ReadMscclAlgorithm(again, name));
    ASSERT_OK_AND_ASSIGN(const std::string rewritten, WriteMscclAlgorithm(reread));
    EXPECT_EQ(again, rewritten);
  }
}

// In place one buffer is named, as MSCCL's tools do, whatever the program names.
TEST(MscclXml, ProgramsOfOursAreWrittenAndCheck) {
  int written = 0;
  for (const absl::string_view algorithm : ProgramAlgorithms()) {
    for (int k = 0; k < static_cast<int>(ProgramKind::kCustom); ++k) {
      for (const std::vector<int32_t>& levels :
           std::vector<std::vector<int32_t>>{{8}, {5}, {4, 2}}) {
        ProgramRequest request;
        request.kind = static_cast<ProgramKind>(k);
        request.algorithm = std::string(algorithm);
        request.levels = levels;
        request.channels = 2;
        MscclAlgorithm made;
        absl::StatusOr<ChunkProgram> program = MakeProgram(request);
        if (!program.ok() || program->helpers > 0) continue;
        made.program = *std::move(program);
        SCOPED_TRACE(
            absl::StrCat(algorithm, " ", kProgramKindNames[request.kind], " of ", request.ranks()));
        ASSERT_OK_AND_ASSIGN(const std::string text, WriteMscclAlgorithm(made));
        ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(text, "ours"));
        EXPECT_OK(CheckMscclAlgorithm(read, "ours"));
        ASSERT_OK_AND_ASSIGN(const std::string again, WriteMscclAlgorithm(read));
        EXPECT_EQ(again, text);
        ++written;
      }
    }
  }
  EXPECT_GT(written, 40);
}

TEST(MscclXml, SynthesisedProgramsAreWrittenAndCheck) {
  ASSERT_OK_AND_ASSIGN(const LinkGraph dgx1, LinkGraph::Named("dgx1"));
  for (const ProgramKind kind :
       {ProgramKind::kAllGather, ProgramKind::kReduceScatter, ProgramKind::kAllReduce,
        ProgramKind::kAllToAll, ProgramKind::kBroadcast, ProgramKind::kReduce, ProgramKind::kGather,
        ProgramKind::kScatter}) {
    SCOPED_TRACE(kProgramKindNames[kind]);
    SynthesisRequest request;
    request.kind = kind;
    request.steps = kind == ProgramKind::kAllReduce ? 4 : 2;
    request.rounds = 2 * request.steps;
    request.chunks = 2 - (kind == ProgramKind::kAllToAll ? 1 : 0);
    request.root = kind == ProgramKind::kGather || kind == ProgramKind::kScatter ? 5 : 0;
    MscclAlgorithm made;
    made.program = Synthesise(dgx1, request)->program;
    ASSERT_OK_AND_ASSIGN(const std::string text, WriteMscclAlgorithm(made));
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(text, "found"));
    EXPECT_EQ(read.program.kind, kind);
    EXPECT_EQ(read.program.root, request.root);
    EXPECT_OK(CheckMscclAlgorithm(read, "found"));
  }
}

struct Counts {
  std::map<ChunkOp, int> ops;
  std::map<int32_t, int> chunks_sent;  // by rank
};

Counts CountsOf(const ChunkProgram& program) {
  Counts out;
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    for (const ThreadBlock& block : program.ranks[r].blocks) {
      for (const ChunkStep& step : block.steps) {
        ++out.ops[step.op];
        if (Sends(step.op)) out.chunks_sent[r] += step.source.count;
      }
    }
  }
  return out;
}

// Counts of the programs that msccl-tools wrote: MSCCL-1.
TEST(MscclXml, CountsAreThoseOfTheAlgorithms) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  const auto read = [](const std::string& name) {
    return ReadMscclAlgorithm(MscclText(name), name).value().program;
  };
  const ChunkProgram ring = read("allreduce_a100_ring");
  EXPECT_EQ(ring.chunks, 8);
  Counts counts = CountsOf(ring);
  EXPECT_EQ(counts.ops, (std::map<ChunkOp, int>{{ChunkOp::kSend, 8},
                                                {ChunkOp::kRecvReduceSend, 48},
                                                {ChunkOp::kRecvReduceCopySend, 8},
                                                {ChunkOp::kRecvCopySend, 48},
                                                {ChunkOp::kRecv, 8}}));
  for (const auto& [rank, chunks] : counts.chunks_sent) EXPECT_EQ(chunks, 14) << rank;

  const ChunkProgram pairs = read("allreduce_a100_allpairs");
  EXPECT_EQ(pairs.chunks, 64);
  for (const auto& [rank, chunks] : CountsOf(pairs).chunks_sent) EXPECT_EQ(chunks, 112) << rank;

  const ChunkProgram halving = read("ar_rdh_8");
  EXPECT_EQ(halving.chunks, 8);
  for (const auto& [rank, chunks] : CountsOf(halving).chunks_sent) EXPECT_EQ(chunks, 14) << rank;

  int most = 0;
  for (const auto& [rank, chunks] : CountsOf(read("alltoall_a100_two_step_2x8")).chunks_sent) {
    most = std::max(most, chunks);
  }
  EXPECT_EQ(most, 22);
}

struct Corruption {
  const char* before;
  const char* after;
  const char* message;  // part of it
};

TEST(MscclXml, ACorruptedFileIsRefusedByPlace) {
  const Corruption corruptions[] = {
      {"s=\"1\" type=\"r\"", "s=\"2\" type=\"r\"",
       "line 5: gpu 0, thread block 0, step 1: `s` is 2"},
      {"type=\"r\"", "type=\"x\"", "step 1: `type` cannot be `x`. There are `s`"},
      {"srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\"",
       "srcbuf=\"s\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\"",
       "gpu 0, thread block 0, step 0 (line 4): the source is chunk 0 of buffer `s`, which has 0"},
      {"dstoff=\"1\" cnt=\"1\" depid=\"1\"", "dstoff=\"2\" cnt=\"1\" depid=\"1\"",
       "gpu 0, thread block 0, step 1 (line 5): the destination is chunk 2 of buffer `o`"},
      {"dstoff=\"0\" cnt=\"1\"", "dstoff=\"0\" cnt=\"0\"", "moves no chunk"},
      {"depid=\"1\" deps=\"0\"", "depid=\"3\" deps=\"0\"",
       "waits for thread block 3, and gpu 0 has 2"},
      {"depid=\"1\" deps=\"0\"", "depid=\"1\" deps=\"4\"", "waits for step 4 of thread block 1"},
      {"depid=\"1\" deps=\"0\"", "depid=\"0\" deps=\"1\"", "its own thread block"},
      {"depid=\"1\" deps=\"0\"", "depid=\"1\" deps=\"-1\"", "both name a step"},
      {"hasdep=\"1\"", "hasdep=\"0\"", "(line 8), whose `hasdep` is 0"},
      {"tb id=\"1\"", "tb id=\"2\"", "no thread block 1 comes before 2"},
      {"tb id=\"1\"", "tb id=\"0\"", "line 7: gpu 0: thread block 0 is there twice"},
      {"gpu id=\"1\"", "gpu id=\"7\"", "no gpu 1 comes before 7"},
      {"ngpus=\"2\"", "ngpus=\"3\"", "`ngpus` is 3, and there are 2 <gpu> elements"},
      {"send=\"1\" recv=\"1\"", "send=\"0\" recv=\"1\"",
       "thread block 0: `send` is the gpu itself"},
      {"send=\"1\" recv=\"1\"", "send=\"2\" recv=\"1\"", "`send` is 2; from -1 to 1 is allowed"},
      {"send=\"1\" recv=\"1\"", "send=\"-1\" recv=\"1\"", "no send peer"},
      {"send=\"1\" recv=\"1\"", "send=\"1\" recv=\"-1\"", "no receive peer"},
      {"chan=\"0\"", "chan=\"1\"", "`chan` is 1; from 0 to 0"},
      {"i_chunks=\"1\"", "i_chunks=\"2\"", "gpu 0: `i_chunks` is 2"},
      {"o_chunks=\"2\"", "o_chunks=\"-2\"", "gpu 0: `o_chunks` is -2"},
      {"coll=\"allgather\"", "coll=\"allgathr\"", "Did you mean `allgather`?"},
      {"proto=\"Simple\"", "proto=\"LL64\"", "`proto` cannot be `LL64`"},
      {"inplace=\"0\"", "", "<algo> has no attribute `inplace`"},
      {"cnt=\"1\"", "cnt=\"one\"", "`cnt` is `one`, not an integer"},
      {"send=\"-1\" recv=\"-1\"", "send=\"1\" recv=\"-1\"",
       "thread blocks 0 and 1 both send to gpu 1"},
      {"srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\"",
       "srcbuf=\"s\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\"",
       "gpu 0, thread block 0, step 1 (line 5) receives from `s` 0, and gpu 1, thread block 0, "
       "step 0 (line 13) sends `i` 0"},
      {"      <step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" "
       "cnt=\"1\" "
       "depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>\n",
       "", "line 7: gpu 0, thread block 1: there is no step 0"},
      {"<algo", "<algorithm", "not XML"},
  };
  for (const Corruption& corruption : corruptions) {
    SCOPED_TRACE(absl::StrCat(corruption.before, " -> ", corruption.after));
    const absl::Status status = Refusal(Edited(corruption.before, corruption.after));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("`algo.xml`: "), HasSubstr(corruption.message))));
  }
}

TEST(MscclXml, ASendWithoutReceiveIsRefusedByPlace) {
  std::string text = Edited(
      "      <step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\" "
      "cnt=\"1\" "
      "depid=\"1\" deps=\"0\" hasdep=\"0\"/>\n",
      "");
  EXPECT_THAT(
      Refusal(text).message(),
      HasSubstr("gpu 1, thread block 0, step 0 (line 12) sends to gpu 0 on channel 0, where "
                "nothing receives it: 1 sends against 0 receives"));
}

TEST(MscclXml, AnyBytesGetAnAnswer) {
  EXPECT_THAT(Refusal("").message(), HasSubstr("`algo.xml`: "));
  EXPECT_THAT(Refusal("<system/>").message(), HasSubstr("has no <algo> element"));
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "<a>";
  EXPECT_FALSE(Refusal(deep).ok());
  const std::string whole = kExchange;
  for (size_t length = 0; length < whole.size() - 2; length += 7) {
    EXPECT_FALSE(Refusal(whole.substr(0, length)).ok()) << length;
  }
}

}  // namespace
}  // namespace plancast
