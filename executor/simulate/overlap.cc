#include "executor/simulate/overlap.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;

bool SlowsKernels(const SimInput& in) {
  const std::vector<int64_t>& own = in.prices.slowdown_q20;
  return own.empty() ? in.slowdown_q20 > kOne
                     : std::any_of(own.begin(), own.end(), [](int64_t q) { return q > kOne; });
}

bool SlowsTransfers(const SimInput& in) {
  const std::vector<int64_t>& of_kind = in.comm_slowdown_of_kind_q20;
  return of_kind.empty()
             ? in.comm_slowdown_q20 > kOne
             : std::any_of(of_kind.begin(), of_kind.end(), [](int64_t q) { return q > kOne; });
}

}  // namespace

Overlap::Overlap(const SimInput& in)
    : slows_kernels_(SlowsKernels(in)),
      slows_transfers_(SlowsTransfers(in)),
      entities_(in.sim.entities.size()) {}

}  // namespace plancast
