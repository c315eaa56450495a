// Programs: statements and calls of rules as graphs.

#include "graph/model/program.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

IndexProgram Product() {
  return {"product",
          {{"i", 4}, {"j", 6}, {"k", 8}},
          {{"B", {"i", "k"}}, {"C", {"k", "j"}}},
          {"A[i,j] += B[i,k] * C[k,j]"}};
}

TEST(ProgramTest, AStatementIsAnOp) {
  const auto graph = BuildProgram(Product());
  ASSERT_OK(graph.status());
  const Body& body = graph->bodies[0];
  ASSERT_EQ(body.ops.size(), 3);
  EXPECT_EQ(body.ops[0].name, "B");
  EXPECT_EQ(body.ops[2].name, "A");
  EXPECT_EQ(graph->segments[0].path, "product");
  EXPECT_EQ(graph->ParameterCount(), 0);
  EXPECT_EQ(graph->Elements(body.tensors[body.ops[2].outputs[0]]), 24);
}

TEST(ProgramTest, StepsCallRulesAndHaveNamesAndTypes) {
  IndexProgram program = Product();
  program.given.push_back({"bias", {"j"}, DType::kFp32});
  program.steps = {"product: A:f32[i,j] += B[i,k] * C[k,j]",
                   "shifted[i,j] = A[i,j] + scale * bias[j]", "y = relu_nd(shifted)"};
  const auto graph = BuildProgram(program);
  ASSERT_OK(graph.status());
  const Body& body = graph->bodies[0];
  ASSERT_EQ(body.ops.size(), 6);
  EXPECT_EQ(body.ops[3].name, "product");
  EXPECT_EQ(body.tensors[body.ops[3].outputs[0]].dtype, DType::kFp32);
  EXPECT_EQ(body.ops[4].inputs.size(), 2);
  EXPECT_EQ(body.ops[5].rule->name(), "relu_nd");
}

TEST(ProgramTest, StencilsReadAround) {
  IndexProgram program{"blur", {{"i", 16}, {"j", 16}, {"k", 3}, {"l", 3}}, {{"x", {"i", "j"}}}, {}};
  program.given.push_back({"w", {"k", "l"}});
  program.steps = {"y[i,j] += x[i + k - 1,j + l - 1] * w[k,l]"};
  EXPECT_OK(BuildProgram(program).status());
}

TEST(ProgramTest, MistakesNameTheStep) {
  const auto error = [](const std::string& step) {
    IndexProgram program = Product();
    program.steps = {step};
    return std::string(BuildProgram(program).status().message());
  };
  EXPECT_THAT(error("hello"), HasSubstr("step `hello`: is neither a statement"));
  EXPECT_THAT(error("A[i,j] += B[i,k] * D[k,j]"), HasSubstr("D"));
  EXPECT_THAT(error("y = no_such_rule(B)"), HasSubstr("no_such_rule"));
  EXPECT_THAT(error("A[i,q] = B[i,q] * C[i,q]"), HasSubstr("step `A[i,q]"));
  IndexProgram empty = Product();
  empty.steps.clear();
  EXPECT_THAT(BuildProgram(empty).status().message(), HasSubstr("has no steps"));
}

}  // namespace
}  // namespace plancast
