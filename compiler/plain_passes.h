#ifndef PLANCAST_COMPILER_PLAIN_PASSES_H_
#define PLANCAST_COMPILER_PLAIN_PASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/program/program_writer.h"
#include "compiler/schedule/pipeline_schedule.h"

namespace plancast {

// Most passes of a chunk append what the one before did, each run of layers behind the one before
// it, or those of W apart from each other: what that is need not be found again.
class PlainPasses {
 public:
  PlainPasses(size_t chunks, ProgramWriter* writer) : writer_(*writer), runs_(kPasses * chunks) {}

  // Whether it is known what passes like the step of its chunk append.
  bool Knows(const ScheduleStep& step) const { return !runs_[At(step)].empty(); }
  // Appends that behind `feeder`; the last instance.
  int32_t Run(const ScheduleStep& step, int32_t feeder) {
    for (const LayerRun& run : runs_[At(step)]) {
      feeder =
          writer_.AppendCompute(run.block, step.phase, step, run.layer_begin, run.count, feeder);
    }
    return feeder;
  }
  // Appends that, each by itself, the first behind `joins`.
  void RunApart(const ScheduleStep& step, absl::Span<const Join> joins) {
    for (const LayerRun& run : runs_[At(step)]) {
      writer_.AppendCompute(run.block, step.phase, step, run.layer_begin, run.count, /*feeder=*/-1,
                            joins);
      joins = {};
    }
  }
  // They append so many layers of a block, behind what was noted before.
  void Note(const ScheduleStep& step, int32_t block, int64_t layer_begin, int64_t count) {
    runs_[At(step)].push_back({block, layer_begin, count});
  }
  void Forget(const ScheduleStep& step) { runs_[At(step)].clear(); }

 private:
  static constexpr size_t kPasses = 3;  // F, B, W
  struct LayerRun {
    int32_t block;
    int64_t layer_begin, count;
  };
  static size_t At(const ScheduleStep& step) {
    return kPasses * static_cast<size_t>(step.chunk) + static_cast<size_t>(step.phase);
  }

  ProgramWriter& writer_;
  std::vector<std::vector<LayerRun>> runs_;  // by chunk and pass
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PLAIN_PASSES_H_
