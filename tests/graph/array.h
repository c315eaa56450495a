#ifndef PLANCAST_TESTS_GRAPH_ARRAY_H_
#define PLANCAST_TESTS_GRAPH_ARRAY_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "graph/layout/domain.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// A tensor on one device: room for all elements, of which some are there.
template <typename T>
struct Array {
  std::vector<int64_t> shape;
  std::vector<T> values;
  std::vector<bool> present;

  static Array Empty(std::vector<int64_t> shape) {
    int64_t size = 1;
    for (int64_t n : shape) size *= n;
    return {std::move(shape), std::vector<T>(size), std::vector<bool>(size, false)};
  }
};

// Calls `visit(index, flat)` for every element of `shape` inside `sets`.
inline void ForEachIndex(
    const std::vector<int64_t>& shape, const std::vector<IndexSet>& sets,
    const std::function<void(const std::vector<int64_t>& index, int64_t flat)>& visit) {
  std::vector<int64_t> index(shape.size());
  std::function<void(size_t, int64_t)> walk = [&](size_t dim, int64_t flat) {
    if (dim == shape.size()) return visit(index, flat);
    for (const IndexRange& range : sets[dim]) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        index[dim] = i;
        walk(dim + 1, flat * shape[dim] + i);
      }
    }
  };
  walk(0, 0);
}

inline std::vector<IndexSet> AllOf(const std::vector<int64_t>& shape) {
  std::vector<IndexSet> sets;
  for (int64_t n : shape) sets.push_back({{0, n}});
  return sets;
}

inline std::vector<int64_t> ShapeOf(const RuleTensor& tensor, const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape;
  for (int f : tensor.factors) shape.push_back(extents[f]);
  return shape;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_ARRAY_H_
