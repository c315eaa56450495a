// Every op is split by its rule alone (Tofu, EuroSys'19): the kinds follow from
// the text, for all ops of the table, and no source knows an op by name.

#include "graph/split/split_kinds.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Kinds(const std::string& text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  return rule.ok() ? SplitKindsText(*rule) : std::string(rule.status().message());
}

TEST(SplitKindsTest, MatrixMultiplication) {
  EXPECT_EQ(Kinds("matmul(A, B) -> (C) { C[i,j] += A[i,k] * B[k,j] }"),
            "  i: concat C\n"
            "  j: concat C\n"
            "  k: reduce C\n");
}

TEST(SplitKindsTest, Convolution) {
  EXPECT_EQ(Kinds("conv1d(D, F) -> (O) { O[b,co,x] += D[b,ci,x + dx] * F[ci,co,dx] }"),
            "  b: concat O\n"
            "  co: concat O\n"
            "  x, D.2: concat O; halo of D: size(dx) - 1\n"
            "  ci: reduce O\n"
            "  dx: reduce O\n");
  EXPECT_THAT(SplitKindsText(**FindRule("conv2d(stride=2, dilation=3)")),
              HasSubstr("  i, p: concat y; halo of x: 3 * (size(k) - 1)\n"));
}

TEST(SplitKindsTest, ElementwiseOpsSplitOnEveryDim) {
  EXPECT_EQ(Kinds("f(x, y) -> (z) { z[a,b,c] = tanh(x[a,b,c]) * y[a,b,c] }"),
            "  a: concat z\n  b: concat z\n  c: concat z\n");
}

TEST(SplitKindsTest, StatisticsAreReducedInside) {
  EXPECT_EQ(SplitKindsText(**FindRule("softmax")),
            "  b: concat y\n  g: concat y\n  r: concat y\n  s: concat y\n"
            "  t: concat y; reduce inside m, z\n");
}

// A lookup by data splits over the rows that are asked for; the table's rows
// leave a sum.
TEST(SplitKindsTest, LookupsReduceOverTheTable) {
  EXPECT_EQ(Kinds("gather(id:i64, w) -> (y) { y[b,h] += w[v,h] * [v == id[b]] }"),
            "  b: concat y\n  h: concat y\n  v: reduce y\n");
}

TEST(SplitKindsTest, EveryOpOfTheTableIsEnumerated) {
  for (const std::string& name : RuleNames()) {
    const OpRule& rule = **FindRule(name);
    size_t factors = 0;
    bool splits = false;
    for (const SplitKind& kind : SplitKindsOf(rule)) {
      factors += kind.factors.size();
      splits = splits || !kind.concat.empty() || !kind.reduce.empty();
    }
    EXPECT_EQ(factors, rule.factors().size()) << name;
    EXPECT_TRUE(splits) << name << " cannot be cut at all";
  }
}

// Sharding code that looks at an op's name would have it as a string.
TEST(SplitKindsTest, NoSourceOfSplitsNamesAnOp) {
  std::ifstream list("tests/graph/split_sources.txt");
  ASSERT_TRUE(list.good());
  int sources = 0;
  for (std::string path; std::getline(list, path);) {
    std::ifstream file(path);
    ASSERT_TRUE(file.good()) << path;
    std::string code;
    for (std::string line; std::getline(file, line);) {
      absl::StrAppend(&code, line.substr(0, line.find("//")), "\n");
    }
    for (const std::string& name : RuleNames()) {
      if (FindFunction(name).has_value()) continue;  // a function of expressions, too
      // The label of the kernel that updates parameters.
      if (name == "adam" && absl::EndsWith(path, "optimizer_step.cc")) continue;
      // A family of kernels.
      if (name == "attention" && absl::EndsWith(path, "kernel_spec.h")) continue;
      EXPECT_FALSE(absl::StrContains(code, absl::StrCat("\"", name, "\"")))
          << path << " names the op `" << name << "`";
    }
    ++sources;
  }
  EXPECT_GT(sources, 60);
}

}  // namespace
}  // namespace plancast
