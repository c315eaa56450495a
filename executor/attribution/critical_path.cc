#include "executor/attribution/critical_path.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "executor/attribution/breakdown.h"
#include "executor/attribution/causes.h"
#include "executor/attribution/path_turns.h"

namespace plancast {
namespace {

class Walk {
 public:
  // Among the entities [begin, end).
  Walk(const SimInput& in, const SimTrace& trace, int32_t begin, int32_t end)
      : in_(in),
        trace_(trace),
        causes_(in, trace),
        turns_(in, trace),
        begin_(begin),
        end_(end),
        kernel_ps_(in.prices.costs.size()),
        comm_ps_(in.realised.size()) {}

  void Run() {
    if (!FindLast()) {
      path_.other += trace_.makespan_ps;
      return;
    }
    const int64_t begin = trace_.BeginOf(entity_);
    const bool overlaps = !trace_.begins.empty();
    if (overlaps) floor_ps_ = begin + in_.HostOf(entity_).start_ps;
    path_.other += trace_.makespan_ps - (causes_.EndOf(entity_, task_) - begin);
    while (true) {
      TakeTurns();
      WalkCopies();
      Charge();
      if (overlaps && causes_.StartOf(entity_, task_) <= floor_ps_) break;
      Cause cause = causes_.Of(entity_, task_);
      if (cause.kind == Cause::kPeer) {
        entity_ = cause.entity;
        task_ = cause.ref;
        cause = causes_.Of(entity_, task_);
      }
      if (cause.kind == Cause::kHost) {
        const int64_t on = cause.ref.instance < 0 ? in_.HostOf(entity_).start_ps
                                                  : causes_.EndOf(entity_, cause.ref);
        path_.launch += causes_.StartOf(entity_, task_) - std::max(on, floor_ps_);
      }
      if (cause.ref.instance < 0) break;
      task_ = cause.ref;
    }
    path_.other += in_.HostOf(entity_).start_ps;
  }

  void AddTo(SimResult& result) const {
    result.critical_path = path_;
    for (size_t k = 0; k < kernel_ps_.size(); ++k) {
      if (kernel_ps_[k] == 0) continue;
      const KernelCost& cost = in_.prices.costs[k];
      const double seconds = ToSeconds(kernel_ps_[k]);
      result.provenance_seconds[std::string(kKnowledgeNames[cost.provenance.knowledge])] += seconds;
      result.own_variance_s2 += seconds * cost.sigma * seconds * cost.sigma;
      AddFactor(cost.factor, seconds, cost.factor_sigma,
                cost.provenance.knowledge == Knowledge::kExtrapolated, result);
    }
    for (size_t c = 0; c < comm_ps_.size(); ++c) {
      if (comm_ps_[c] == 0) continue;
      AddFactor(in_.realised[c].factor, ToSeconds(comm_ps_[c]), in_.realised[c].factor_sigma,
                in_.realised[c].provenance.knowledge == Knowledge::kExtrapolated, result);
    }
  }

 private:
  static void AddFactor(const std::string& factor, double seconds, double sigma, bool extrapolated,
                        SimResult& result) {
    if (factor.empty()) return;
    FactorShare& share = result.factors[factor];
    share.seconds += seconds;
    share.sigma = std::max(share.sigma, sigma);
    share.extrapolated |= extrapolated;
  }

  // Goes over turns that are all like the one before.
  void TakeTurns() {
    switch (turns_.At(entity_, task_)) {
      case PathTurns::Step::kNothing:
        return;
      case PathTurns::Step::kBegins:
        before_ = {path_, kernel_ps_, comm_ps_};
        return;
      case PathTurns::Step::kEnds:
        break;
    }
    const int64_t times = turns_.times();
    Breakdown turn = path_;
    turn.Add(before_.path, -1);
    path_.Add(turn, times);
    const auto add = [times](std::vector<int64_t>& now, const std::vector<int64_t>& before) {
      for (size_t i = 0; i < now.size(); ++i) now[i] += (now[i] - before[i]) * times;
    };
    add(kernel_ps_, before_.kernel_ps);
    add(comm_ps_, before_.comm_ps);
    task_.instance -= turns_.times() * turns_.instances();
  }

  // The task that ends last, counted from where its entity's iteration begins; of several, that of
  // the first entity and stream.
  bool FindLast() {
    int64_t latest = -1;
    for (int32_t e = begin_; e < end_; ++e) {
      const int32_t p = in_.ProgramOf(e);
      const ProgramIndex& program = in_.index.program(p);
      for (int s = 0; s < kNumStreams; ++s) {
        const int64_t end = trace_.stream_end[e * kNumStreams + s] - trace_.BeginOf(e);
        if (program.stream_begin[s] == program.stream_begin[s + 1] || end <= latest) continue;
        latest = end;
        entity_ = e;
        const int32_t last = program.instances_of_streams[program.stream_begin[s + 1] - 1];
        task_ = {last, in_.index.InstanceOf(p, last).layer_count - 1,
                 in_.index.BlockAt(p, last).Last(s)};
      }
    }
    return latest >= 0;
  }

