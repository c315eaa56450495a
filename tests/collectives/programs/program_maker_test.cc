#include "collectives/programs/program_maker.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/programs/check/buffers.h"
#include "collectives/programs/check/check.h"
#include "collectives/programs/double_tree.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr ProgramKind kKinds[] = {
    ProgramKind::kAllReduce, ProgramKind::kAllGather, ProgramKind::kReduceScatter,
    ProgramKind::kAllToAll,  ProgramKind::kBroadcast, ProgramKind::kReduce,
    ProgramKind::kGather,    ProgramKind::kScatter,   ProgramKind::kSendRecv};

ProgramRequest Request(const std::string& algorithm, ProgramKind kind, std::vector<int32_t> levels,
                       int32_t channels = 1) {
  ProgramRequest request;
  request.algorithm = algorithm;
  request.kind = kind;
  request.levels = std::move(levels);
  request.channels = channels;
  return request;
}

// What a program asks of its ranks.
struct Counts {
  std::map<ChunkOp, int> ops;
  int chunk_sends_of_busiest = 0;
};
Counts CountsOf(const ChunkProgram& program) {
  Counts counts;
  for (const RankProgram& rank : program.ranks) {
    int sends = 0;
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps) {
        ++counts.ops[step.op];
        if (Sends(step.op)) sends += MessageChunks(step);
      }
    }
    counts.chunk_sends_of_busiest = std::max(counts.chunk_sends_of_busiest, sends);
  }
  return counts;
}

// Messages on the longest way through a program, each one step; -1 if it hangs.
int Depth(const ChunkProgram& program) {
  struct At {
    int32_t rank, block, step;
  };
  std::map<std::vector<int32_t>, std::vector<int>> sent;  // (from, to, channel)
  std::vector<std::vector<std::vector<int>>> done(program.ranks.size());
  for (size_t r = 0; r < program.ranks.size(); ++r) done[r].resize(program.ranks[r].blocks.size());
  std::map<std::vector<int32_t>, size_t> received;
  int depth = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t r = 0; r < program.num_ranks(); ++r) {
      for (size_t b = 0; b < program.ranks[r].blocks.size(); ++b) {
        const ThreadBlock& block = program.ranks[r].blocks[b];
        std::vector<int>& mine = done[r][b];
        while (mine.size() < block.steps.size()) {
          const ChunkStep& step = block.steps[mine.size()];
          int level = mine.empty() ? 0 : mine.back();
          if (step.after.block >= 0) {
            const std::vector<int>& other = done[r][step.after.block];
            if (other.size() <= static_cast<size_t>(step.after.step)) break;
            level = std::max(level, other[step.after.step]);
          }
          if (Receives(step.op)) {
            const std::vector<int32_t> key = {block.recv_peer, r, block.channel};
            if (sent[key].size() <= received[key]) break;
            level = std::max(level, sent[key][received[key]++] + 1);
          }
          if (Sends(step.op)) sent[{r, block.send_peer, block.channel}].push_back(level);
          mine.push_back(level);
          depth = std::max(depth, level);
          moved = true;
        }
      }
    }
  }
  for (size_t r = 0; r < done.size(); ++r) {
    for (size_t b = 0; b < done[r].size(); ++b) {
      if (done[r][b].size() != program.ranks[r].blocks[b].steps.size()) return -1;
    }
  }
  return depth;
}

