#ifndef PLANCAST_TESTS_COMPILER_DRAW_TRAINING_H_
#define PLANCAST_TESTS_COMPILER_DRAW_TRAINING_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/finetune/adapter.h"
#include "compiler/finetune/fine_tune.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {

// Names of the ops of a model that can have adapters.
inline std::vector<std::string> TakesAdapters(const ModelGraph& graph) {
  std::set<std::string> names;
  for (const Segment& segment : graph.segments) {
    for (const OpNode& op : graph.bodies[segment.body].ops) {
      if (AdapterOf(*op.rule).ok()) names.insert(op.name);
    }
  }
  return {names.begin(), names.end()};
}

// Trains a part of the model: a tail of its layers, a kind of module, or adapters.
inline void DrawTraining(Dice& dice, PlanUnderTest& plan) {
  const std::string tail =
      absl::StrCat("layers[0:", 1 + dice.Below(plan.graph().LayerCount()), "]");
  // A tied embedding is the head's weight.
  const std::string head = plan.graph().tied.empty() ? "embedding" : "head";
  switch (dice.Below(4)) {
    case 0:
      plan.Train(tail, false);
      plan.Train("embedding", false);
      if (head == "head") plan.Train("head.logits", false);
      break;
    case 1:
      plan.Train(dice.Of<std::string>({"layers.*.attn", "layers.*.mlp", tail}), false);
      break;
    case 2:
      plan.Train("", false);
      plan.Train(dice.Of<std::string>({"layers.*.attn", "layers[-1]", "layers[::2]", "layers.0"}),
                 true);
      break;
    default: {
      std::vector<std::string> on;
      for (const std::string& name : TakesAdapters(plan.graph())) {
        if (dice.Maybe(2)) on.push_back(name);
      }
      if (on.empty()) on = {"proj"};
      plan.Lora("", dice.Of<int64_t>({1, 4}), on, dice.Of<std::string>({"", "", "nf4"}));
      if (dice.Maybe(3)) plan.Train("layers.*.attn.norm", true);
      (*plan.tree().Node(""))->lora->dropout = dice.Of<double>({0, 0.1});
    }
  }
  plan.FineTune();
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_DRAW_TRAINING_H_
