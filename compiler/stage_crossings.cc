#include "compiler/stage_crossings.h"

#include <algorithm>

#include "compiler/program/pipeline_transfer.h"
#include "compiler/sharding/gradient_flow.h"

namespace plancast {
namespace {

// From virtual stage `from` to its neighbour `to`.
Crossing MakeCrossing(const ProgramInputs& in, Phase phase, int64_t from, int64_t to,
                      StreamKind stream) {
  const PlanOptions& options = *in.options;
  const auto virtual_stages = static_cast<int64_t>(in.stages->size());
  const auto stage_of = [&](int64_t v) { return (v + options.pp) % options.pp; };
  Crossing crossing;
  crossing.crosses = std::min(from, to) >= 0 && std::max(from, to) < virtual_stages &&
                     stage_of(from) != stage_of(to);
  crossing.border = std::min(from, to);
  crossing.phase = phase;
  crossing.silent = crossing.crosses && !CrossesIn(in, phase, crossing.border);
  crossing.crosses = crossing.crosses && !crossing.silent;
  crossing.offset = stage_of(to) - stage_of(from);
  crossing.stream = stream;
  const int64_t borders = phase == Phase::kForward ? 0 : virtual_stages;
  crossing.slots = kTransferSlots + (borders + crossing.border) * options.micro_batches;
  return crossing;
}

}  // namespace

std::vector<ChunkCrossings> CrossingsOf(const ProgramInputs& in, const StageContents& contents) {
  std::vector<ChunkCrossings> chunks(contents.chunks());
  for (size_t c = 0; c < chunks.size(); ++c) {
    const int64_t v = contents.VirtualStage(static_cast<int32_t>(c));
    const auto of = [&](Phase phase, int64_t from, int64_t to, StreamKind stream) {
      return MakeCrossing(in, phase, from, to, stream);
    };
    const int forward = static_cast<int>(Phase::kForward);
    const int backward = static_cast<int>(Phase::kBackward);
    chunks[c].v = v;
    chunks[c].receive[forward] = of(Phase::kForward, v - 1, v, StreamKind::kRecvPrev);
    chunks[c].receive[backward] = of(Phase::kBackward, v + 1, v, StreamKind::kRecvNext);
    chunks[c].send[forward] = of(Phase::kForward, v, v + 1, StreamKind::kSendNext);
    chunks[c].send[backward] = of(Phase::kBackward, v, v - 1, StreamKind::kSendPrev);
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
