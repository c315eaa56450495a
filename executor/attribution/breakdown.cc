#include "executor/attribution/breakdown.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "executor/attribution/causes.h"

namespace plancast {
namespace {

class Accounts {
 public:
  Accounts(const SimInput& in, const SimTrace& trace, const Causes& causes, OutcomeSums& sums,
           int32_t entity)
      : in_(in),
        trace_(trace),
        causes_(causes),
        of_outcomes_(sums),
        program_(in.ProgramOf(entity)),
        entity_(entity),
        begin_(trace.BeginOf(entity)),
        end_(begin_ + trace.makespan_ps) {}

  Breakdown Settle() && {
    // What comes before the first launch is fixed work of the iteration.
    const int64_t start = in_.hosts[program_].start_ps;
    sum_.other += start;
    int64_t at = begin_ + start;
    const ProgramIndex& program = in_.index.program(program_);
    const int compute = static_cast<int>(StreamKind::kCompute);
    const auto begin = program.instances_of_streams.begin();
    const auto place_of = [&](int32_t instance) {
      return static_cast<int32_t>(std::lower_bound(begin + program.stream_begin[compute],
                                                   begin + program.stream_begin[compute + 1],
                                                   instance) -
                                  begin);
    };
    int32_t place = program.stream_begin[compute];
    for (const SimTrace::Jump& jump : trace_.jumps) {
      // All further periods are like the first.
      const SimTrace::Repeat& repeat = jump.repeats[entity_];
      const int32_t begin = place_of(repeat.first), end = place_of(repeat.first + repeat.length);
      at = Walk(place, begin, at);
      Breakdown before = sum_;
      sum_ = Breakdown();
      times_ = jump.periods;
      at = Walk(begin, end, at);
      times_ = 1;
      if (begin < end) at += (jump.periods - 1) * jump.period_ps;
      before.Add(sum_, jump.periods);
      sum_ = before;
      place = place_of(repeat.first + repeat.length * jump.periods);
    }
    at = Walk(place, program.stream_begin[compute + 1], at);
    of_outcomes_.Take(sum_);
    Tail(at);
    return sum_;
  }

 private:
  // Instances with kernels; returns the end of the last.
  int64_t Walk(int32_t place, int32_t end, int64_t at) {
    for (; place < end; ++place) {
      if (place + kAhead < end) FetchAhead(place);
      const int32_t instance = in_.index.program(program_).instances_of_streams[place];
      const BlockIndex& block = in_.index.BlockAt(program_, instance);
      const int32_t layers = in_.index.InstanceOf(program_, instance).layer_count;
      for (int32_t layer = 0; layer < layers;) {
        const Piece& piece = trace_.pieces[trace_.PieceOf(entity_, instance, layer)];
        layer += piece.layers;
        at = Compute(piece, {instance, piece.first_layer, 0}, block, at);
        if (piece.layers == 1) continue;
        // All further layers wait and run alike.
        const Breakdown first = sum_;
        const int64_t times = times_;
        sum_ = Breakdown();
        times_ *= piece.layers - 1;
        at = Compute(piece, {instance, piece.first_layer + 1, 0}, block, at);
        times_ = times;
        Breakdown further = first;
        further.Add(sum_, piece.layers - 1);
        sum_ = further;
        at += piece.period * (piece.layers - 2);
      }
    }
    return at;
  }

  // Pieces and times lie where the simulation came to them, all entities mixed: without this, most
  // of the time goes to memory.
  static constexpr int32_t kAhead = 8;
  void FetchAhead(int32_t place) const {
    const std::vector<int32_t>& instances = in_.index.program(program_).instances_of_streams;
    __builtin_prefetch(&trace_.pieces[trace_.PieceOf(entity_, instances[place + kAhead], 0)]);
    const int32_t sooner = instances[place + kAhead / 2];
    const Piece& piece = trace_.pieces[trace_.PieceOf(entity_, sooner, 0)];
    const BlockIndex& block = in_.index.BlockAt(program_, sooner);
    const int64_t* const times = trace_.times.data() + piece.start;
    __builtin_prefetch(times + block.order[block.order_begin[0]]);
    __builtin_prefetch(times + block.size + block.Last(0));
    if (piece.outcome >= 0) of_outcomes_.Prefetch(piece.outcome);
  }

