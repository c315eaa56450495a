#include "compiler/sharding/sharded_flow.h"

#include "absl/types/span.h"

namespace plancast {

std::vector<Join> ShardedFlow::Begin(const ScheduleStep& step, const ShardedPasses::Pass& pass,
                                     int32_t went_back) {
  // Forward passes begin behind all compute; gathers of backward passes while the last
  // unit before them computes, unless nothing is prefetched.
  Join behind{writer_.last_compute(), -1, -1};
  if (behind.from >= 0 && step.phase == Phase::kBackward && in_.options->prefetch > 0) {
    const int32_t block = writer_.program().instances[behind.from].block;
    behind.from_port = static_cast<int16_t>(writer_.BlockAt(block).out_ports.size() - 1);
  }
  const bool gathers = stage_.gathers() && step.phase != Phase::kWeight;
  const int waits = behind.from >= 0 && gathers ? 1 : 0;
  std::vector<Join> joins;
  if (went_back >= 0) joins.push_back({went_back, -1, -1});
  for (const int32_t block : pass.ahead) {
    const int32_t gather = writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk,
                                          absl::MakeConstSpan(&behind, waits));
    joins.push_back({gather, -1, static_cast<int16_t>(pass.own_ports + joins.size())});
  }
  if (waits > 0) joins.push_back(behind);
  return joins;
}

}  // namespace plancast
