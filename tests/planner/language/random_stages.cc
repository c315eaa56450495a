#include "tests/planner/language/random_stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// The op's name, or that of the op which its name goes on from (`fc1` of `fc1.bias`): a node says
// both.
std::string NodeOf(const Body& body, size_t op) {
  std::string node = body.ops[op].name;
  for (const OpNode& other : body.ops) {
    if (absl::StartsWith(node, other.name + ".")) node = other.name;
  }
  return node;
}

// Whether no node has ops on both sides.
bool CanBegin(const Body& body, size_t op) {
  std::set<std::string> before;
  for (size_t o = 0; o < op; ++o) before.insert(NodeOf(body, o));
  for (size_t o = op; o < body.ops.size(); ++o) {
    if (before.count(NodeOf(body, o)) > 0) return false;
  }
  return true;
}

}  // namespace

std::vector<ModelCut> DrawStageBegins(Dice& dice, const ModelGraph& graph, int64_t count,
                                      bool inside) {
  std::vector<ModelCut> places;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Body& body = graph.bodies[graph.segments[s].body];
    for (int64_t repeat = 0; repeat < graph.segments[s].repeat; ++repeat) {
      for (size_t o = 0; o < (inside ? body.ops.size() : 1); ++o) {
        if (CanBegin(body, o)) places.push_back({static_cast<int>(s), repeat, static_cast<int>(o)});
      }
    }
  }
  std::set<ModelCut> begins;
  const auto most = static_cast<int64_t>(places.size()) - 1;
  while (static_cast<int64_t>(begins.size()) < std::min(count, most)) {
    begins.insert(places[1 + dice.Below(most)]);
  }
  return {begins.begin(), begins.end()};
}

ModelCut EndOf(const ModelGraph& graph) { return {static_cast<int>(graph.segments.size()), 0, 0}; }

std::vector<std::string> NodesBetween(const ModelGraph& graph, const ModelCut& begin,
                                      const ModelCut& end) {
  std::vector<std::string> nodes;
  std::map<std::string, int64_t> layers;  // of the list so far
  for (int s = 0; s < static_cast<int>(graph.segments.size()); ++s) {
    const Segment& segment = graph.segments[s];
    const int64_t first = layers[segment.path];
    layers[segment.path] += segment.repeat;
    const std::vector<OpNode>& ops = graph.bodies[segment.body].ops;
    for (int64_t repeat = 0; repeat < segment.repeat; ++repeat) {
      const std::string path =
          segment.in_list() ? absl::StrCat(segment.path, ".", first + repeat) : segment.path;
      std::set<std::string> said;
      size_t held = 0;
      for (size_t o = 0; o < ops.size(); ++o) {
        const ModelCut at{s, repeat, static_cast<int>(o)};
        if (at < begin || !(at < end)) continue;
        ++held;
        said.insert(NodeOf(graph.bodies[segment.body], o));
      }
      if (held == ops.size()) {
        nodes.push_back(path);
        continue;
      }
      for (const std::string& node : said) nodes.push_back(absl::StrCat(path, ".", node));
    }
  }
  return nodes;
}

}  // namespace plancast
