#ifndef PLANCAST_EXECUTOR_FOLD_ORBITS_H_
#define PLANCAST_EXECUTOR_FOLD_ORBITS_H_

#include <cstdint>
#include <vector>

#include "cluster/machine.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Devices that are alike before anything is simulated. A device's number is cut
// into digits along the axes of the mesh and the levels of the machine, and the
// values of a digit into classes whose values may be exchanged without changing
// anything: all that no program, straggler or slow link tells apart. An orbit is
// one class per digit. Exchanging values is an automorphism of {devices, groups,
// links}, so orbits are as good as devices for colour refinement, and there are
// few of them:
//
//     dp=128 tp=8, device 17 slow        dp: {2} {others}   tp: {1} {others}
//                                         4 orbits for 1,024 devices
//
// Values whose devices lie in other sections of a mixed machine are told apart as well.
// Levels that cut across an axis leave an outermost digit whose values are
// exchanged only inside a host, pod or link, or not at all.
class DeviceOrbits {
 public:
  // `discrete`: every device is an orbit of its own.
  DeviceOrbits(const ExecutionGraph& graph, const Machine& machine, bool discrete);

  int32_t size() const { return size_; }
  int32_t OrbitOf(int64_t device) const;
  // The lowest device.
  int64_t Representative(int32_t orbit) const;
  int64_t Count(int32_t orbit) const;

 private:
  struct Classes {
    int64_t stride = 1, size = 1;
    std::vector<int32_t> of_value;
    std::vector<int64_t> lowest, count;  // per class
  };

  void AddDigit(const ExecutionGraph& graph, const Machine& machine, int64_t stride, int64_t size,
                bool discrete);

  std::vector<int64_t> special_;  // devices that are unlike others or behind such links
  std::vector<Classes> digits_;   // innermost first
  int32_t size_ = 1;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_ORBITS_H_
