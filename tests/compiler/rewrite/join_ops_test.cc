// Ops that are one: stencils of stencils compute their borders again, or exchange them.

#include "compiler/rewrite/join_ops.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "graph/model/program.h"
#include "gtest/gtest.h"
#include "tests/compiler/body/check_bodies.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Stages of a 3x3 stencil, `s0` to `sN`, in groups `g0.s0`.
IndexProgram Chain(int64_t height, int64_t width, int stages, int group = 0) {
  IndexProgram program{"chain", {{"i", height}, {"j", width}, {"k", 3}, {"l", 3}}, {}, {}};
  program.given = {{"x", {"i", "j"}}, {"t", {"k", "l"}}};
  std::string before = "x";
  for (int s = 0; s < stages; ++s) {
    const std::string name = absl::StrCat("s", s);
    const std::string op = group > 0 ? absl::StrCat("g", s / group, ".", name) : name;
    program.steps.push_back(
        absl::StrCat(op, ": ", name, "[i,j] += ", before, "[i + k - 1,j + l - 1] * t[k,l]"));
    before = name;
  }
  return program;
}

struct Plan {
  std::vector<std::string> moves;
  std::string wrong;
};

// On rows x columns devices; `at`: what nodes say.
absl::StatusOr<PlanUnderTest> Planned(const IndexProgram& program, int64_t rows, int64_t columns,
                                      const std::vector<std::pair<std::string, std::string>>& at) {
  ASSIGN_OR_RETURN(ModelGraph graph, BuildProgram(program));
  StrategyTree tree;
  for (const auto& [path, op] : at) {
    ASSIGN_OR_RETURN(Directives * node, tree.Node(path));
    node->compute_at = op;
  }
  if (!at.empty()) {
    ASSIGN_OR_RETURN(graph, JoinedOps(graph, tree));
  }
  PlanUnderTest plan = PlanUnderTest::Of(std::move(graph));
  plan.Dp(rows).Tp(columns).MicroBatches(1, 1);
  plan.Split("", "dp", {"i"}).Split("", "tp", {"j"});
  return plan;
}

absl::StatusOr<std::vector<std::string>> MovesOfPlan(
    const IndexProgram& program, int64_t rows, int64_t columns,
    const std::vector<std::pair<std::string, std::string>>& at) {
  ASSIGN_OR_RETURN(PlanUnderTest plan, Planned(program, rows, columns, at));
  ASSIGN_OR_RETURN(const ExecutionGraph compiled, plan.Compile());
  return MovesOf(compiled).forward;
}

// The same with the oracle's word on what it computes.
absl::StatusOr<Plan> PlanOf(const IndexProgram& program, int64_t rows, int64_t columns,
                            const std::vector<std::pair<std::string, std::string>>& at) {
  Plan out;
  ASSIGN_OR_RETURN(out.moves, MovesOfPlan(program, rows, columns, at));
  ASSIGN_OR_RETURN(PlanUnderTest plan, Planned(program, rows, columns, at));
  ASSIGN_OR_RETURN(const CheckedBodies checked, CheckBodies(plan.Request(), 3));
  out.wrong = checked.wrong;
  return out;
}

TEST(JoinOpsTest, ABorderIsExchangedTwiceOrComputedTwice) {
  const int64_t w = 8;
  const auto apart = PlanOf(Chain(16, w, 2), 4, 1, {});
  ASSERT_OK(apart.status());
  EXPECT_EQ(apart->wrong, "");
  EXPECT_THAT(apart->moves, ElementsAre(absl::StrCat("permute(dp) ", 2 * 2 * w),
                                        absl::StrCat("permute(dp) ", 2 * 2 * w)));
  const auto joined = PlanOf(Chain(16, w, 2), 4, 1, {{"chain.s0", "s1"}});
  ASSERT_OK(joined.status());
  EXPECT_EQ(joined->wrong, "");
  EXPECT_THAT(joined->moves, ElementsAre(absl::StrCat("permute(dp) ", 2 * 4 * w)));
}

TEST(JoinOpsTest, GridsExchangeCornersToo) {
  const auto joined = PlanOf(Chain(8, 8, 2), 2, 2, {{"chain.s0", "s1"}});
  ASSERT_OK(joined.status());
  EXPECT_EQ(joined->wrong, "");
}

TEST(JoinOpsTest, AChainOf99StagesTakesTenDirectives) {
  std::vector<std::pair<std::string, std::string>> at;
  for (int g = 0; g < 10; ++g) {
    at.emplace_back(absl::StrCat("chain.g", g), absl::StrCat("s", std::min(10 * g + 9, 98)));
  }
  const auto moves = MovesOfPlan(Chain(4096, 64, 99, 10), 64, 1, at);
  ASSERT_OK(moves.status());
  ASSERT_EQ(moves->size(), 10);
  for (size_t g = 0; g < moves->size(); ++g) {
    const int64_t stages = g < 9 ? 10 : 9;
    EXPECT_EQ((*moves)[g], absl::StrCat("permute(dp) ", 2 * 64 * 2 * stages));
  }
}

TEST(JoinOpsTest, OthersMayReadWhatIsBetween) {
  IndexProgram program = Chain(16, 8, 2);
  program.steps.push_back("sum[i,j] = s0[i,j] + s1[i,j]");
  const auto joined = PlanOf(program, 4, 1, {{"chain.s0", "s1"}});
  ASSERT_OK(joined.status());
  EXPECT_EQ(joined->wrong, "");
}

TEST(JoinOpsTest, MistakesAreRefusedInWords) {
  const auto error = [](const IndexProgram& program,
                        const std::vector<std::pair<std::string, std::string>>& at) {
    return std::string(PlanOf(program, 4, 1, at).status().message());
  };
  EXPECT_THAT(error(Chain(16, 8, 3), {{"chain.s0", "s7"}}), HasSubstr("no such op"));
  EXPECT_THAT(error(Chain(16, 8, 3), {{"chain.s2", "s0"}}), HasSubstr("runs after it"));
  EXPECT_THAT(error(Chain(16, 8, 3), {{"chain.s0", "s2"}}), HasSubstr("`s1` reads `s0`"));
  EXPECT_THAT(error(Chain(16, 8, 3), {{"other", "s2"}}), HasSubstr("said of no op"));
}

}  // namespace
}  // namespace plancast
