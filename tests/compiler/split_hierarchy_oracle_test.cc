// Random hierarchies of splits over a small transformer, checked in the prime field: every op
// and derived op that a device runs equals its part of the unsplit one, and every relayout
// between them gives the tensor again.

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/body/partition.h"
#include "compiler/plan_bodies.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/graph/relayout_simulator.h"
#include "tests/graph/split_simulator.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int kPlans = 60;

TransformerConfig Draw(std::mt19937_64& random) {
  TransformerConfig config;
  config.name = "small";
  config.layers = 2;
  config.hidden = 8;
  config.heads = 8;
  config.kv_heads = 8 >> (random() % 3);
  config.head_dim = 1;
  config.ffn = 16;
  config.vocab = 16;
  config.seq = 16;
  config.max_positions = 16;
  config.mlp = random() % 2 ? Mlp::kGelu : Mlp::kSwiglu;
  config.norm = random() % 2 ? Norm::kLayerNorm : Norm::kRmsNorm;
  config.position = random() % 2 ? Position::kLearned : Position::kRope;
  config.parallel_residual = random() % 4 == 0;
  return config;
}

// Levels of an axis of `ranks`, a power of two, over dims by chance.
std::vector<std::string> DrawLevels(std::mt19937_64& random, int64_t ranks,
                                    const std::vector<std::string>& dims) {
  std::vector<std::string> levels;
  while (ranks > 1) {
    const int64_t parts = std::min<int64_t>(ranks, 2 << (random() % 3));
    levels.push_back(absl::StrCat(dims[random() % dims.size()], "/", parts));
    ranks /= parts;
  }
  return levels;
}

std::vector<Array<Field>> DrawInputs(const OpRule& rule, const std::vector<int64_t>& extents,
                                     std::mt19937_64& random) {
  std::vector<Array<Field>> inputs;
  for (const int t : rule.inputs()) {
    Array<Field> array = Array<Field>::Empty(ShapeOf(rule.tensors()[t], extents));
    const bool index = rule.tensors()[t].dtype == DType::kInt64;
    for (size_t e = 0; e < array.values.size(); ++e) {
      array.values[e] = Field(static_cast<int64_t>(random() % (index ? 16 : 7)) - (index ? 0 : 3));
      array.present[e] = true;
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

std::string CheckRelayout(const DeviceMesh& mesh, const std::vector<int64_t>& shape,
                          const Relayout& relayout) {
  RelayoutSimulator simulator(mesh, shape);
  simulator.Place(relayout.source);
  Layout at = relayout.source;
  for (const RelayoutStep& step : relayout.steps) {
    const std::string wrong = simulator.Execute(at, step);
    if (!wrong.empty()) return wrong;
    at = step.after;
  }
  return at == relayout.target ? simulator.Check(relayout.target) : "it ends elsewhere";
}

TEST(SplitHierarchyOracleTest, WhatDevicesRunAddsUpToTheModel) {
  const uint64_t seed = TestSeed(11);
  std::mt19937_64 random(seed);
  int ops = 0, relayouts = 0, levels = 0;
  for (int i = 0; i < kPlans && !HasFailure(); ++i) {
    PlanUnderTest plan = PlanUnderTest::Of(Draw(random), random() % 2 == 0);
    const int64_t tp = random() % 2 ? 8 : 4, dp = tp == 8 || random() % 2 ? 1 : 4;
    plan.Dp(dp).Tp(tp).MicroBatches(2, 1);
    const std::vector<std::string> all = {"heads|ffn|vocab", "heads|ffn|vocab|seq", "seq", "hidden",
                                          ""};
    plan.Split("", "tp", DrawLevels(random, tp, all));
    if (dp > 1) plan.Split("", "dp", {"batch/2", random() % 2 ? "seq/2" : "batch|seq/2"});
    for (const char* path : {"layers.*.attn", "layers[1]", "layers.*.mlp"}) {
      if (random() % 2) continue;
      const bool mlp = absl::string_view(path) == "layers.*.mlp";
      plan.Split(path, "tp",
                 DrawLevels(random, tp,
                            {mlp ? "ffn" : "heads|ffn", "seq", mlp ? "ffn|seq" : "heads|seq", ""}));
    }
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i, ": ", plan.tree().ToJson()));
    Session session;
    const auto compiled = CompileBodies(plan.Request(), session, nullptr);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const BoundModel& bound = (*compiled)->bound;
    levels += bound.mesh.num_axes() - 3;
    for (size_t b = 0; b < bound.bodies.size() && !HasFailure(); ++b) {
      const Body& body = bound.graph.bodies[bound.bodies[b].body];
      const BodyPlan& steps = (*compiled)->bodies[b]->plan;
      for (const std::vector<PlanStep>* phase : {&steps.forward, &steps.backward}) {
        for (const PlanStep& step : *phase) {
          if (step.kind == PlanStep::Kind::kRelayout) {
            const TensorRef& ref = steps.values[step.inputs[0]].ref;
            const TensorFacts facts = FactsOf(bound.graph, body, ref);
            EXPECT_EQ(CheckRelayout(bound.mesh, facts.shape, step.relayout), "") << facts.name;
            ++relayouts;
          }
          if (step.kind != PlanStep::Kind::kOp) continue;
          const OpNode& op = body.ops[step.op.op];
          const OpRule& rule = *step.op.rule;
          const std::vector<int64_t> extents = FactorExtents(bound.graph, op, rule);
          const FactorSplit split = SplitFor(rule, op, bound.bodies[b].splits[step.op.op]);
          const std::vector<Array<Field>> whole =
              EvaluateWhole(rule, extents, DrawInputs(rule, extents, random));
          const auto partition = PartitionOp(rule, split, bound.mesh, extents);
          ASSERT_TRUE(partition.ok()) << partition.status();
          EXPECT_EQ(
              SplitSimulator<Field>(rule, bound.mesh, split, extents).Compare(*partition, whole),
              "")
              << op.name << " " << rule.DebugString();
          ++ops;
        }
      }
    }
  }
  std::cout << "seed " << seed << ": " << ops << " ops, " << relayouts << " relayouts, " << levels
            << " sub-axes beyond the axes\n";
  EXPECT_GT(relayouts, kPlans);
}

}  // namespace
}  // namespace plancast
