#ifndef PLANCAST_COMPILER_SPREAD_FLOW_H_
#define PLANCAST_COMPILER_SPREAD_FLOW_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/schedule/vocabulary_schedule.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What all stages exchange where each has a part of the vocabulary (VocabularySchedule): what the
// last stage's layers make is broadcast to the output layer's parts, and the gradients of what the
// first stage's read to the input layer's; sums come back to these two stages. With `interlaced`
// compute waits for each of them; else they run beside it, and so do the sums inside of the loss,
// which every part corrects what it kept with.
class SpreadFlow {
 public:
  // `inputs`, `contents` and `writer` must outlive it.
  SpreadFlow(const ProgramInputs& inputs, int64_t stage, const StageContents& contents,
             ProgramWriter* writer);

  // Whether it brings a step its input, then the instance that does (-1: none), or takes what the
  // step has made.
  bool Brings(const ScheduleStep& step) const;
  int32_t Fetch(const ScheduleStep& step);
  // Before compute of a step is written.
  void BeforeRun(const ScheduleStep& step);
  // `feeder`: the step's last instance.
  void PassOn(const ScheduleStep& step, int32_t feeder);

 private:
  enum class Way : uint8_t { kBroadcast, kSums };

  bool AtOnce() const { return options_.vocab_parallel == VocabParallel::kInterlaced; }
  StreamKind stream() const { return AtOnce() ? StreamKind::kModelComm : StreamKind::kAllStages; }
  // The modules of the two layers on this stage.
  const CompiledBody& BodyOf(int32_t chunk) const {
    return contents_.BodyOf(contents_.Runs(chunk).back());
  }
  // What a port's tensors weigh on a device: between layers and the output layer, the input layer
  // and layers.
  const std::vector<int64_t>& PortBytes(int32_t chunk, Phase phase) const;
  bool AtRoot(int32_t chunk) const;
  // Whether a pass of layers begins with what the input (backward: the output) layer makes, or ends
  // with what the other one reads.
  bool BeginsLayers(const ScheduleStep& step) const { return AtEnd(step, Phase::kForward); }
  bool EndsLayers(const ScheduleStep& step) const { return AtEnd(step, Phase::kBackward); }
  bool AtEnd(const ScheduleStep& step, Phase first) const;

  int32_t Broadcast(const ScheduleStep& step, int32_t feeder);
  // Sums inside of ops, then those of the step's results.
  int32_t Sum(const ScheduleStep& step, const std::vector<CommSpec>& inner,
              const std::vector<CommSpec>& results, int32_t feeder);
  BlockTemplate BroadcastBlock(const std::vector<int64_t>& bytes, bool root,
                               const char* name) const;
  BlockTemplate SumBlock(const std::vector<CommSpec>& inner, const std::vector<CommSpec>& results,
                         const std::vector<int64_t>& bytes, bool root, const char* name) const;

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const int64_t stage_;
  const StageContents& contents_;
  ProgramWriter& writer_;
  const VocabularyChunks chunks_;
  const int64_t last_layers_;  // virtual stage
  const int pp_axis_;
  // By phase and micro-batch: what the layers of this stage hand to the others, what these bring
  // them, and when sums inside of the output layer's ops are there.
  std::map<std::pair<Phase, int32_t>, int32_t> handed_, brought_;
  std::map<int32_t, int32_t> summed_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SPREAD_FLOW_H_