TEST(ProgramMakerTest, EveryProgramDoesWhatItsKindSays) {
  const std::vector<std::vector<int32_t>> shapes = {
      {1},    {2},    {3},    {4},    {5},    {7},    {8},    {12},      {2, 2},
      {1, 4}, {4, 1}, {3, 2}, {2, 5}, {4, 4}, {8, 3}, {6, 2}, {2, 3, 2}, {4, 2, 3}};
  std::map<std::string, int> made;
  for (const absl::string_view algorithm : ProgramAlgorithms()) {
    for (const ProgramKind kind : kKinds) {
      for (const std::vector<int32_t>& levels : shapes) {
        for (const int32_t channels : {1, 2, 3}) {
          ProgramRequest request = Request(std::string(algorithm), kind, levels, channels);
          request.root = request.ranks() / 3;
          request.receiver = request.ranks() - 1;
          request.servers = 3;
          const absl::StatusOr<ChunkProgram> program = MakeProgram(request);
          if (!program.ok()) {
            EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
            continue;
          }
          ++made[absl::StrCat(algorithm, " ", kProgramKindNames[kind])];
          EXPECT_OK(CheckChunkProgram(*program))
              << algorithm << " " << kProgramKindNames[kind] << " over "
              << absl::StrJoin(levels, "x") << " with " << channels << " channels";
        }
      }
    }
  }
  for (const char* all_of_them : {"ring all_reduce",
                                  "ring all_gather",
                                  "ring reduce_scatter",
                                  "ring broadcast",
                                  "ring reduce",
                                  "tree all_reduce",
                                  "tree broadcast",
                                  "tree reduce",
                                  "halving_doubling all_reduce",
                                  "hierarchical all_reduce",
                                  "hierarchical all_gather",
                                  "hierarchical reduce_scatter",
                                  "direct all_to_all",
                                  "direct gather",
                                  "direct scatter",
                                  "direct send_recv",
                                  "direct all_reduce",
                                  "pat all_gather",
                                  "pat reduce_scatter",
                                  "parameter_server all_reduce",
                                  "two_step all_to_all"}) {
    EXPECT_EQ(made[all_of_them], static_cast<int>(3 * shapes.size())) << all_of_them;
  }
  EXPECT_GT(made["nvls all_reduce"], 0);
  EXPECT_GT(made["nvls_tree all_reduce"], 0);
  EXPECT_GT(made["halving_doubling all_gather"], 0);
}

// The counts of msccl-tools' programs.
TEST(ProgramMakerTest, CountsAreThoseOfMscclTools) {
  Counts ring = CountsOf(*MakeProgram(Request("ring", ProgramKind::kAllReduce, {8})));
  EXPECT_EQ(ring.ops[ChunkOp::kSend], 8);
  EXPECT_EQ(ring.ops[ChunkOp::kRecvReduceSend], 48);
  EXPECT_EQ(ring.ops[ChunkOp::kRecvReduceCopySend], 8);
  EXPECT_EQ(ring.ops[ChunkOp::kRecvCopySend], 48);
  EXPECT_EQ(ring.ops[ChunkOp::kRecv], 8);
  EXPECT_EQ(ring.chunk_sends_of_busiest, 14);

  // Of S/64 with eight channels.
  const ChunkProgram pairs = *MakeProgram(Request("direct", ProgramKind::kAllReduce, {8}, 8));
  EXPECT_EQ(pairs.chunks, 64);
  EXPECT_EQ(CountsOf(pairs).chunk_sends_of_busiest, 112);
  EXPECT_EQ(Depth(pairs), 2);

  const ChunkProgram halving =
      *MakeProgram(Request("halving_doubling", ProgramKind::kAllReduce, {8}));
  EXPECT_EQ(halving.chunks, 8);
  EXPECT_EQ(CountsOf(halving).chunk_sends_of_busiest, 14);
  EXPECT_EQ(Depth(halving), 6);

  const ChunkProgram two_step = *MakeProgram(Request("two_step", ProgramKind::kAllToAll, {8, 2}));
  EXPECT_EQ(CountsOf(two_step).chunk_sends_of_busiest, 22);
  EXPECT_EQ(Depth(two_step), 2);
}

TEST(ProgramMakerTest, TakeAsManyStepsAsTheirFormulasSay) {
  for (const int32_t n : {2, 3, 8, 13}) {
    EXPECT_EQ(Depth(*MakeProgram(Request("ring", ProgramKind::kAllReduce, {n}))), 2 * (n - 1));
    EXPECT_EQ(Depth(*MakeProgram(Request("ring", ProgramKind::kAllGather, {n}))), n - 1);
    EXPECT_EQ(Depth(*MakeProgram(Request("direct", ProgramKind::kAllToAll, {n}))), 1);
    int32_t rounds = 0;
    while ((1 << rounds) < n) ++rounds;
    EXPECT_EQ(Depth(*MakeProgram(Request("pat", ProgramKind::kAllGather, {n}))), rounds);
    EXPECT_EQ(Depth(*MakeProgram(Request("pat", ProgramKind::kReduceScatter, {n}))), rounds);
    EXPECT_EQ(Depth(*MakeProgram(Request("tree", ProgramKind::kAllReduce, {1, n}, 2))), 2 * rounds);
  }
  EXPECT_EQ(Depth(*MakeProgram(Request("hierarchical", ProgramKind::kAllReduce, {4, 3}))), 10);
  EXPECT_EQ(Depth(*MakeProgram(Request("nvls", ProgramKind::kAllReduce, {8}))), 4);
}

