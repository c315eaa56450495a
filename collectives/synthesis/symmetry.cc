#include "collectives/synthesis/symmetry.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace plancast {
namespace {

constexpr int32_t kMostAutomorphisms = 2000;
constexpr int32_t kMostSeeds = 64;

int32_t Width(const LinkGraph& graph, int32_t from, int32_t to) {
  const int32_t link = graph.Find(from, to);
  return link < 0 ? 0 : graph.links()[link].width;
}

void Extend(const LinkGraph& graph, size_t most, Permutation& image, std::vector<char>& used,
            std::vector<Permutation>& out) {
  const auto node = static_cast<int32_t>(image.size());
  if (node == graph.nodes()) {
    out.push_back(image);
    return;
  }
  for (int32_t to = 0; to < graph.nodes() && out.size() < most; ++to) {
    if (used[to] != 0) continue;
    bool fits = true;
    for (int32_t other = 0; other < node && fits; ++other) {
      fits = Width(graph, node, other) == Width(graph, to, image[other]) &&
             Width(graph, other, node) == Width(graph, image[other], to);
    }
    if (!fits) continue;
    used[to] = 1;
    image.push_back(to);
    Extend(graph, most, image, used, out);
    image.pop_back();
    used[to] = 0;
  }
}

Permutation After(const Permutation& first, const Permutation& second) {
  Permutation out(first.size());
  for (size_t i = 0; i < first.size(); ++i) out[i] = second[first[i]];
  return out;
}

bool KeepsANode(const Permutation& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] == static_cast<int32_t>(i)) return true;
  }
  return false;
}

// What `generators` make, or nothing if an element other than the identity keeps
// a node.
std::vector<Permutation> Close(const std::vector<Permutation>& generators, int32_t nodes) {
  Permutation identity(nodes);
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<Permutation> group = {identity};
  std::set<Permutation> known = {identity};
  for (size_t i = 0; i < group.size(); ++i) {
    for (const Permutation& generator : generators) {
      Permutation next = After(group[i], generator);
      if (!known.insert(next).second) continue;
      if (KeepsANode(next)) return {};
      group.push_back(std::move(next));
    }
  }
  return group;
}

}  // namespace

std::vector<Permutation> Automorphisms(const LinkGraph& graph, int32_t most) {
  std::vector<Permutation> out;
  Permutation image;
  std::vector<char> used(graph.nodes(), 0);
  Extend(graph, most, image, used, out);
  return out;
}

std::vector<std::vector<Permutation>> FreeGroups(const LinkGraph& graph) {
  std::vector<Permutation> moving;
  for (Permutation& permutation : Automorphisms(graph, kMostAutomorphisms)) {
    if (!KeepsANode(permutation)) moving.push_back(std::move(permutation));
  }
  std::set<std::vector<Permutation>> groups;
  const int32_t seeds = std::min<int32_t>(kMostSeeds, static_cast<int32_t>(moving.size()));
  for (int32_t seed = 0; seed < seeds; ++seed) {
    std::vector<Permutation> generators = {moving[seed]};
    std::vector<Permutation> group = Close(generators, graph.nodes());
    if (group.empty()) continue;
    for (const Permutation& next : moving) {
      if (static_cast<int32_t>(group.size()) == graph.nodes()) break;
      if (std::find(group.begin(), group.end(), next) != group.end()) continue;
      generators.push_back(next);
      std::vector<Permutation> larger = Close(generators, graph.nodes());
      if (larger.empty()) {
        generators.pop_back();
      } else {
        group = std::move(larger);
      }
    }
    std::sort(group.begin(), group.end());
    groups.insert(std::move(group));
  }
  std::vector<std::vector<Permutation>> out(groups.begin(), groups.end());
  out.push_back(Close({}, graph.nodes()));
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return out;
}

}  // namespace plancast
