#include "compiler/stage_crossings.h"

#include <algorithm>

#include "compiler/program/pipeline_transfer.h"
#include "compiler/sharding/gradient_flow.h"

namespace plancast {
namespace {

// From virtual stage `from` to its neighbour `to`; -1: there is none.
Crossing MakeCrossing(const ProgramInputs& in, Phase phase, int64_t from, int64_t to, bool sends) {
  const PlanOptions& options = *in.options;
  const StagePlacement& placement = *in.placement;
  const auto virtual_stages = static_cast<int64_t>(in.stages->size());
  Crossing crossing;
  crossing.phase = phase;
  if (!placement.Crosses(from, to)) return crossing;
  crossing.border = std::min(from, to);
  crossing.silent = !CrossesIn(in, phase, crossing.border);
  crossing.crosses = !crossing.silent;
  crossing.offset = placement.StageOf(to) - placement.StageOf(from);
  crossing.stream = PipelineStream(phase == Phase::kForward, placement.Onward(from, to), sends);
  const int64_t borders = phase == Phase::kForward ? 0 : virtual_stages;
  crossing.slots = kTransferSlots + (borders + crossing.border) * options.micro_batches;
  return crossing;
}

}  // namespace

std::vector<ChunkCrossings> CrossingsOf(const ProgramInputs& in, const StageContents& contents) {
  std::vector<ChunkCrossings> chunks(contents.chunks());
  for (size_t c = 0; c < chunks.size(); ++c) {
    const int64_t v = contents.VirtualStage(static_cast<int32_t>(c));
    chunks[c].v = v;
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      const int64_t before = in.placement->Before(v, phase), after = in.placement->After(v, phase);
      const auto p = static_cast<size_t>(phase);
      chunks[c].receive[p] = MakeCrossing(in, phase, before, v, /*sends=*/false);
      chunks[c].send[p] = MakeCrossing(in, phase, v, after, /*sends=*/true);
    }
  }
  return chunks;
}

int64_t FirstFreeSlot(const ProgramInputs& inputs) {
  const auto borders = static_cast<int64_t>(2 * inputs.stages->size());
  return kTransferSlots + borders * inputs.options->micro_batches +
         static_cast<int64_t>(inputs.shared->size()) +
         (inputs.options->optimizer == StepTime::kPostValidated ? inputs.options->pp : 0);
}

}  // namespace plancast
