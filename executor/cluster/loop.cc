#include "executor/cluster/loop.h"

#include <algorithm>

namespace plancast {

int64_t Loop::PhasePs(int phase) const {
  return std::max(phases[phase].compute_ps, TransferPs(phase));
}

int64_t Loop::IterationPs() const {
  int64_t sum = 0;
  for (size_t p = 0; p < phases.size(); ++p) sum += PhasePs(static_cast<int>(p));
  return sum;
}

int64_t Loop::CommunicationPs() const {
  int64_t sum = 0;
  for (size_t p = 0; p < phases.size(); ++p) sum += TransferPs(static_cast<int>(p));
  return sum;
}

int64_t Loop::ComputePs() const {
  int64_t sum = 0;
  for (const LoopPhase& phase : phases) sum += phase.compute_ps;
  return sum;
}

int64_t AloneLevel(absl::Span<const Fluid::Use> uses, absl::Span<const int64_t> capacities,
                   int64_t weight, int64_t rate_cap_bytes_per_s) {
  // As ActivityKinds has it; rates stay below 2^61.
  const int64_t cap = std::min(rate_cap_bytes_per_s, int64_t{1} << 45) << 16;
  int64_t level = std::max<int64_t>(cap / weight, 1);
  for (const Fluid::Use& use : uses) {
    const int128 full =
        (int128{capacities[use.resource]} << 36) / (int128{use.coefficient_q20} * weight);
    level = std::min(level, std::max<int64_t>(SaturateToInt64(full), 1));
  }
  return level;
}

LoopState LoopState::Fresh(const Loop& loop) {
  LoopState state;
  state.compute_left_ps = loop.phases[0].compute_ps;
  state.work_left = loop.phases[0].work;
  return state;
}

}  // namespace plancast
