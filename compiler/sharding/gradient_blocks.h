#ifndef PLANCAST_COMPILER_SHARDING_GRADIENT_BLOCKS_H_
#define PLANCAST_COMPILER_SHARDING_GRADIENT_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "compiler/lower/lower_block.h"
#include "compiler/program/block_catalogue.h"
#include "graph/dtype.h"

namespace plancast {

// Backward blocks of software whose gradients are made by the pass that reaches their
// parameters (PyTorch's `.grad` once it was set to None): torch/csrc/autograd/functions/
// accumulate_grad.h keeps the first one that comes, and adds later ones into it.

// The name of all of them, so that the optimizer gives them up as one.
inline constexpr char kFreshGradients[] = "gradients";

// The block in the first pass: gradients of `element_bytes` come and stay, of at most
// `parameters` elements. What is more is of parameters whose gradient is there: those used
// twice, or tied to a module that runs backward before.
// `whole`: of these tensors of the body alone.
BlockTemplate WithFreshGradients(const BlockTemplate& backward, int64_t parameters,
                                 double element_bytes, const std::vector<bool>* whole = nullptr);

// What they take, in one copy of the block.
int64_t FreshGradientBytes(const BlockTemplate& backward, int64_t parameters, double element_bytes,
                           const std::vector<bool>* whole = nullptr);

// The block in later passes: each gradient, of `made_bytes` an element, lies beside the
// sum until it has been added. The block itself if products add as they go.
bool AddsGradients(const BlockTemplate& backward);
BlockTemplate WithAddedGradients(const BlockTemplate& backward, double made_bytes,
                                 const std::vector<bool>* whole = nullptr);

// A pass of a chunk: its first makes gradients, of `sum` type, others add what products
// make to them.
struct GradientPass {
  bool first = false;
  int64_t parameters = 0;
  DType sum = DType::kFp32, made = DType::kBf16;
  const std::vector<bool>* whole = nullptr;  // per tensor: the pass does so; null: for all
};
// The number in the catalogue of block `plain` with what such a pass does.
int32_t WithGradients(int32_t plain, const GradientPass& pass, BlockCatalogue* catalogue);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_GRADIENT_BLOCKS_H_
