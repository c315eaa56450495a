#include "interop/msccl/msccl_check.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/msccl/interpreter.h"
#include "tests/interop/msccl/msccl_files.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

absl::Status ReadAndCheck(const std::string& text) {
  const absl::StatusOr<MscclAlgorithm> read = ReadMscclAlgorithm(text, "algo.xml");
  return read.ok() ? CheckMscclAlgorithm(*read, "algo.xml") : read.status();
}

TEST(MscclCheck, EveryFileComputesItsCollective) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  for (const std::string& name : MscclFiles()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm read, ReadMscclAlgorithm(MscclText(name), name));
    EXPECT_OK(CheckMscclAlgorithm(read, name));
    EXPECT_TRUE(ComputesItsCollective(read.program, TestSeed(1), 3));
  }
}

TEST(MscclCheck, ErrorsNameTheLine) {
  // Adds its own chunk twice.
  const std::string text =
      R"(<algo name="twice" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="re" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>)";
  EXPECT_THAT(ReadAndCheck(text).message(),
              HasSubstr("`algo.xml`: gpu 1, thread block 0, step 1 (line 11)"));
}

struct Place {
  size_t rank, block, step;
};

ChunkStep& At(MscclAlgorithm& algorithm, const Place& at) {
  return algorithm.program.ranks[at.rank].blocks[at.block].steps[at.step];
}

// Takes a step out, and has the others wait for what they did before.
void Remove(MscclAlgorithm& algorithm, const Place& at) {
  RankProgram& rank = algorithm.program.ranks[at.rank];
  auto& steps = rank.blocks[at.block].steps;
  auto& notes = algorithm.notes[at.rank][at.block];
  steps.erase(steps.begin() + static_cast<int64_t>(at.step));
  notes.erase(notes.begin() + static_cast<int64_t>(at.step));
  for (ThreadBlock& block : rank.blocks) {
    for (ChunkStep& step : block.steps) {
      if (step.after.block != static_cast<int32_t>(at.block)) continue;
      if (step.after.step >= static_cast<int32_t>(at.step)) --step.after.step;
      if (step.after.step < 0) step.after = {};
    }
  }
}

void Repeat(MscclAlgorithm& algorithm, const Place& at) {
  auto& steps = algorithm.program.ranks[at.rank].blocks[at.block].steps;
  auto& notes = algorithm.notes[at.rank][at.block];
  steps.insert(steps.begin() + static_cast<int64_t>(at.step), ChunkStep(steps[at.step]));
  notes.insert(notes.begin() + static_cast<int64_t>(at.step), MscclStepNote(notes[at.step]));
  for (ThreadBlock& block : algorithm.program.ranks[at.rank].blocks) {
    for (ChunkStep& step : block.steps) {
      if (step.after.block == static_cast<int32_t>(at.block) &&
          step.after.step >= static_cast<int32_t>(at.step)) {
        ++step.after.step;
      }
    }
  }
}

ChunkBuffer Next(ChunkBuffer buffer) {
  return static_cast<ChunkBuffer>((static_cast<int>(buffer) + 1) % 3);
}

using Mutation = std::function<bool(MscclAlgorithm&, const Place&)>;  // false: does not apply

