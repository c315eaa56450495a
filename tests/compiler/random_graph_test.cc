// Random plans over random graphs of all shipped ops: any split compiles, and memory comes back.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/rule/op_rule.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/random_graph.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr size_t kRulesPerGraph = 4;
constexpr int kRounds = 12;  // each op is in as many graphs
constexpr int kCutRounds = 6;

// Cuts factors of every op over dp and tp by chance.
void CutByChance(Dice& dice, PlanUnderTest* plan) {
  const ModelGraph& graph = plan->graph();
  const PlanOptions& options = plan->options();
  for (const Segment& segment : graph.segments) {
    for (const OpNode& op : graph.bodies[segment.body].ops) {
      std::vector<int64_t> extents;
      for (int dim : op.factor_dims) {
        extents.push_back(graph.dims[dim].name == "batch" ? options.micro_batch * options.dp
                                                          : graph.dims[dim].size);
      }
      for (const auto& [axis, size] : {std::pair("dp", options.dp), std::pair("tp", options.tp)}) {
        const auto factor =
            static_cast<size_t>(dice.Below(static_cast<int64_t>(extents.size()) + 1));
        bool cut = factor < extents.size() && op.rule->may_cut(static_cast<int>(factor));
        // Tied factors are cut together.
        for (size_t f = 0; f < extents.size() && cut; ++f) {
          cut = op.rule->ties()[f] != op.rule->ties()[factor] || extents[f] % size == 0;
        }
        for (size_t f = 0; f < extents.size() && cut; ++f) {
          if (op.rule->ties()[f] == op.rule->ties()[factor]) extents[f] /= size;
        }
        plan->Split(absl::StrCat(ModelGraph::PathOf(segment), ".", op.name), axis,
                    cut ? std::vector<std::string>{"." + op.rule->factors()[factor]}
                        : std::vector<std::string>());
      }
    }
  }
}

void ExpectBalancedMemory(const ExecutionGraph& graph) {
  for (const Program& program : graph.programs) {
    int64_t live = 0;
    for (const Instance& instance : program.instances) {
      for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
        live += event.delta * instance.layer_count;
      }
    }
    EXPECT_EQ(live, 0);
  }
}

// Of random graphs, as they are or with stages that begin anywhere.
void CompileAll(int first_round, int rounds, bool cut) {
  std::vector<std::string> rules = TrainableRules();
  int plans = 0;
  for (int round = first_round; round < first_round + rounds; ++round) {
    std::mt19937 order(static_cast<uint32_t>(TestSeed(100 + round)));
    std::shuffle(rules.begin(), rules.end(), order);
    for (size_t first = 0; first < rules.size(); first += kRulesPerGraph) {
      const std::vector<std::string> chosen(
          rules.begin() + first, rules.begin() + std::min(rules.size(), first + kRulesPerGraph));
      SCOPED_TRACE(testing::Message() << "round " << round << ": " << absl::StrJoin(chosen, ", "));
      std::mt19937 random(order());
      Dice dice(static_cast<uint32_t>(random()));
      const int64_t pp =
          dice.Of<int64_t>(cut ? std::vector<int64_t>{2, 3, 4} : std::vector<int64_t>{1, 1, 2});
      PlanUnderTest plan = PlanUnderTest::Of(RandomGraph(chosen, 2 * pp, random));
      plan.Dp(dice.Of<int64_t>({1, 2})).Tp(dice.Of<int64_t>({2, 4}));
      plan.Pp(pp, pp > 1 ? Schedule::k1f1b : Schedule::kNone).ByHand();
      plan.MicroBatches(4, dice.Of<int64_t>({1, 2}));
      plan.Recomputing(dice.Of<Recompute>({Recompute::kNone, Recompute::kFull}));
      CutByChance(dice, &plan);
      if (cut) {
        plan.options().layout.clear();
        plan.options().cuts = DrawCuts(dice, plan.graph(), pp - 1);
      }
      const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
      ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << plan.graph().DebugString();
      ExpectBalancedMemory(*graph);
      if (testing::Test::HasFailure()) return;
      ++plans;
    }
  }
  std::cout << plans << " plans over graphs of " << rules.size() << " ops\n";
}

TEST(RandomGraphTest, AnySplitCompiles) { CompileAll(0, kRounds, /*cut=*/false); }

TEST(RandomGraphTest, SoItDoesWithStagesThatBeginAnywhere) {
  CompileAll(50, kCutRounds, /*cut=*/true);
}

}  // namespace
}  // namespace plancast
