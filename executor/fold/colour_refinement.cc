#include "executor/fold/colour_refinement.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace plancast {

void LabelledGraph::Index() {
  offsets_.assign(nodes_ + 1, 0);
  for (const Edge& edge : edges_) {
    ++offsets_[edge.a + 1];
    ++offsets_[edge.b + 1];
  }
  for (size_t n = 0; n < nodes_; ++n) offsets_[n + 1] += offsets_[n];
  // One spare, so that begin() of the last nodes may point behind the others.
  neighbours_.resize(offsets_[nodes_] + 1);
  std::vector<int64_t> at(offsets_.begin(), offsets_.end() - 1);
  for (const Edge& edge : edges_) {
    neighbours_[at[edge.a]++] = {edge.b, edge.label};
    neighbours_[at[edge.b]++] = {edge.a, edge.label};
  }
}

std::vector<int32_t> RefineColours(const LabelledGraph& graph, std::vector<int32_t> colours) {
  using Signature = std::vector<std::pair<int32_t, int32_t>>;  // (label, colour)
  size_t count = 0;
  while (true) {
    absl::flat_hash_map<Signature, int32_t> known;
    std::vector<int32_t> refined(colours.size());
    Signature signature;
    for (int32_t n = 0; n < static_cast<int32_t>(graph.num_nodes()); ++n) {
      signature.clear();
      for (const auto* edge = graph.begin(n); edge != graph.end(n); ++edge) {
        signature.emplace_back(edge->label, colours[edge->node]);
      }
      std::sort(signature.begin(), signature.end());
      signature.emplace_back(-1, colours[n]);
      refined[n] = known.try_emplace(signature, static_cast<int32_t>(known.size())).first->second;
    }
    colours = std::move(refined);
    if (known.size() == count) return colours;
    count = known.size();
  }
}

}  // namespace plancast
