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
  Measuring(const ExecutionGraph& graph, int64_t stages, int64_t chunks, int64_t micro_batches)
      : graph_(graph), stages_(stages), micro_batch_(micro_batches / 2) {
    // The last one makes gradients that others wait for.
    if (micro_batches == 2) micro_batch_ = 0;
    measured_.times = PipelineTimes::Equal(stages, chunks, {0, 0, 0, {}, 0});
    for (PassMemory& memory : measured_.times.memory) memory = {0, 0};
    measured_.room.assign(stages, std::numeric_limits<int64_t>::max());
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
        if (slice.micro_batch != micro_batch_) continue;
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
      const int64_t stage = StageOf(graph_.programs[result.classes[c].program]);
      for (int64_t chunk = 0; chunk < measured_.times.chunks(); ++chunk) {
        TakeSpans(&spans[c][kPhases * chunk], chunk * stages_ + stage);
      }
    }
  }

  void TakeMemory(const std::vector<ClassMemory>& memory, int64_t micro_batches) {
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      const Program& program = graph_.programs[p];
      const int64_t stage = StageOf(program);
      const std::vector<PassMemory> kept = KeptBy(program);
      int64_t in_flight = 0;
      for (int64_t chunk = 0; chunk < measured_.times.chunks(); ++chunk) {
        PassMemory& all = measured_.times.memory[chunk * stages_ + stage];
        all.activations = std::max(all.activations, kept[chunk].activations);
        all.for_weights = std::max(all.for_weights, kept[chunk].for_weights);
        in_flight += micro_batches * kept[chunk].activations;
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
        slice.stream == StreamKind::kSendNext || slice.stream == StreamKind::kRecvNext;
    int64_t& transfer = measured_.times.transfer[ahead ? stage : (stage + stages_ - 1) % stages_];
    transfer = std::max(transfer, slice.end_ps - slice.start_ps);
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
      if (instance.micro_batch != micro_batch_ || instance.phase == Phase::kOptimizer) continue;
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
  const int64_t stages_;
  int64_t micro_batch_;
  MeasuredPasses measured_;
};

}  // namespace

ScheduleTable MeasuredTable(int64_t stages, int64_t chunks, int64_t micro_batches, bool splits) {
  std::vector<ScheduleStep> row;
  const auto add = [&](Phase phase, int64_t m, int64_t chunk) {
    row.push_back({phase, static_cast<int32_t>(m), static_cast<int32_t>(chunk)});
  };
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t m = 0; m < micro_batches; ++m) add(Phase::kForward, m, chunk);
  }
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    for (int64_t m = 0; m < micro_batches; ++m) {
      add(Phase::kBackward, m, chunk);
      if (splits) add(Phase::kWeight, m, chunk);
    }
  }
  return {std::vector<std::vector<ScheduleStep>>(stages, row)};
}

absl::StatusOr<MeasuredPasses> MeasurePasses(const ExecutionGraph& graph, int64_t stages,
                                             int64_t chunks, int64_t micro_batches,
                                             const Machine& machine, const Pricing& pricing,
                                             const RuntimeParams& runtime) {
  Measuring measuring(graph, stages, chunks, micro_batches);
  const std::vector<ClassMemory> memory = ReplayMemory(graph, runtime);
  SimulateOptions options;
  options.timeline = true;
  options.verified = true;
  options.memory = &memory;
  ASSIGN_OR_RETURN(const SimResult result,
                   Execute(graph, machine, pricing.kernels(), runtime, options));
  measuring.TakeTimes(result);
  measuring.TakeMemory(memory, micro_batches);
  return measuring.Take();
}

}  // namespace plancast
