#ifndef PLANCAST_EXECUTOR_FOLD_COLOUR_REFINEMENT_H_
#define PLANCAST_EXECUTOR_FOLD_COLOUR_REFINEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plancast {

// A graph whose edges carry labels, for colour refinement. Edges go both ways. A
// node may stand for several that are alike; then an edge says how many of the
// one each of the other has.
class LabelledGraph {
 public:
  explicit LabelledGraph(size_t nodes) : nodes_(nodes) {}
  void AddEdge(int32_t a, int32_t b, int32_t label, int64_t b_per_a = 1, int64_t a_per_b = 1) {
    edges_.push_back({a, b, label, b_per_a, a_per_b});
  }

  struct Neighbour {
    int32_t node = 0;
    int32_t label = 0;
    int64_t count = 1;
  };
  // CSR of both directions; call once all edges are there.
  void Index();
  size_t num_nodes() const { return nodes_; }
  const Neighbour* begin(int32_t node) const { return &neighbours_[offsets_[node]]; }
  const Neighbour* end(int32_t node) const { return &neighbours_[offsets_[node + 1]]; }

 private:
  struct Edge {
    int32_t a, b, label;
    int64_t b_per_a, a_per_b;
  };
  size_t nodes_;
  std::vector<Edge> edges_;
  std::vector<int64_t> offsets_;
  std::vector<Neighbour> neighbours_;
};

// The coarsest partition that refines `colours` and is equitable: nodes of one
// colour have equally many neighbours of each colour over edges of each label.
// Colours are numbered in the order of their first node.
std::vector<int32_t> RefineColours(const LabelledGraph& graph, std::vector<int32_t> colours);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_COLOUR_REFINEMENT_H_