// Per byte of the buffer all_reduce cannot send less than 2 (n - 1) / n; a rank of a
// double tree sends each half at most twice.
TEST(ProgramMakerTest, RanksSendWhatTheAlgorithmHasTo) {
  for (const int32_t n : {2, 4, 8, 16}) {
    for (const char* algorithm : {"ring", "direct", "halving_doubling"}) {
      const ChunkProgram program =
          *MakeProgram(Request(algorithm, ProgramKind::kAllReduce, {n}, 2));
      EXPECT_EQ(CountsOf(program).chunk_sends_of_busiest * n, 2 * (n - 1) * program.chunks);
    }
    const ChunkProgram tree = *MakeProgram(Request("tree", ProgramKind::kAllReduce, {1, n}, 2));
    for (const RankProgram& rank : tree.ranks) {
      int sends = 0, receives = 0;
      for (const ThreadBlock& block : rank.blocks) {
        for (const ChunkStep& step : block.steps) {
          sends += Sends(step.op);
          receives += Receives(step.op);
        }
      }
      EXPECT_LE(sends, 2 * tree.chunks);  // both phases
      EXPECT_LE(receives, 2 * tree.chunks);
    }
  }
}

// Double binary trees, as NCCL 2.4 introduced them.
TEST(DoubleTreeTest, BothTreesSpanAndShareTheWork) {
  std::vector<int32_t> sizes(400);
  std::iota(sizes.begin(), sizes.end(), 2);
  for (const int32_t n : {512, 1000, 1023, 1024, 1025, 4095, 4096}) sizes.push_back(n);
  for (const int32_t n : sizes) {
    int32_t depth = 0;
    while ((int64_t{1} << depth) < n) ++depth;
    std::vector<int> children(n), inner_of(n), leaf_of(n);
    for (int32_t tree = 0; tree < 2; ++tree) {
      int roots = 0, deepest = 0;
      for (int32_t r = 0; r < n; ++r) {
        const TreeNode node = DoubleTreeNode(n, r, tree);
        int32_t hops = 0;
        for (int32_t at = r; DoubleTreeNode(n, at, tree).up >= 0; ++hops) {
          at = DoubleTreeNode(n, at, tree).up;
          ASSERT_LE(hops, depth);
        }
        deepest = std::max(deepest, hops);
        roots += node.up < 0;
        int own = 0;
        for (const int32_t down : node.down) {
          if (down < 0) continue;
          ++own;
          EXPECT_EQ(DoubleTreeNode(n, down, tree).up, r);
        }
        if (node.up >= 0) {
          const TreeNode up = DoubleTreeNode(n, node.up, tree);
          EXPECT_TRUE(up.down[0] == r || up.down[1] == r);
        }
        children[r] += own;
        (own > 0 ? inner_of : leaf_of)[r] += 1;
      }
      EXPECT_EQ(roots, 1);
      EXPECT_EQ(deepest, depth) << n << " " << tree;
    }
    int inner_in_both = 0;
    for (int32_t r = 0; r < n; ++r) {
      EXPECT_LE(children[r], 2) << n << " " << r;
      if (n > 2) {
        EXPECT_LT(leaf_of[r], 2) << n << " " << r;
      }
      inner_in_both += inner_of[r] == 2;
    }
    EXPECT_EQ(inner_in_both, n % 2) << n;
  }
}

TEST(ProgramMakerTest, RefusesWhatItDoesNotDo) {
  const auto refuses = [](const ProgramRequest& request, const char* text) {
    EXPECT_THAT(MakerOf(request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refuses(Request("rign", ProgramKind::kAllReduce, {4}), "Did you mean `ring`?");
  refuses(Request("pat", ProgramKind::kAllReduce, {4}), "`pat` does not do all_reduce over 4");
  refuses(Request("halving_doubling", ProgramKind::kAllGather, {6}), "Choose `pat`");
  refuses(Request("ring", ProgramKind::kAllReduce, {}), "name one level at least");
  refuses(Request("ring", ProgramKind::kAllReduce, {4, 0}), "levels have to be positive");
  refuses(Request("ring", ProgramKind::kAllReduce, {4}, 1025), "there may be 1 to 1024");
  ProgramRequest request = Request("ring", ProgramKind::kBroadcast, {4});
  request.root = 4;
  refuses(request, "there are ranks 0 to 3");
}

}  // namespace
}  // namespace plancast
