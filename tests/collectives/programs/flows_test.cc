#include "collectives/programs/flows.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/programs/program_maker.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

std::vector<Flow> Flows(const std::string& algorithm, ProgramKind kind, std::vector<int32_t> levels,
                        int64_t bytes, int32_t channels = 1) {
  ProgramRequest request;
  request.algorithm = algorithm;
  request.kind = kind;
  request.levels = std::move(levels);
  request.channels = channels;
  absl::StatusOr<std::vector<Flow>> flows = FlowsOf(*MakeProgram(request), bytes);
  EXPECT_OK(flows.status());
  return *std::move(flows);
}

int64_t Bytes(const std::vector<Flow>& flows) {
  int64_t bytes = 0;
  for (const Flow& flow : flows) bytes += flow.bytes;
  return bytes;
}

TEST(FlowsTest, ProgramsTooLargeToWriteOutAreRefused) {
  ProgramRequest request;
  request.algorithm = "ring";
  request.kind = ProgramKind::kAllReduce;
  request.levels = {1024};
  request.channels = 64;
  EXPECT_THAT(MakeProgram(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 4000000 steps, the most that is written out. Take "
                                 "fewer GPUs or fewer channels.")));
  request.channels = 1;
  ASSERT_OK_AND_ASSIGN(const ChunkProgram ring, MakeProgram(request));
  EXPECT_THAT(FlowsOf(ring, kMiB), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("2095104 messages; at most 1000000")));
}

TEST(FlowsTest, ARingOfEight) {
  const std::vector<Flow> flows = Flows("ring", ProgramKind::kAllReduce, {8}, 4 * kMiB);
  ASSERT_EQ(flows.size(), 112u);
  EXPECT_EQ(Bytes(flows), 56 * kMiB);
  std::map<int32_t, int> of_step, of_source;
  for (const Flow& flow : flows) {
    EXPECT_EQ(flow.bytes, 512 * 1024);
    EXPECT_EQ(flow.dst, (flow.src + 1) % 8);
    EXPECT_EQ(flow.channel, 0);
    ++of_step[flow.step];
    ++of_source[flow.src];
    // What the rank before sent in the step before, and what it sent itself.
    EXPECT_EQ(flow.deps.size(), flow.step == 0 ? 0u : 2u);
    for (const int64_t dep : flow.deps) {
      EXPECT_LT(dep, flow.id);
      EXPECT_EQ(flows[dep].step, flow.step - 1);
      EXPECT_TRUE(flows[dep].src == flow.src || flows[dep].dst == flow.src);
    }
  }
  EXPECT_EQ(of_step.size(), 14u);
  for (const auto& [step, count] : of_step) EXPECT_EQ(count, 8) << step;
  // As many as the chunk sends of MSCCL's ring (SIMCCL-2).
  for (const auto& [source, count] : of_source) EXPECT_EQ(count, 14) << source;
}

TEST(FlowsTest, ChannelsDoNotChangeSums) {
  for (const int64_t bytes : {4 * kMiB, int64_t{1000003}, int64_t{5}}) {
    for (const auto& [algorithm, kind] : std::vector<std::pair<std::string, ProgramKind>>{
             {"ring", ProgramKind::kAllReduce},
             {"ring", ProgramKind::kReduceScatter},
             {"direct", ProgramKind::kAllToAll},
             {"two_step", ProgramKind::kAllToAll},
             {"hierarchical", ProgramKind::kAllGather},
             {"halving_doubling", ProgramKind::kAllReduce}}) {
      const int64_t once = Bytes(Flows(algorithm, kind, {4, 2}, bytes));
      for (const int32_t channels : {2, 3, 7}) {
        EXPECT_EQ(Bytes(Flows(algorithm, kind, {4, 2}, bytes, channels)), once)
            << algorithm << " " << bytes;
      }
    }
  }
}

// Ranks know more and more of each other as flows arrive, in the order of their ids;
// in the end everyone has heard of everyone, and nobody sends before it may.
TEST(FlowsTest, FollowTheirDependencies) {
  for (const char* algorithm : {"ring", "tree", "direct", "halving_doubling", "hierarchical"}) {
    const std::vector<Flow> flows = Flows(algorithm, ProgramKind::kAllReduce, {4, 3}, 12 * kMiB, 2);
    std::vector<std::set<int32_t>> known(12);
    for (int32_t r = 0; r < 12; ++r) known[r] = {r};
    std::vector<std::set<int32_t>> carried(flows.size());
    for (const Flow& flow : flows) {
      std::set<int32_t> all = {flow.src};
      for (const int64_t dep : flow.deps) {
        ASSERT_LT(dep, flow.id);
        ASSERT_LT(flows[dep].step, flow.step);
        all.insert(carried[dep].begin(), carried[dep].end());
      }
      carried[flow.id] = all;
      known[flow.dst].insert(all.begin(), all.end());
    }
    for (int32_t r = 0; r < 12; ++r) EXPECT_EQ(known[r].size(), 12u) << algorithm << " " << r;
  }
}

TEST(FlowsTest, Csv) {
  const std::string csv = FlowsCsv(Flows("ring", ProgramKind::kAllReduce, {2}, 1024));
  EXPECT_EQ(csv,
            "id,src,dst,bytes,channel,step,deps\n"
            "0,0,1,512,0,0,\n"
            "1,1,0,512,0,0,\n"
            "2,0,1,512,0,1,0 1\n"
            "3,1,0,512,0,1,0 1\n");
}

TEST(FlowsTest, RefusesWhatHangs) {
  ChunkProgram p;
  p.kind = ProgramKind::kCustom;
  for (int32_t r = 0; r < 2; ++r) {
    ThreadBlock block{1 - r, 1 - r, 0, {}};
    block.steps.push_back({ChunkOp::kRecv, {}, {}, {}});
    block.steps.push_back({ChunkOp::kSend, {}, {}, {}});
    p.ranks.push_back({1, 1, 0, {block}});
  }
  EXPECT_THAT(FlowsOf(p, 8), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("gpu 0, thread block 0, step 0 never starts")));
  EXPECT_THAT(FlowsOf(p, -1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
}

}  // namespace
}  // namespace plancast
