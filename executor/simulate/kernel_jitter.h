#ifndef PLANCAST_EXECUTOR_SIMULATE_KERNEL_JITTER_H_
#define PLANCAST_EXECUTOR_SIMULATE_KERNEL_JITTER_H_

#include <cstdint>

namespace plancast {

// How long kernels and communications really take, each time anew. A pure function: what is asked
// for twice is answered alike, in whatever order.
class KernelJitter {
 public:
  virtual ~KernelJitter() = default;
  // Picoseconds, >= 0, that a kernel takes alone. `issue`: its place in the issue
  // order of the entity's program; `nominal_ps`: what it is priced at.
  virtual int64_t DurationPs(int32_t entity, int64_t issue, int64_t nominal_ps) const = 0;
  // The factor, >= 0, on the latency and the bytes of a communication of a group.
  // `occurrence` tells those of a group apart: the issue of its task, or
  // -1 - rendezvous.
  virtual double CommFactor(int32_t group, int64_t occurrence) const = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_KERNEL_JITTER_H_
