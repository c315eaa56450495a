// Kernels that take longer while their device communicates.

#include <algorithm>

#include "executor/simulator.h"

namespace plancast {

bool Simulator::KnowEnd(int32_t entity, int stream, int32_t kernel, int64_t start, int64_t* end) {
  CommTimes& times = comm_times_[entity];
  if (!times.empty()) {
    times.Forget(EarliestKernel(entity, stream, start));
    *end = times.EndOf(start, *end - start, in_.SlowdownOf(kernel));
  }
  if (horizon_ == nullptr || (ready_[entity] & ~(1u << stream)) != 0) return false;
  if (stream != kCompute) return *end <= horizon_->Of(entity, stream, now_, *end);
  // Bounds hold for ever, but not that a stream waits for this one.
  for (uint32_t woken = woken_[entity]; woken != 0; woken &= woken - 1) {
    const int32_t lane = entity * kNumStreams + __builtin_ctz(woken);
    known_until_[entity] =
        std::min(known_until_[entity], horizon_->OfLane(lane, stream, now_, *end));
  }
  woken_[entity] = 0;
  if (*end <= known_until_[entity]) return true;
  const int64_t known_until = horizon_->Of(entity, stream, now_, *end);
  if (*end > known_until) return false;
  known_until_[entity] = known_until;
  return true;
}

int64_t Simulator::EarliestKernel(int32_t entity, int stream, int64_t start) const {
  uint32_t others = in_.index.program(in_.ProgramOf(entity)).kernel_streams & ~(1u << stream);
  for (; others != 0; others &= others - 1) {
    const int32_t at = entity * kNumStreams + __builtin_ctz(others);
    const Lane& lane = lanes_[at];
    if (lane.done()) continue;
    start = std::min(start, lane.state == Lane::kKernel ? kernels_[at].start : lane.last_end);
  }
  return start;
}

void Simulator::StartKernel(int32_t lane, int64_t expected, const Kernel& kernel) {
  const int32_t version = kernels_[lane].version;
  kernels_[lane] = kernel;
  kernels_[lane].version = version;
  lanes_[lane].state = Lane::kKernel;
  lanes_[lane].bound = kernel.start + kernel.duration;
  ExpectEnd(lane, expected);
}

void Simulator::ExpectEnd(int32_t lane, int64_t end) {
  Kernel& kernel = kernels_[lane];
  kernel.expected = std::max(end, kernel.launched);
  Push({kernel.expected, kKernelEnd, lane, ++kernel.version});
}

void Simulator::ReviewKernels(int32_t entity) {
  review_[entity] = false;
  for (int stream = 0; stream < kNumStreams; ++stream) {
    const int32_t lane = entity * kNumStreams + stream;
    if (lanes_[lane].state != Lane::kKernel) continue;
    const Kernel& kernel = kernels_[lane];
    const int32_t spec = in_.BlockAt(entity, lanes_[lane].instance).spec[TaskOf(lane)];
    int64_t over = kernel.start + kernel.duration;
    if (KnowEnd(entity, stream, spec, kernel.start, &over)) {
      ++kernels_[lane].version;
      Finish(lane, std::max(over, kernel.launched));
    } else if (std::max(over, kernel.launched) != kernel.expected) {
      ExpectEnd(lane, over);
    }
  }
}

}  // namespace plancast
