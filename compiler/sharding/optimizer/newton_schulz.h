#ifndef PLANCAST_COMPILER_SHARDING_OPTIMIZER_NEWTON_SCHULZ_H_
#define PLANCAST_COMPILER_SHARDING_OPTIMIZER_NEWTON_SCHULZ_H_

#include <cstdint>
#include <vector>

#include "graph/kernel_spec.h"

namespace plancast {

// Matrices of one shape that a device orthogonalises.
struct MatrixShape {
  int64_t count = 0, rows = 0, columns = 0;
};

// Of the parameters whose state a device keeps, those in matrices that Muon updates: elements, and
// the matrices, which are whole.
struct KeptMatrices {
  int64_t elements = 0;
  std::vector<MatrixShape> shapes;
};

// Steps of the iteration (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural
// networks"; Megatron-Core's --muon-num-ns-steps).
inline constexpr int kNewtonSchulzSteps = 5;

// FLOPs of the iteration over one matrix with sides r <= c: each step takes the Gram matrix X X^T,
// its square, and the product of a polynomial of both with X, 4 r^2 c + 2 r^3.
double NewtonSchulzFlops(int64_t r, int64_t c);

// The products of one step over all matrices of a shape, in bf16.
std::vector<KernelSpec> NewtonSchulzProducts(const MatrixShape& shape);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_OPTIMIZER_NEWTON_SCHULZ_H_