  // The part of the path that lies within a layer of an outcome, from the task where
  // it leaves the layer back to the one that waits for nothing of it.
  struct Stretch {
    bool known = false;
    Breakdown sum;  // less what belongs to the first task
    std::vector<std::pair<int32_t, int64_t>> kernels, comms;
    int32_t first = 0;
  };

  // Goes back through the layers of an outcome to a task that waits for others.
  void WalkCopies() {
    const int32_t at = trace_.PieceOf(entity_, task_.instance, task_.layer);
    if (trace_.pieces[at].outcome < 0) return;
    const Piece& piece = trace_.pieces[at];
    if (piece.origin < floor_ps_) return;
    while (true) {
      const TaskRef left = task_;
      const Stretch& stretch = StretchOf(piece);
      Take(stretch, 1);
      task_.task = stretch.first;
      if (task_.layer == piece.first_layer) return;
      const Cause cause = causes_.Of(entity_, task_);
      if (cause.kind != Cause::kTask || cause.ref.instance != task_.instance ||
          cause.ref.layer + 1 != task_.layer || cause.ref.task != left.task) {
        return;
      }
      // So it goes on to the first layer.
      Charge();
      const int64_t more = cause.ref.layer - piece.first_layer;
      if (more > 0) {
        Take(stretch, more);
        Charge(more);
      }
      task_ = {left.instance, piece.first_layer, left.task};
    }
  }

  const Stretch& StretchOf(const Piece& piece) {
    Stretch& stretch = stretches_[{piece.outcome, task_.task}];
    if (stretch.known) return stretch;
    stretch.known = true;
    const Block& block = in_.BlockAt(entity_, task_.instance);
    TaskRef ref = task_;
    while (true) {
      const Cause cause = causes_.Of(entity_, ref);
      if (cause.kind != Cause::kTask || cause.ref.instance != ref.instance ||
          cause.ref.layer != ref.layer) {
        break;
      }
      AddTask(ref, block, 1, stretch.sum, &stretch);
      ref = cause.ref;
    }
    stretch.first = ref.task;
    return stretch;
  }

  void Take(const Stretch& stretch, int64_t times) {
    path_.Add(stretch.sum, times);
    for (const auto& [kernel, ps] : stretch.kernels) kernel_ps_[kernel] += ps * times;
    for (const auto& [comm, ps] : stretch.comms) comm_ps_[comm] += ps * times;
  }

  void Charge(int64_t times = 1) {
    AddTask(task_, in_.BlockAt(entity_, task_.instance), times, path_, nullptr);
  }

  // To the sums of the path or of a stretch.
  void AddTask(const TaskRef& ref, const Block& block, int64_t times, Breakdown& sum,
               Stretch* stretch) {
    const bool is_comm = block.kind[ref.task] == TaskKind::kComm;
    const int64_t start = causes_.StartOf(entity_, ref), end = causes_.EndOf(entity_, ref);
    const int64_t whole = std::max<int64_t>(end - std::max(start, floor_ps_), 0);
    LayerClock clock;
    const int64_t tail =
        is_comm ? 0 : std::min(causes_.LaunchTail(entity_, ref, start, end, &clock), whole);
    const int32_t spec = is_comm ? in_.sim.groups[in_.GroupOf(entity_, ref)].realised
                                 : in_.prices.FirstAlike(in_.sim.entities[entity_].kind) *
                                           static_cast<int32_t>(in_.prices.num_kernels) +
                                       block.spec[ref.task];
    if (stretch == nullptr) {
      (is_comm ? comm_ps_ : kernel_ps_)[spec] += (whole - tail) * times;
    } else {
      (is_comm ? stretch->comms : stretch->kernels).emplace_back(spec, whole - tail);
    }
    PartFor(sum, block.purpose[ref.task], is_comm) += (whole - tail) * times;
    sum.launch += tail * times;
  }

  const SimInput& in_;
  const SimTrace& trace_;
  const Causes causes_;
  PathTurns turns_;
  const int32_t begin_, end_;
  int32_t entity_ = 0;
  TaskRef task_;
  int64_t floor_ps_ = 0;  // where iterations overlap: what came before belongs to others
  Breakdown path_;
  // By outcome and the task where the path leaves a layer.
  std::map<std::pair<int32_t, int32_t>, Stretch> stretches_;
  std::vector<int64_t> kernel_ps_;  // like KernelPrices::costs
  std::vector<int64_t> comm_ps_;    // per realised collective
  struct Sums {
    Breakdown path;
    std::vector<int64_t> kernel_ps, comm_ps;
  };
  Sums before_;  // where a turn may have begun
};

}  // namespace

void AttributeCriticalPath(const SimInput& input, const SimTrace& trace, SimResult& result,
                           int32_t begin, int32_t end) {
  Walk walk(input, trace, begin, end);
  walk.Run();
  walk.AddTo(result);
}

}  // namespace plancast
