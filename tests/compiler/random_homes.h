#ifndef PLANCAST_TESTS_COMPILER_RANDOM_HOMES_H_
#define PLANCAST_TESTS_COMPILER_RANDOM_HOMES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/compiler/plan_under_test.h"

namespace plancast {

// What is below a path in every run of layers that it is in.
struct BelowPath {
  bool parameters = false;
  bool trained = true;  // some in each run
  bool norms = false;   // with parameters
};
inline BelowPath BelowOf(const ModelGraph& graph, const std::string& path) {
  BelowPath below;
  for (const Segment& segment : graph.segments) {
    const Body& body = graph.bodies[segment.body];
    bool parameters = false, trained = false;
    for (const OpNode& op : body.ops) {
      const std::string at = absl::StrCat(ModelGraph::PathOf(segment), ".", op.name);
      if (at != path && at.rfind(path + ".", 0) != 0) continue;
      const bool norm = op.name == "norm" || op.name.find(".norm") != std::string::npos;
      for (const int t : op.inputs) {
        if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
        parameters = true;
        trained = trained || !body.tensors[t].frozen;
        below.norms = below.norms || norm;
      }
    }
    below.parameters = below.parameters || parameters;
    below.trained = below.trained && (trained || !parameters);
  }
  below.trained = below.trained && below.parameters;
  return below;
}

// Homes of random nodes: modules, layers, parts of layers. `below(n)` draws from 0 to n - 1.
template <typename Below>
void DrawHomes(const Below& below, PlanUnderTest& plan) {
  const ModelGraph& graph = plan.graph();
  plan.options().recompute_joined = 1;
  plan.options().sync_whole_each = below(3) == 0;
  std::vector<std::string> paths;
  for (const Segment& segment : graph.segments) {
    // Users of a tied weight have one home.
    if (!segment.in_list() && !graph.tied.empty()) continue;
    const std::string path = ModelGraph::PathOf(segment);
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  for (std::string path : paths) {
    if (below(3) == 0) continue;
    const bool list = path.size() > 2 && path.substr(path.size() - 2) == ".*";
    const std::string part = absl::StrCat(path, below(2) == 0 ? ".mlp" : ".attn");
    if (list && below(4) == 0 && BelowOf(graph, part).parameters) {
      path = part;
    } else if (!BelowOf(graph, path).parameters) {
      continue;
    }
    std::string node = path;
    if (list && below(2) == 0) {
      const int64_t layers = graph.LayerCount();
      const int64_t some = below(layers);
      const std::string index =
          below(2) == 0 ? absl::StrCat("[", some, ":]") : absl::StrCat("[:", some + 1, "]");
      node.replace(path.find(".*"), 2, index);
    }
    const BelowPath has = BelowOf(graph, path);
    if (!has.trained) {
      const std::vector<std::string> homes = {"replicate", "shard(dp)", "shard(dp)+host", "host"};
      plan.Home(node, HomeKind::kWeights, homes[below(4)]);
      continue;
    }
    const int zero = static_cast<int>(below(4));
    plan.Shard(node, zero);
    if (below(8) == 0) {
      if (below(2) == 0) plan.Home(node, HomeKind::kWeights, "host");
      plan.Home(node, HomeKind::kGradients, "host").Home(node, HomeKind::kState, "host");
      if (zero == 3) plan.Home(node, HomeKind::kWeights, "host");
      continue;
    }
    // Weights of norms have copies on all ranks of tp.
    std::string shard = "shard(dp)";
    if (plan.options().tp > 1 && zero > 0 && has.norms) {
      shard = std::vector<std::string>{"shard(dp)", "shard(tp)", "shard(dp,tp)"}[below(3)];
      plan.Home(node, HomeKind::kState, shard);
      if (zero > 1) plan.Home(node, HomeKind::kGradients, shard);
      if (zero > 2) plan.Home(node, HomeKind::kWeights, shard);
    }
    if (zero < 2 && below(2) == 0) {
      const std::vector<int64_t> bytes = {1, 5000, int64_t{1} << 24};
      (*plan.tree().Node(node))->bucket_bytes = bytes[below(3)];
    }
    if (below(3) == 0) {
      plan.Home(node, HomeKind::kState, zero >= 1 ? shard + "+host" : "host");
    }
    if (zero == 3 && below(3) == 0) plan.Home(node, HomeKind::kWeights, shard + "+host");
    if ((path == "head" || (list && path.back() == '*')) && below(3) == 0) {
      plan.Home(node, HomeKind::kActivations, below(3) == 0 ? "device" : "host");
    }
  }
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_RANDOM_HOMES_H_
