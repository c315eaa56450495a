#ifndef PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_FLOW_H_
#define PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_FLOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/activations/offload_blocks.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"

namespace plancast {

// Activations of one stage on their way to host memory and back, or shared out over ranks: which
// layers of a pass run as which block. Without homes of their own every run is one part, as it is.
class OffloadFlow {
 public:
  // Layers of a run that run as one block. `beside`: the bound body whose kept tensors are
  // copied alongside each of them, out in forward passes and in in backward ones; -1: none.
  struct Part {
    const StageRun* run = nullptr;
    int64_t layer_begin = 0, count = 0;
    int beside = -1;
    bool waits = false;  // for its own tensors, in backward passes
  };

  OffloadFlow(const ProgramInputs& inputs, const StageContents& contents, ProgramWriter* writer);

  bool active() const { return active_; }
  // The parts of a chunk, in the order of the phase.
  const std::vector<Part>& Parts(int32_t chunk, Phase phase) const {
    return (phase == Phase::kForward ? forward_ : backward_)[chunk];
  }
  // The block that a part runs as: of number `plain` in the catalogue without copies.
  int32_t BlockOf(const Part& part, Phase phase, int32_t plain);
  // What parts make of layers of a run that run as one block otherwise, in the order of
  // the phase.
  std::vector<Part> Cut(int32_t chunk, Phase phase, const StageRun& run, int64_t layer_begin,
                        int64_t count) const;

  // A forward pass is over with instance `feeder`: copies out what no layer came after.
  void EndForward(const ScheduleStep& step, int32_t feeder);
  // A backward pass begins: copies in what no layer runs before.
  void BeginBackward(const ScheduleStep& step);
  // What a part waits for beyond its data; and that it has been appended as `instance`.
  std::vector<Join> JoinsOf() const;
  void Note(const Part& part, int32_t plain, int32_t instance);

 private:
  const std::vector<KeptTensor>& TensorsOf(int bound_body) const { return tensors_[bound_body]; }
  // What layers of a run keep and share out over ranks; and what is copied of one: parts of that.
  std::vector<KeptCopies> SharedOut(const StageRun& run) const;
  std::vector<KeptTensor> CopiedOf(const StageRun& run) const;
  // The block of number `plain` with parts of what its layers keep, if a home shares that out.
  int32_t InParts(const StageRun& run, Phase phase, int32_t plain);
  // What nodes say of the layers of a run.
  std::optional<bool> OnHost(const StageRun& run) const;
  void MakeParts(int32_t chunk, int64_t* budget);
  // Of the last layer of the chunk, if that is offloaded; -1.
  int LastBody(int32_t chunk) const { return last_body_[chunk]; }

  const ProgramInputs& in_;
  const StageContents& contents_;
  ProgramWriter& writer_;
  const bool plan_offloads_, active_;
  std::vector<std::vector<KeptTensor>> tensors_;  // per bound body
  std::vector<std::vector<Part>> forward_, backward_;
  std::vector<int> last_body_;
  int copying_port_ = 0;
  int32_t copying_ = -1;  // the newest instance with copies that the next part waits for
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_FLOW_H_