  // The tasks of a layer in the compute stream; returns the end of the last.
  int64_t Compute(const Piece& piece, TaskRef ref, const BlockIndex& index, int64_t at) {
    const Block& block = in_.BlockAt(entity_, ref.instance);
    const int compute = static_cast<int>(StreamKind::kCompute);
    const int64_t* const times = trace_.times.data() + piece.start;
    const int64_t origin = piece.origin + piece.period * (ref.layer - piece.first_layer);
    const bool tails = in_.hosts[program_].launch_ps > 0;
    const int32_t first = index.order[index.order_begin[compute]], last = index.Last(compute);
    if (piece.outcome >= 0) {
      // What comes after the first task is the same in all layers.
      ref.task = first;
      if (origin + times[first] > at) Wait(at, ref);
      if (!of_outcomes_.Knows(piece.outcome)) {
        const Breakdown before = sum_;
        sum_ = Breakdown();
        Tasks(block, index, ref, origin, times, tails, origin + times[first]);
        of_outcomes_.Know(piece.outcome, sum_);
        sum_ = before;
      }
      of_outcomes_.Count(piece.outcome, times_);
      return origin + times[index.size + last];
    }
    Tasks(block, index, ref, origin, times, tails, at);
    return origin + times[index.size + last];
  }

  // `at`: the end of the task before.
  void Tasks(const Block& block, const BlockIndex& index, TaskRef ref, int64_t origin,
             const int64_t* times, bool tails, int64_t at) {
    const int compute = static_cast<int>(StreamKind::kCompute);
    const int64_t* const alone = in_.prices.AllOf(in_.sim.entities[entity_].price_row);
    LayerClock clock;
    for (int32_t i = index.order_begin[compute]; i < index.order_begin[compute + 1]; ++i) {
      const int32_t t = ref.task = index.order[i];
      const int64_t start = origin + times[t];
      if (start > at) WaitInLayer(block, index, ref, origin, times, at);
      at = origin + times[index.size + t];
      const bool is_comm = block.kind[t] == TaskKind::kComm;
      int64_t& part = PartFor(sum_, block.purpose[t], is_comm);
      part += at - start;
      // Only what takes longer than alone may have waited for its launches, if it has several.
      if (!tails || is_comm || index.launches[t + 1] - index.launches[t] < 2) continue;
      if (in_.jitter == nullptr && at - start <= alone[block.spec[t]]) continue;
      const int64_t tail = causes_.LaunchTail(entity_, ref, start, at, &clock);
      part -= tail;
      sum_.launch += tail;
    }
  }

  // Nothing ran in [from, start of `ref`), which waited for tasks of its own layer, if not for
  // others.
  void WaitInLayer(const Block& block, const BlockIndex& index, TaskRef ref, int64_t origin,
                   const int64_t* times, int64_t from) {
    const int64_t after = from - origin;
    while (times[ref.task] > after) {
      const int32_t cause = Causes::InLayer(index, times, ref.task);
      if (cause < 0) return Wait(from, ref);
      const int64_t own = times[index.size + cause] - std::max(after, times[cause]);
      PartFor(sum_, block.purpose[cause], block.kind[cause] == TaskKind::kComm) +=
          std::max<int64_t>(own, 0);
      ref.task = cause;
    }
  }

  int64_t Start(const TaskRef& ref) const { return causes_.StartOf(entity_, ref); }
  int64_t End(const TaskRef& ref) const { return causes_.EndOf(entity_, ref); }

  int64_t& Part(const TaskRef& ref) {
    const Block& block = in_.BlockAt(entity_, ref.instance);
    return PartFor(sum_, block.purpose[ref.task], block.kind[ref.task] == TaskKind::kComm);
  }

  // Nothing ran in [from, start of `ref`).
  void Wait(int64_t from, TaskRef ref) {
    for (int64_t start = Start(ref); start > from;) {
      const Cause cause = causes_.Of(entity_, ref, start);
      if (cause.kind == Cause::kHost) {
        const int64_t on = cause.ref.instance < 0 ? from : std::max(from, End(cause.ref));
        sum_.launch += start - on;
        if (on == from) return;
        // The host itself waited for a task.
      } else if (cause.kind != Cause::kTask) {
        Idle(cause) += start - from;
        return;
      }
      ref = cause.ref;
      start = Charge(from, ref);
    }
  }

