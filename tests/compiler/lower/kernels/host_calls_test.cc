// What the host does for ops, and what it launches before products in 8 and 4 bits.

#include "compiler/lower/kernels/host_calls.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

std::vector<KernelSpec> Kernels(PlanUnderTest& plan, const std::string& block,
                                const std::string& label) {
  const absl::StatusOr<ExecutionGraph> graph = plan.MicroBatches(2, 1).Compile();
  EXPECT_OK(graph.status());
  return KernelsLabelled(*graph, block, label);
}

TEST(CallsTest, AnOpIsCalledOnceForwardAndOnceForItsGradients) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.profile().calls.forward = 7;
  plan.profile().calls.backward = 3;
  plan.profile().kernels.extra["qkv_linear"].forward_calls = 11;
  plan.profile().kernels.extra["rms_norm"].forward_small = 2;
  const KernelSpec qkv = Kernels(plan, "layer.F", "attn.qkv").at(0);
  EXPECT_EQ(qkv.calls, 11);
  EXPECT_EQ(qkv.launches, 1);
  EXPECT_EQ(Kernels(plan, "layer.B", "attn.qkv.bwd").at(0).calls, 3);
  EXPECT_EQ(Kernels(plan, "layer.B", "attn.qkv.wgrad").at(0).calls, 0);
  const KernelSpec norm = Kernels(plan, "layer.F", "attn.norm").at(0);
  EXPECT_EQ(norm.calls, 7);
  EXPECT_EQ(norm.launches, 3);
}

// Bytes for an element: 16 bits read, twice where a magnitude is found first, and the type, twice
// with scales of blocks.
TEST(CallsTest, OperandsAreQuantisedOnceByKernelsOfTheirOwn) {
  struct Case {
    DType type;
    int launches;
    double read, written;
  };
  for (const Case& c : {Case{DType::kFp8, 1, 2, 1}, Case{DType::kFp8, 4, 4, 1},
                        Case{DType::kMxfp8, 1, 2, 2 * (1 + 1.0 / 32)},
                        Case{DType::kNvfp4, 3, 4, 2 * (0.5 + 1.0 / 16)}}) {
    SCOPED_TRACE(DTypeName(c.type));
    PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
    plan.profile().calls.quantize[c.type] = {c.launches};
    plan.Type(c.type);
    for (const bool forward : {true, false}) {
      const std::vector<KernelSpec> kernels = forward ? Kernels(plan, "layer.F", "attn.proj")
                                                      : Kernels(plan, "layer.B", "attn.proj.bwd");
      ASSERT_EQ(kernels.size(), 2);
      const KernelSpec& quantize = kernels[0];
      const double elements = static_cast<double>(kernels[1].m * kernels[1].k);
      EXPECT_EQ(quantize.label, "quantize_operand");
      EXPECT_EQ(quantize.launches, c.launches);
      EXPECT_DOUBLE_EQ(quantize.read_bytes, c.read * elements);
      EXPECT_DOUBLE_EQ(quantize.write_bytes, c.written * elements);
      EXPECT_TRUE(kernels[1].quantized_operand);
    }
    const std::vector<KernelSpec> gradient = Kernels(plan, "layer.B", "attn.proj.wgrad");
    ASSERT_EQ(gradient.size(), 1);
    EXPECT_TRUE(gradient[0].quantized_operand);
    EXPECT_EQ(Kernels(plan, "layer.F", "attn.norm").at(0).calls, 0);
  }
}

// Bytes of scales for elements, and kernels, before the products of a linear layer.
TEST(CallsTest, ScalesAreOrderedBeforeProducts) {
  struct Case {
    DType type;
    OrderedScales ordered;
    bool activations, weights;
  };
  for (const Case& c : {Case{DType::kMxfp8, OrderedScales::kBoth, false, false},
                        Case{DType::kMxfp8, OrderedScales::kActivations, false, true},
                        Case{DType::kMxfp8, OrderedScales::kNone, true, true},
                        Case{DType::kNvfp4, OrderedScales::kNone, true, true},
                        Case{DType::kFp8, OrderedScales::kNone, false, false}}) {
    SCOPED_TRACE(DTypeName(c.type));
    PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
    plan.profile().calls.quantize[c.type] = {1, c.ordered};
    plan.Type(c.type);
    for (const std::string of : {"attn.proj", "attn.proj.bwd", "attn.proj.wgrad"}) {
      SCOPED_TRACE(of);
      const bool of_weights = of != "attn.proj.wgrad";
      double elements = 0;
      int operands = 0;
      const std::vector<KernelSpec> kernels =
          Kernels(plan, of == "attn.proj" ? "layer.F" : "layer.B", of);
      const KernelSpec& product = kernels.back();
      if (c.activations) elements += static_cast<double>(product.m * product.k), ++operands;
      if (of_weights ? c.weights : c.activations) {
        elements += static_cast<double>(product.k * product.n), ++operands;
      }
      ASSERT_EQ(kernels.size(), 1 + of_weights + (operands > 0));
      if (operands == 0) continue;
      const KernelSpec& order = kernels[kernels.size() - 2];
      EXPECT_EQ(order.label, "order_scales");
      EXPECT_EQ(order.launches, operands);
      // Single bytes go at a fifth of a copy's rate.
      EXPECT_DOUBLE_EQ(order.read_bytes, 5 * elements / (c.type == DType::kMxfp8 ? 32 : 16));
      EXPECT_DOUBLE_EQ(order.write_bytes, order.read_bytes);
    }
  }
}

// What is gathered travels in the order of rows, whatever quantisation writes.
TEST(CallsTest, ScalesOfWhatWasGatheredAreOrdered) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.profile().calls.quantize[DType::kMxfp8] = {1, OrderedScales::kBoth};
  plan.profile().types.quantized_activations = true;
  plan.Tp(2).Sp().Type(DType::kMxfp8);
  const auto labels = [&](const std::string& block, const std::string& of) {
    std::vector<std::string> names;
    for (const KernelSpec& kernel : Kernels(plan, block, of)) names.push_back(kernel.label);
    return names;
  };
  EXPECT_THAT(labels("layer.F", "attn.qkv"), ElementsAre("order_scales", "qkv_linear"));
  EXPECT_THAT(labels("layer.F", "attn.proj"), ElementsAre("quantize_operand", "out_linear"));
}

TEST(CallsTest, AGraphOfAPartTakesOneCall) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.profile().calls.forward = 7;
  plan.profile().calls.scopes["attn"] = {"attn.norm", "attn."};
  ASSERT_OK(plan.profile().Capture("attn"));
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.norm").at(0).calls, 7 - 1);
  EXPECT_EQ(Kernels(plan, "layer.F", "attn.qkv").at(0).calls, -1);
  EXPECT_EQ(Kernels(plan, "layer.F", "mlp.fc1").at(0).calls, 7);
}

}  // namespace
}  // namespace plancast
