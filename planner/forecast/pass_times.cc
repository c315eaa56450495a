#include "planner/forecast/pass_times.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/status_macros.h"

namespace plancast {
namespace {

constexpr int kPhases = 3;  // F, B, W

bool IsPass(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kWeight;
}

// Devices without a stage run nothing (`idle`).
bool HasStage(const Program& program) { return !program.where.empty(); }

int64_t StageOf(const Program& program) { return program.where.front().second; }

// From the first to the last that a pass does, and where of a backward pass what runs again ends
// that comes before all else.
struct Span {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  int64_t backward = std::numeric_limits<int64_t>::max(), again = 0;

  bool any() const { return end >= begin; }
  int64_t recompute() const { return again > begin ? again - begin : 0; }
  // Behind that: a gradient may have been waited for in between.
  int64_t rest() const { return recompute() > 0 ? end - std::max(backward, again) : end - begin; }
};

class Measuring {
 public:
  Measuring(const ExecutionGraph& graph, const StagePlacement& placement, int64_t micro_batches)
      : graph_(graph), placement_(placement), stages_(placement.stages()) {
    const int64_t copies = placement.copies();
    for (int64_t chunk = 0; chunk < placement.chunks(); ++chunk) {
      const int64_t copy = placement.CopyOf(placement.At(0, chunk));
      const int64_t own = (micro_batches - copy + copies - 1) / copies;
      own_.push_back(own);
      // The last one makes gradients that others wait for.
      micro_batch_.push_back((own == 2 ? 0 : own / 2) * copies + copy);
    }
    measured_.times = PipelineTimes::Equal(placement, {0, 0, 0, {}, 0});
    for (PassMemory& memory : measured_.times.memory) memory = {0, 0};
    measured_.room.assign(stages_, std::numeric_limits<int64_t>::max());
  }

  // Devices of one class may be slower than others of their stage: the slowest counts.
  void TakeTimes(const SimResult& result) {
    std::vector<std::vector<Span>> spans(result.classes.size(),
                                         std::vector<Span>(kPhases * measured_.times.chunks()));
    std::vector<std::vector<Phase>> phases;
    for (const Program& program : graph_.programs) phases.push_back(PhasesOf(program));
    const auto each = [&](const auto& take) {
      for (const Slice& slice : result.slices) {
        const int32_t program = result.classes[slice.device_class].program;
        const Phase phase = phases[program][slice.block];
        if (slice.micro_batch != micro_batch_[slice.chunk]) continue;
        if (slice.purpose == Purpose::kPp) {
          TakeTransfer(StageOf(graph_.programs[program]), slice);
        } else if (IsPass(phase) && IsOfPass(slice.purpose)) {
          take(slice, phase,
               &spans[slice.device_class][kPhases * slice.chunk + static_cast<int>(phase)]);
        }
      }
    };
    each([](const Slice& slice, Phase phase, Span* span) {
      span->begin = std::min(span->begin, slice.start_ps);
      span->end = std::max(span->end, slice.end_ps);
      if (phase == Phase::kBackward && slice.purpose == Purpose::kBackward) {
        span->backward = std::min(span->backward, slice.start_ps);
      }
    });
    each([](const Slice& slice, Phase phase, Span* span) {
      if (phase == Phase::kBackward && slice.end_ps <= span->backward)
        span->again = std::max(span->again, slice.end_ps);
    });
    for (size_t c = 0; c < spans.size(); ++c) {
      if (!HasStage(graph_.programs[result.classes[c].program])) continue;
      const int64_t stage = StageOf(graph_.programs[result.classes[c].program]);
      for (int64_t chunk = 0; chunk < measured_.times.chunks(); ++chunk) {
        TakeSpans(&spans[c][kPhases * chunk], placement_.At(stage, chunk));
      }
    }
    TakeEnd(result, phases);
  }

  void TakeMemory(const std::vector<ClassMemory>& memory) {
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      const Program& program = graph_.programs[p];
      if (!HasStage(program)) continue;
      const int64_t stage = StageOf(program);
      const std::vector<PassMemory> kept = KeptBy(program);
      int64_t in_flight = 0;
      for (int64_t chunk = 0; chunk < measured_.times.chunks(); ++chunk) {
        PassMemory& all = measured_.times.memory[placement_.At(stage, chunk)];
        all.activations = std::max(all.activations, kept[chunk].activations);
        all.for_weights = std::max(all.for_weights, kept[chunk].for_weights);
        in_flight += own_[chunk] * kept[chunk].activations;
      }
      if (memory[p].capacity == 0) continue;
      int64_t& room = measured_.room[stage];
      room = std::min(room, memory[p].capacity - memory[p].device + in_flight);
    }
  }

  MeasuredPasses Take() { return std::move(measured_); }

 private:
  // Collectives of gradients, copies and transfers run beside passes.
  static bool IsOfPass(Purpose purpose) {
    return purpose == Purpose::kForward || purpose == Purpose::kBackward ||
           purpose == Purpose::kRecompute || purpose == Purpose::kTp || purpose == Purpose::kCp ||
           purpose == Purpose::kEp;
  }

  std::vector<Phase> PhasesOf(const Program& program) const {
    std::vector<Phase> phases(graph_.blocks.size(), Phase::kComm);
    for (const Instance& instance : program.instances) phases[instance.block] = instance.phase;
    return phases;
  }

