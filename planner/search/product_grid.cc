#include "planner/search/product_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Of `size` elements, those of the first of `parts` ranks, which has the most.
double MostOf(int64_t size, int64_t parts, std::optional<int64_t> block) {
  if (!block.has_value()) return static_cast<double>(size) / static_cast<double>(parts);
  const int64_t each = std::min(*block, size);
  const int64_t blocks = (size + each - 1) / each;
  const int64_t own = (blocks + parts - 1) / parts;
  const bool has_last = (blocks - 1) % parts == 0;  // which is what is left over
  return static_cast<double>(has_last ? (own - 1) * each + size - (blocks - 1) * each : own * each);
}

// The grid with all that follows from it; what it holds with as few slices as fit, or with the
// thinnest if none do.
ProductGrid Measured(const ProductGridRequest& request, ProductGrid grid) {
  const auto m = static_cast<double>(request.m), n = static_cast<double>(request.n),
             k = static_cast<double>(request.k);
  const auto ranks = static_cast<double>(grid.rows * grid.columns * grid.layers);
  const double rows = MostOf(request.m, grid.rows, request.block),
               columns = MostOf(request.n, grid.columns, request.block),
               slices = MostOf(request.k, grid.layers, request.block);
  const double of_a = rows * slices, of_b = slices * columns, of_c = rows * columns;
  grid.busiest = rows * columns * slices / (m * n * k / ranks);
  grid.surface = of_a + of_b + of_c;
  grid.moved = grid.surface - (m * k + k * n + m * n) / ranks;
  if (request.memory.has_value()) {
    const double most = std::max(1.0, std::floor(slices));
    const double room = *request.memory - of_c;
    const double steps = room > 0 ? std::ceil((of_a + of_b) / room) : most;
    grid.steps = static_cast<int64_t>(std::clamp(steps, 1.0, most));
  }
  grid.held = of_c + (of_a + of_b) / static_cast<double>(grid.steps);
  return grid;
}

}  // namespace

absl::StatusOr<std::vector<ProductGrid>> ProductGrids(const ProductGridRequest& request) {
  if (request.m < 1 || request.n < 1 || request.k < 1 || request.ranks < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a product of m=", request.m, ", n=", request.n,
                                                   " and k=", request.k, " on ", request.ranks,
                                                   " ranks: sizes and ranks are 1 or more."));
  }
  if (request.block.value_or(1) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("`block` is ", *request.block, "; it is 1 or more."));
  }
  if (request.most_idle < 0 || request.most_idle >= request.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("of ", request.ranks, " ranks, `most_idle` is ",
                                                   request.most_idle, "; it is 0 to ",
                                                   request.ranks - 1, "."));
  }
  std::vector<ProductGrid> grids;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t used = request.ranks; used >= request.ranks - request.most_idle; --used) {
    for (int64_t rows = 1; rows <= std::min(used, request.m); ++rows) {
      if (used % rows != 0) continue;
      for (int64_t columns = 1; columns <= std::min(used / rows, request.n); ++columns) {
        if (used / rows % columns != 0) continue;
        const int64_t layers = used / rows / columns;
        if (layers > request.k) continue;
        const ProductGrid grid = Measured(request, {rows, columns, layers});
        least = std::min(least, grid.held);
        if (grid.held <= request.memory.value_or(grid.held)) grids.push_back(grid);
      }
    }
  }
  if (grids.empty()) {
    if (std::isinf(least)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no grid of ", request.ranks, " ranks has at most ", request.m, " x ",
                       request.n, " x ", request.k, " of them. Use fewer ranks."));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "no grid of ", request.ranks, " ranks holds its part in ", *request.memory,
        " elements; the smallest needs ", std::ceil(least), ". Use more ranks or more memory."));
  }
  std::stable_sort(grids.begin(), grids.end(), [](const ProductGrid& a, const ProductGrid& b) {
    return std::make_tuple(a.surface, a.rows, a.columns) <
           std::make_tuple(b.surface, b.rows, b.columns);
  });
  return grids;
}

}  // namespace plancast
