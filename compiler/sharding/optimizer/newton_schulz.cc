#include "compiler/sharding/optimizer/newton_schulz.h"

#include <algorithm>

namespace plancast {
namespace {

constexpr double kBytes = 2;  // of an element in bf16

// `count` products, each launched by itself.
KernelSpec Product(int64_t count, int64_t m, int64_t n, int64_t k) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kGemm;
  kernel.label = "newton-schulz";
  kernel.dtype = DType::kBf16;
  kernel.batch = count;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const double rows = static_cast<double>(m), columns = static_cast<double>(n);
  const double depth = static_cast<double>(k), all = static_cast<double>(count);
  kernel.flops = 2 * all * rows * columns * depth;
  kernel.read_bytes = kBytes * all * (rows + columns) * depth;
  kernel.write_bytes = kBytes * all * rows * columns;
  kernel.launches = static_cast<int>(std::min<int64_t>(count, 1 << 20));
  return kernel;
}

}  // namespace

double NewtonSchulzFlops(int64_t r, int64_t c) {
  const double least = static_cast<double>(r), most = static_cast<double>(c);
  return kNewtonSchulzSteps * (4 * least * least * most + 2 * least * least * least);
}

std::vector<KernelSpec> NewtonSchulzProducts(const MatrixShape& shape) {
  const auto [r, c] = std::minmax(shape.rows, shape.columns);
  return {Product(shape.count, r, r, c), Product(shape.count, r, r, r),
          Product(shape.count, r, c, r)};
}

}  // namespace plancast