  // Whichever way it goes.
  void TakeTransfer(int64_t stage, const Slice& slice) {
    const bool ahead =
        slice.stream == StreamKind::kSendNext || slice.stream == StreamKind::kRecvNext ||
        slice.stream == StreamKind::kBackwardToNext || slice.stream == StreamKind::kForwardFromNext;
    int64_t& transfer = measured_.times.transfer[ahead ? stage : (stage + stages_ - 1) % stages_];
    transfer = std::max(transfer, slice.end_ps - slice.start_ps);
  }

  // Of the devices that end last: they wait for no others.
  void TakeEnd(const SimResult& result, const std::vector<std::vector<Phase>>& phases) {
    std::vector<int64_t> last(result.classes.size(), 0);
    std::vector<int64_t> update(last.size(), std::numeric_limits<int64_t>::max());
    for (const Slice& slice : result.slices) {
      const Phase phase = phases[result.classes[slice.device_class].program][slice.block];
      if (IsPass(phase) && IsOfPass(slice.purpose)) {
        last[slice.device_class] = std::max(last[slice.device_class], slice.end_ps);
      } else if (slice.purpose == Purpose::kOptimizer) {
        update[slice.device_class] = std::min(update[slice.device_class], slice.start_ps);
      }
    }
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t c = 0; c < last.size(); ++c) {
      if (update[c] >= last[c]) least = std::min(least, update[c] - last[c]);
    }
    measured_.times.all_reduce = least == std::numeric_limits<int64_t>::max() ? 0 : least;
  }

  void TakeSpans(const Span* spans, int64_t v) {
    PassTime& pass = measured_.times.passes[v];
    const Span &forward = spans[0], &backward = spans[1], &weights = spans[2];
    if (forward.any()) pass.forward = std::max(pass.forward, forward.rest());
    if (backward.any()) {
      pass.recompute = std::max(pass.recompute, backward.recompute());
      pass.backward = std::max(pass.backward, backward.rest());
    }
    if (weights.any()) pass.weights = std::max(pass.weights, weights.rest());
  }

  // Per chunk, what forward passes leave, and what is left behind the backward one.
  std::vector<PassMemory> KeptBy(const Program& program) const {
    std::vector<PassMemory> kept(measured_.times.chunks(), PassMemory{0, 0});
    bool back = false;
    for (const Instance& instance : program.instances) {
      back = back || instance.phase == Phase::kBackward;
      if (instance.micro_batch != micro_batch_[instance.chunk] ||
          instance.phase == Phase::kOptimizer)
        continue;
      int64_t bytes = 0;
      for (const MemoryEvent& event : graph_.blocks[instance.block].memory) {
        if (event.kind == MemoryKind::kActivations) bytes += event.delta;
      }
      bytes *= instance.layer_count;
      PassMemory& memory = kept[instance.chunk];
      if (!back) memory.activations += bytes;
      if (instance.phase == Phase::kWeight) memory.for_weights -= bytes;
    }
    for (PassMemory& memory : kept) {
      memory.activations = std::max<int64_t>(memory.activations, 0);
      memory.for_weights = std::max<int64_t>(memory.for_weights, 0);
    }
    return kept;
  }

  const ExecutionGraph& graph_;
  const StagePlacement& placement_;
  const int64_t stages_;
  std::vector<int64_t> own_, micro_batch_;  // per chunk: how many go through it, the one to measure
  MeasuredPasses measured_;
};

}  // namespace

ScheduleTable MeasuredTable(const StagePlacement& placement, int64_t micro_batches, bool splits) {
  const int64_t chunks = placement.chunks();
  ScheduleTable table;
  table.placement = placement.Text();
  for (int64_t s = 0; s < placement.stages(); ++s) {
    std::vector<ScheduleStep>& row = table.stages.emplace_back();
    const auto each = [&](int64_t chunk, const auto& add) {
      const int64_t first = placement.CopyOf(placement.At(s, chunk));
      for (int64_t m = first; m < micro_batches; m += placement.copies()) {
        add(static_cast<int32_t>(m), static_cast<int32_t>(chunk));
      }
    };
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      each(chunk, [&](int32_t m, int32_t c) { row.push_back({Phase::kForward, m, c}); });
    }
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
      each(chunk, [&](int32_t m, int32_t c) {
        row.push_back({Phase::kBackward, m, c});
        if (splits) row.push_back({Phase::kWeight, m, c});
      });
    }
  }
  return table;
}

absl::StatusOr<MeasuredPasses> MeasurePasses(const ExecutionGraph& graph,
                                             const StagePlacement& placement, int64_t micro_batches,
                                             const Machine& machine, const Pricing& pricing,
                                             const RuntimeParams& runtime) {
  Measuring measuring(graph, placement, micro_batches);
  const std::vector<ClassMemory> memory = ReplayMemory(graph, runtime);
  SimulateOptions options;
  options.timeline = true;
  options.only_slices = true;
  options.verified = true;
  options.memory = &memory;
  ASSIGN_OR_RETURN(const SimResult result,
                   Execute(graph, machine, pricing.kernels(), runtime, options));
  measuring.TakeTimes(result);
  measuring.TakeMemory(memory);
  return measuring.Take();
}

}  // namespace plancast
