#ifndef PLANCAST_COMPILER_PAIR_RUN_H_
#define PLANCAST_COMPILER_PAIR_RUN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/gradient_flow.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Layers of a pass with one block: forward they run from the first on, back from the last.
struct PassLayers {
  const StageRun* run = nullptr;
  int32_t number = 0;  // of the block in the catalogue
  int64_t begin = 0, count = 0;
  std::vector<Join> joins;               // what the first waits for beside what feeds it
  int ports = ProgramWriter::kAllPorts;  // of the first, those that its feeder brings
  bool reduces = false;                  // the blocks reduce gradients themselves
};

// Writes the two steps of a pair (ScheduleStep::pairs) in Megatron's order (run of
// megatron/core/models/common/model_chunk_schedule_plan.py): what comes before layers, forward,
// then back; layers of both together, as many as both have; those that are left, back first.
class PairRun {
 public:
  // `gradients`: null unless the backward pass reduces them.
  PairRun(const std::vector<Segment>& segments, const StageContents& contents,
          ProgramWriter* writer, GradientFlow* gradients)
      : segments_(segments), contents_(contents), writer_(*writer), gradients_(gradients) {}

  struct Pass {
    const ScheduleStep* step = nullptr;
    std::vector<PassLayers> layers;
    // The instance that feeds it (-1: none); then the last that it wrote.
    int32_t* feeder = nullptr;
    size_t next = 0;  // of `layers`
  };
  void Run(Pass forward, Pass backward);

  // The last instance that goes back, and that reduces gradients itself; -1: none does.
  int32_t went_back() const { return went_back_; }
  int32_t reduced() const { return reduced_; }

 private:
  static bool Has(const Pass& pass) { return pass.next < pass.layers.size(); }
  // Whether the next layers of a pass are of a list.
  bool InList(const Pass& pass) const {
    return segments_[pass.layers[pass.next].run->segment].in_list();
  }
  PassLayers Take(int64_t count, Pass* pass) const;
  void Note(const PassLayers& layers, Phase way, int32_t instance);
  void Alone(Pass* pass);
  void Together(Pass* forward, Pass* backward);

  const std::vector<Segment>& segments_;
  const StageContents& contents_;
  ProgramWriter& writer_;
  GradientFlow* const gradients_;
  int32_t went_back_ = -1, reduced_ = -1;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PAIR_RUN_H_