const std::vector<std::pair<std::string, Mutation>>& Mutations() {
  using A = MscclAlgorithm;
  const auto wait_for_waiter = [](A& a, const Place& at) {
    // A step that something waits for waits for it in turn.
    RankProgram& rank = a.program.ranks[at.rank];
    const ChunkDependency after = At(a, at).after;
    if (after.block < 0) return false;
    rank.blocks[after.block].steps[after.step].after = {static_cast<int32_t>(at.block),
                                                        static_cast<int32_t>(at.step)};
    return true;
  };
  static const auto* const mutations = new std::vector<std::pair<std::string, Mutation>>{
      {"missing step", [](A& a, const Place& at) { return Remove(a, at), true; }},
      {"step twice", [](A& a, const Place& at) { return Repeat(a, at), true; }},
      {"wrong source buffer",
       [](A& a, const Place& at) {
         return At(a, at).source.buffer = Next(At(a, at).source.buffer), true;
       }},
      {"wrong target buffer",
       [](A& a, const Place& at) {
         return At(a, at).target.buffer = Next(At(a, at).target.buffer), true;
       }},
      {"source one on", [](A& a, const Place& at) { return ++At(a, at).source.first, true; }},
      {"target one on", [](A& a, const Place& at) { return ++At(a, at).target.first, true; }},
      {"target one back", [](A& a, const Place& at) { return --At(a, at).target.first >= 0; }},
      {"one chunk more",
       [](A& a, const Place& at) {
         return ++At(a, at).source.count, ++At(a, at).target.count, true;
       }},
      {"one chunk less",
       [](A& a, const Place& at) {
         return --At(a, at).target.count, --At(a, at).source.count > 0;
       }},
      {"no dependency",
       [](A& a, const Place& at) {
         if (At(a, at).after.block < 0) return false;
         return At(a, at).after = {}, true;
       }},
      {"dependency cycle", wait_for_waiter},
      {"no sum",
       [](A& a, const Place& at) {
         ChunkStep& step = At(a, at);
         if (!Reduces(step.op)) return false;
         step.op = step.op == ChunkOp::kReduce           ? ChunkOp::kCopy
                   : step.op == ChunkOp::kRecvReduceCopy ? ChunkOp::kRecv
                                                         : ChunkOp::kRecvCopySend;
         return true;
       }},
      {"needless sum",
       [](A& a, const Place& at) {
         ChunkStep& step = At(a, at);
         if (step.op == ChunkOp::kRecv) {
           step.op = ChunkOp::kRecvReduceCopy;
           step.source = step.target;
         } else if (step.op == ChunkOp::kRecvCopySend) {
           step.op = ChunkOp::kRecvReduceCopySend;
           step.source = step.target;
         } else if (step.op == ChunkOp::kCopy) {
           step.op = ChunkOp::kReduce;
         } else {
           return false;
         }
         return true;
       }},
      {"no send peer",
       [](A& a, const Place& at) {
         int32_t& peer = a.program.ranks[at.rank].blocks[at.block].send_peer;
         return std::exchange(peer, -1) >= 0;
       }},
      {"no receive peer",
       [](A& a, const Place& at) {
         int32_t& peer = a.program.ranks[at.rank].blocks[at.block].recv_peer;
         return std::exchange(peer, -1) >= 0;
       }},
      {"wrong receive peer",
       [](A& a, const Place& at) {
         int32_t& peer = a.program.ranks[at.rank].blocks[at.block].recv_peer;
         if (peer < 0) return false;
         do {
           peer = (peer + 1) % a.program.num_ranks();
         } while (peer == static_cast<int32_t>(at.rank));
         return true;
       }},
  };
  return *mutations;
}

// Every file, broken in every way at many of its steps: refused by place, unless
// it still computes its collective, which running it on numbers has to show.
TEST(MscclCheck, NoCorruptionPasses) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  const uint64_t seed = TestSeed(20261122);
  int refused = 0, harmless = 0;
  for (const std::string& name : MscclFiles()) {
    ASSERT_OK_AND_ASSIGN(const MscclAlgorithm original, ReadMscclAlgorithm(MscclText(name), name));
    std::vector<Place> places;
    for (size_t r = 0; r < original.program.ranks.size(); ++r) {
      for (size_t b = 0; b < original.program.ranks[r].blocks.size(); ++b) {
        const size_t steps = original.program.ranks[r].blocks[b].steps.size();
        for (size_t s = 0; s < steps; ++s) places.push_back({r, b, s});
      }
    }
    const size_t stride = places.size() / 30 + 1;
    for (size_t i = 0; i < places.size(); i += stride) {
      for (const auto& [what, mutate] : Mutations()) {
        MscclAlgorithm mutant = original;
        if (!mutate(mutant, places[i])) continue;
        SCOPED_TRACE(absl::StrCat(name, ", ", what, ", gpu ", places[i].rank, ", thread block ",
                                  places[i].block, ", step ", places[i].step));
        const absl::StatusOr<std::string> text = WriteMscclAlgorithm(mutant);
        ASSERT_OK(text);
        const absl::Status status = ReadAndCheck(*text);
        if (status.ok()) {
          ++harmless;
          EXPECT_TRUE(ComputesItsCollective(mutant.program, seed, 4));
          continue;
        }
        ++refused;
        const absl::string_view message = status.message();
        EXPECT_TRUE(absl::StrContains(message, "gpu ")) << message;
        const bool named = absl::StrContains(message, ", thread block ") ||
                           absl::StrContains(message, ": thread blocks ");
        EXPECT_TRUE(named || absl::StrContains(message, "no step of gpu")) << message;
      }
    }
  }
  EXPECT_GT(refused, 1500);
  EXPECT_GT(harmless, 50);
}

TEST(MscclCheck, AStepThatNobodyHearsOfIsRefused) {
  if (!HasMscclFiles()) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  for (const std::string& name : MscclFiles()) {
    const std::string text = MscclText(name), published = "hasdep=\"1\"";
    for (size_t at = text.find(published); at != std::string::npos;
         at = text.find(published, at + 1)) {
      std::string mutant = text;
      mutant[at + published.size() - 2] = '0';
      EXPECT_THAT(ReadAndCheck(mutant).message(), HasSubstr("whose `hasdep` is 0")) << name;
    }
  }
}

}  // namespace
}  // namespace plancast
