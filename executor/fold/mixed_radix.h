#ifndef PLANCAST_EXECUTOR_FOLD_MIXED_RADIX_H_
#define PLANCAST_EXECUTOR_FOLD_MIXED_RADIX_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/device_mesh.h"
#include "cluster/machine.h"

namespace plancast {

// One digit of a device's number: part of a mesh axis, and either inside or
// outside each level of the machine.
struct Digit {
  int axis = 0;
  int64_t size = 1;
  int64_t stride = 1;
};

// Device numbers of a mesh on a machine as digits, such that every axis of the
// mesh, every level of the machine and every link is a set of digits:
//
//     pp=2 dp=2 tp=8 on hosts of 4      pp | dp | tp' | tp
//                                        host number  | place in the host
//
// Shifting a group along digits that it does not vary then leaves its relation
// to all hosts and links as it was, which is what folding in closed form needs.
struct MixedRadix {
  std::vector<Digit> digits;  // innermost first, sizes > 1
  // Per link class: bit mask of the digits that choose the instance.
  std::vector<uint64_t> link_digits;

  // std::nullopt if a host, pod or link of the machine cuts across an axis.
  // `host_memory`: whether links for the host's memory count (fold/blocks.h).
  static std::optional<MixedRadix> Split(const DeviceMesh& mesh, const Machine& machine,
                                         bool host_memory = true);

  int64_t ValueOf(int digit, int64_t device) const {
    return device / digits[digit].stride % digits[digit].size;
  }
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_MIXED_RADIX_H_
