#ifndef PLANCAST_PLANNER_SEARCH_PRODUCT_GRID_H_
#define PLANCAST_PLANNER_SEARCH_PRODUCT_GRID_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace plancast {

// A matrix product C[m,n] += A[m,k] * B[k,n] on a grid of ranks, each of which does one block of
// the iteration space: m/rows x n/columns x k/layers.
struct ProductGrid {
  int64_t rows = 1, columns = 1, layers = 1;
  // Elements of A, B and C that a rank touches: the surface of its block, which bounds what it
  // must receive or send (COSMA: Kwasniewski et al., SC'19).
  double surface = 0;
  // Of these, what is not its own share of the three matrices: what it receives of A and B and
  // sends of C.
  double moved = 0;
  // Slices of its block along k that it goes over one after the other, so that what it holds fits:
  // its part of C and one slice each of A and B.
  int64_t steps = 1;
  double held = 0;  // elements
  // Of the rank with the most work, over the mean. The figures above are those of that rank.
  double busiest = 1;

  friend bool operator==(const ProductGrid& a, const ProductGrid& b) {
    return a.rows == b.rows && a.columns == b.columns && a.layers == b.layers;
  }
};

struct ProductGridRequest {
  int64_t m = 1, n = 1, k = 1, ranks = 1;
  std::optional<double> memory = {};  // elements that a rank may hold; absent: as many as it likes
  // Ranks that may be left idle: a number with few divisors has only long and thin grids.
  int64_t most_idle = 0;
  // Every dim is cut into blocks of so many, which are dealt out to the ranks along it in turn
  // (block-cyclic, ScaLAPACK's way): where their number does not divide, some have one more.
  // Absent: all ranks have equal parts.
  std::optional<int64_t> block = {};
};

// All grids that use the ranks and fit, those of the least surface first; of equal surface in the
// order of rows, then columns. Grids with more ranks along a dim than it has elements are left out.
// Errors: sizes or ranks that are not positive; a memory that no grid fits, with the least that
// one needs.
absl::StatusOr<std::vector<ProductGrid>> ProductGrids(const ProductGridRequest& request);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_PRODUCT_GRID_H_
