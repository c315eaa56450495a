// Any legal split of every op of a transformer compiles: random factors of all
// ops cut over two axes at once.

#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {
namespace {

constexpr uint32_t kFirstSeed = 1, kLastSeed = 250;
constexpr int64_t kDp = 2, kTp = 4;

TransformerConfig Draw(uint32_t seed) {
  TransformerConfig config;
  config.name = "small";
  config.layers = 2;
  config.hidden = 64;
  config.heads = 8;
  config.kv_heads = seed % 2 ? 8 : 4;
  config.head_dim = 8;
  config.ffn = 128;
  config.vocab = 256;
  config.seq = 16;
  config.max_positions = 16;
  config.mlp = seed % 3 ? Mlp::kGelu : Mlp::kSwiglu;
  config.norm = seed % 5 ? Norm::kLayerNorm : Norm::kRmsNorm;
  config.position = seed % 3 ? Position::kLearned : Position::kRope;
  config.parallel_residual = seed % 7 == 0;
  config.qkv_bias = seed % 4 == 0;
  config.out_bias = seed % 2 == 0;
  return config;
}

// Cuts factors of every op over dp and tp by chance, tp in two levels if `levels`. Returns into how
// many parts each op is cut, by its path.
std::map<std::string, int64_t> CutByChance(std::mt19937& random, bool levels, PlanUnderTest* plan) {
  std::map<std::string, int64_t> parts;
  const ModelGraph& graph = plan->graph();
  for (const Segment& segment : graph.segments) {
    for (const OpNode& op : graph.bodies[segment.body].ops) {
      const std::string path =
          absl::StrCat(segment.path, segment.repeat > 1 ? ".*." : ".", op.name);
      std::vector<int64_t> extents;
      for (int dim : op.factor_dims) {
        extents.push_back(graph.dims[dim].name == "batch" ? kDp * kTp : graph.dims[dim].size);
      }
      parts[path] = 1;
      for (const auto& [axis, size] : {std::pair("dp", kDp), std::pair("tp", kTp)}) {
        std::vector<std::string> entries;
        const bool two = levels && size == kTp;
        const int64_t ranks = two ? size / 2 : size;
        for (int level = 0; level < (two ? 2 : 1); ++level) {
          const size_t factor = random() % (extents.size() + 1);
          const bool cut = factor < extents.size() && extents[factor] % ranks == 0;
          const std::string number = two ? absl::StrCat("/", ranks) : "";
          if (cut || two) {
            entries.push_back((cut ? "." + op.rule->factors()[factor] : "") + number);
          }
          if (!cut) continue;
          extents[factor] /= ranks;
          parts[path] *= ranks;
        }
        plan->Split(path, axis, entries);
      }
    }
  }
  return parts;
}

// Products of the forward and backward passes, by the op's path.
std::map<std::string, double> Flops(const ExecutionGraph& graph) {
  std::map<std::string, double> flops;
  for (const Block& block : graph.blocks) {
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm) {
        flops[block.name + " " + block.label[t]] += kernel.flops;
      }
    }
  }
  return flops;
}

void ExpectBalanced(const ExecutionGraph& graph) {
  int64_t live = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
      live += event.delta * instance.layer_count;
    }
  }
  EXPECT_EQ(live, 0);
}

void CheckRandomPlans(bool levels) {
  std::cout << "seeds " << kFirstSeed << " to " << kLastSeed << "\n";
  int64_t checked = 0;
  for (uint32_t seed = kFirstSeed; seed <= kLastSeed; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const bool flash = seed % 2 == 0;
    PlanUnderTest plan = PlanUnderTest::Of(Draw(seed), flash, seed % 3 == 0);
    plan.Dp(kDp).Tp(kTp).MicroBatches(kTp, 1);
    plan.ByHand();
    const std::map<std::string, int64_t> parts = CutByChance(random, levels, &plan);
    const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectBalanced(*graph);

    PlanUnderTest whole = PlanUnderTest::Of(Draw(seed), flash, seed % 3 == 0);
    whole.MicroBatches(kDp * kTp, 1);
    const absl::StatusOr<ExecutionGraph> one = whole.Compile();
    ASSERT_TRUE(one.ok()) << one.status();
    const std::map<std::string, double> cut = Flops(*graph), uncut = Flops(*one);
    for (const auto& [path, count] : parts) {
      const std::string op =
          path.substr(path.find_last_of('*') == std::string::npos ? path.find('.') + 1
                                                                  : path.find_last_of('*') + 2);
      for (const char* block : {"layer.F ", "head.F "}) {
        const auto found = uncut.find(block + op);
        if (found == uncut.end()) continue;
        const double sum = cut.at(block + op) * static_cast<double>(count);
        if (op == "attn.qkv") {
          // Three products; a factor that only some have leaves the others whole.
          EXPECT_GE(sum, found->second) << path;
        } else {
          EXPECT_DOUBLE_EQ(sum, found->second) << path;
        }
        ++checked;
      }
    }
    if (testing::Test::HasFailure()) break;
  }
  std::cout << checked << " products checked\n";
  EXPECT_GT(checked, 500);
}

TEST(RandomSplitTest, AnyLegalSplitOfAnyOpCompilesAndConservesWork) {
  CheckRandomPlans(/*levels=*/false);
}

TEST(RandomSplitTest, SoDoesAnyHierarchy) { CheckRandomPlans(/*levels=*/true); }

}  // namespace
}  // namespace plancast