  // Where a wait belongs that ends with a task that started on this.
  int64_t& Idle(const Cause& cause) {
    if (cause.kind != Cause::kPeer) return sum_.bubble;
    // Programs of one stage meet without a rendezvous.
    const Block& theirs = in_.BlockAt(cause.entity, cause.ref.instance);
    const bool alike =
        in_.ProgramOf(cause.entity) == program_ || cause.ref.task != theirs.rendezvous_task;
    return alike ? sum_.straggler : sum_.bubble;
  }

  // The part of a task after `from` counts for it; what came before, for what it
  // waited for. Returns its start.
  int64_t Charge(int64_t from, const TaskRef& ref) {
    const int64_t start = Start(ref);
    Part(ref) += std::max<int64_t>(End(ref) - std::max(from, start), 0);
    return start;
  }

  // Nothing is computed after `from`.
  void Tail(int64_t from) {
    struct Span {
      int64_t start, end;
      int stream;
      TaskRef ref;
    };
    std::vector<Span> running;
    const ProgramIndex& program = in_.index.program(program_);
    for (int s = 1; s < kNumStreams; ++s) {
      if (program.stream_begin[s] == program.stream_begin[s + 1]) continue;
      const int32_t last = program.instances_of_streams[program.stream_begin[s + 1] - 1];
      TaskRef ref{last, in_.index.InstanceOf(program_, last).layer_count - 1,
                  in_.index.BlockAt(program_, last).Last(s)};
      const auto first = static_cast<std::ptrdiff_t>(running.size());
      for (; ref.instance >= 0 && End(ref) > from; ref = in_.index.Predecessor(program_, ref)) {
        running.push_back({Start(ref), End(ref), s, ref});
      }
      std::reverse(running.begin() + first, running.end());
    }
    std::stable_sort(running.begin(), running.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
    for (const Span& span : running) {
      if (span.end <= from) continue;
      if (span.start > from) Idle(causes_.Of(entity_, span.ref)) += span.start - from;
      from = std::max(from, span.start);
      Part(span.ref) += span.end - from;
      from = span.end;
    }
    sum_.bubble += end_ - from;
  }

  const SimInput& in_;
  const SimTrace& trace_;
  const Causes& causes_;
  OutcomeSums& of_outcomes_;
  const int32_t program_, entity_;
  const int64_t begin_, end_;  // of the iteration
  Breakdown sum_;
  int64_t times_ = 1;  // that what it walks over counts
};

}  // namespace

Breakdown BreakdownOf(const SimInput& input, const SimTrace& trace, int32_t entity) {
  return Breakdowns(input, trace).Of(entity);
}

void OutcomeSums::Know(int32_t outcome, const Breakdown& sum) {
  const auto size = static_cast<int32_t>(outcomes_.size());
  if (outcome >= size) outcomes_.resize(std::max(outcome + 1, 2 * size));
  outcomes_[outcome].at = static_cast<int32_t>(sums_.size());
  sums_.push_back(sum);
}

void OutcomeSums::Take(Breakdown& sum) {
  for (const int32_t outcome : counted_) {
    Outcome& own = outcomes_[outcome];
    sum.Add(sums_[own.at], own.layers);
    own.layers = 0;
  }
  counted_.clear();
}

Breakdown Breakdowns::Of(int32_t entity) {
  return Accounts(input_, trace_, causes_, sums_, entity).Settle();
}

void Breakdown::Add(const Breakdown& from, int64_t times) {
  compute += from.compute * times;
  recompute += from.recompute * times;
  exposed_tp += from.exposed_tp * times;
  exposed_dp += from.exposed_dp * times;
  exposed_pp += from.exposed_pp * times;
  exposed_cp += from.exposed_cp * times;
  exposed_ep += from.exposed_ep * times;
  exposed_offload += from.exposed_offload * times;
  bubble += from.bubble * times;
  straggler += from.straggler * times;
  launch += from.launch * times;
  optimizer += from.optimizer * times;
  other += from.other * times;
}

int64_t Breakdown::total() const {
  return compute + recompute + exposed_tp + exposed_dp + exposed_pp + exposed_cp + exposed_ep +
         exposed_offload + bubble + straggler + launch + optimizer + other;
}

}  // namespace plancast
