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
    neighbours_[at[edge.a]++] = {edge.b, edge.label, edge.b_per_a};
    neighbours_[at[edge.b]++] = {edge.a, edge.label, edge.a_per_b};
  }
}

std::vector<int32_t> RefineColours(const LabelledGraph& graph, std::vector<int32_t> colours) {
  struct Term {
    int32_t label, colour;
    int64_t count;
    bool operator<(const Term& o) const {
      return label != o.label ? label < o.label : colour < o.colour;
    }
  };
  std::vector<Term> terms;
  std::vector<int64_t> signature;  // own colour, then (label, colour, count)
  size_t count = 0;
  while (true) {
    absl::flat_hash_map<std::vector<int64_t>, int32_t> known;
    std::vector<int32_t> refined(colours.size());
    for (int32_t n = 0; n < static_cast<int32_t>(graph.num_nodes()); ++n) {
      terms.clear();
      for (const auto* edge = graph.begin(n); edge != graph.end(n); ++edge) {
        terms.push_back({edge->label, colours[edge->node], edge->count});
      }
      std::sort(terms.begin(), terms.end());
      signature.assign({colours[n]});
      for (size_t i = 0; i < terms.size(); ++i) {
        if (i > 0 && !(terms[i - 1] < terms[i])) {
          signature.back() += terms[i].count;
        } else {
          signature.insert(signature.end(), {terms[i].label, terms[i].colour, terms[i].count});
        }
      }
      refined[n] = known.try_emplace(signature, static_cast<int32_t>(known.size())).first->second;
    }
    colours = std::move(refined);
    if (known.size() == count) return colours;
    count = known.size();
  }
}

}  // namespace plancast
