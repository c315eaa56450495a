#ifndef PLANCAST_COMPILER_LOWER_KERNELS_MERGED_PRODUCTS_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_MERGED_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "graph/kernel_spec.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"

namespace plancast {

// A matrix product with what tells whether two of them run as one.
struct Product {
  Contraction size;
  int target = -1;
  std::vector<int> operands;  // tensors
  std::vector<int> reduced;   // factors
  // Of a convolution (window 0: none); `width` is that of the images that result.
  int64_t window = 0, stride = 1, width = 0;
  bool grouped = false;      // one product for each of several weights
  int64_t row_multiple = 8;  // KernelSpec's
};

// The tensor that only adds `target` to others (the parts of an input gradient
// that several weights contribute to), or `target` itself.
int SummedInto(const OpRule& rule, int target);

// A product that reads windows is a convolution: a map that takes no merged dim
// apart moves the window's factors along the one it is tied to.
void NoteWindow(const Statement& statement, const std::vector<int64_t>& extents, Product* product);

// What rows of both operands of a batched product are multiples of; not of a convolution.
void NoteRows(const OpRule& rule, const std::vector<int64_t>& extents, Product* product);

// Products of one op run as one wider product where fused weights make them
// so: those summed into one target follow each other along k (dgrad of q, k and
// v); those of one operand over the same reduced factors lie side by side
// (forward and wgrad of q, k and v, of gate and up).
void MergeProduct(const Product& p, GemmPass pass, std::vector<Product>* merged);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_MERGED_PRODUCTS_H_
