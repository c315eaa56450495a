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
  // Chunks that all stages have a part of are handed on by others (SpreadVocabulary).
  if (options.spreads_vocabulary() && std::max(from, to) >= options.pp * options.vpp) {
    return crossing;
  }
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

std::vector<size_t> AlikeChunks(const ProgramInputs& in, const StageContents& contents,
                                const std::vector<ChunkCrossings>& chunks, bool apart) {
  const auto same_transfer = [&](const Crossing& a, const Crossing& b) {
    const auto body = [&](const Crossing& c) { return (*in.stages)[c.border].back().bound_body; };
    return a.crosses == b.crosses && a.silent == b.silent &&
           (!a.crosses || (a.offset == b.offset && a.stream == b.stream && body(a) == body(b)));
  };
  const auto same_run = [&](const StageRun& a, const StageRun& b) {
    return a.segment == b.segment && a.bound_body == b.bound_body && a.count == b.count &&
           contents.BorrowedBy(a) == contents.BorrowedBy(b);
  };
  const auto same = [&](size_t c, size_t d) {
    const std::vector<StageRun>& a = contents.Runs(static_cast<int32_t>(c));
    const std::vector<StageRun>& b = contents.Runs(static_cast<int32_t>(d));
    const ChunkCrossings &x = chunks[c], &y = chunks[d];
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_run) &&
           std::equal(x.receive, x.receive + 2, y.receive, same_transfer) &&
           std::equal(x.send, x.send + 2, y.send, same_transfer);
  };
  std::vector<size_t> alike(chunks.size());
  for (size_t c = 0; c < chunks.size(); ++c) {
    alike[c] = c;
    for (size_t d = 0; d < c && alike[c] == c && !apart; ++d) {
      if (alike[d] == d && same(c, d)) alike[c] = d;
    }
  }
  return alike;
}

bool TransfersBlock(const PlanOptions& options, const SoftwareProfile& profile) {
  return profile.pipeline.p2p_blocking && CanBlock(options) &&
         (options.vpp == 1 || !profile.pipeline.interleaved_p2p_overlaps);
}

BlockedSteps::BlockedSteps(const PlanOptions& options, const SoftwareProfile& profile,
                           const std::vector<ScheduleStep>& schedule)
    : flush_(TransfersBlock(options, profile) ? 0 : schedule.size()) {
  if (!profile.pipeline.ends_block || options.vpp == 1 || !CanBlock(options)) return;
  const auto is = [](Phase phase) {
    return [phase](const ScheduleStep& step) { return step.phase == phase; };
  };
  const auto first_back = std::find_if(schedule.begin(), schedule.end(), is(Phase::kBackward));
  const auto last_forward = std::find_if(schedule.rbegin(), schedule.rend(), is(Phase::kForward));
  warm_up_ = static_cast<size_t>(first_back - schedule.begin());
  flush_ = static_cast<size_t>(last_forward.base() - schedule.begin());
  if (flush_ <= warm_up_) return;  // they never take turns
  // The first backward pass follows a forward one of its turn, the last forward pass leads one.
  if (warm_up_ > 0) --warm_up_;
  ++flush_;
}

void StageTransfers::Send(Crossing* crossing, const ScheduleStep& step, int32_t feeder) {
  if (crossing->block < 0) {
    crossing->block = BlockOf(*crossing, /*sends=*/true);
    crossing->ports = writer_.BlockAt(crossing->block).num_in_ports;
  }
  const int32_t index = writer_.AppendTransfer(crossing->block, step.micro_batch, step.chunk,
                                               feeder, crossing->ports, step.phase);
  Meet(index, *crossing, step);
}

int32_t StageTransfers::Receive(Crossing* crossing, const ScheduleStep& step) {
  if (crossing->block < 0) crossing->block = BlockOf(*crossing, /*sends=*/false);
  const Join behind_compute{writer_.last_compute(), -1, -1};
  const bool waits = blocking_ && writer_.last_compute() >= 0;
  const int32_t index = writer_.Append(crossing->block, Phase::kComm, step.micro_batch, step.chunk,
                                       absl::MakeConstSpan(&behind_compute, waits ? 1 : 0));
  Meet(index, *crossing, step);
  return index;
}

void StageTransfers::Meet(int32_t index, const Crossing& crossing, const ScheduleStep& step) {
  writer_.Meet(index, crossing.slots + step.micro_batch);
  if (blocking_) writer_.HoldCompute(index);
}

// Different bodies may hand on the same.
int32_t StageTransfers::BlockOf(const Crossing& crossing, bool sends) {
  // Where stages have meshes of their own, others are empty.
  const bool alike = in_.borders == nullptr;
  const int64_t body = alike ? (*in_.stages)[crossing.border].back().bound_body : 0;
  const BlockKey key{BlockKey::kCrossing, alike ? body : crossing.border,
                     crossing.offset * kNumStreams + static_cast<int>(crossing.stream)};
  BlockCatalogue& catalogue = writer_.catalogue();
  int32_t number = catalogue.Find(key);
  if (number < 0) {
    const PipelineTransfer transfer =
        alike ? TransferOver(in_, *(*in_.bodies)[body], crossing.phase, crossing.offset)
              : TransferOverBorder(in_, (*in_.borders)[crossing.border], crossing.phase,
                                   in_.placement->StageOf(crossing.border) == stage_);
    number = catalogue.NumberOfSharedText(TransferKey(transfer, crossing.stream), [&] {
      return sends ? SendBlock(transfer, crossing.stream)
                   : ReceiveBlock(*in_.mesh, transfer, crossing.stream);
    });
    catalogue.Know(key, number);
  }
  return writer_.BlockOf(number);
}

int64_t FirstFreeSlot(const ProgramInputs& inputs) {
  return NormSlots(inputs) +
         (inputs.options->optimizer == StepTime::kPostValidated ? inputs.options->pp : 0);
}

}  // namespace plancast
