#include "planner/bound/time_bound.h"

#include <algorithm>

#include "strategy/plan_options.h"

namespace plancast {
namespace {

bool IsPass(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kWeight;
}

// Whether passes go from the first stage to the last and back, and steps follow.
bool GoThereAndBack(const PlanOptions& options) {
  if (options.splits_backward() || options.makes_pairs() || options.spreads_vocabulary()) {
    return false;
  }
  switch (options.schedule) {
    case Schedule::kGpipe:
    case Schedule::k1f1b:
    case Schedule::kEager1f1b:
    case Schedule::kInterleaved:
    case Schedule::kBreadthFirst:
      return options.optimizer == StepTime::kAtEnd;
    default:
      return false;
  }
}

// The least of what micro-batches add, and what all that is seen adds.
class Sums {
 public:
  void Add(int32_t micro_batch, int64_t takes) {
    if (takes == 0) return;
    if (micro_batch >= static_cast<int32_t>(of_.size())) of_.resize(micro_batch + 1, 0);
    of_[micro_batch] += takes;
    all_ += takes;
  }
  // With so many micro-batches beside the `seen` ones, each of which adds as much as one of these.
  int64_t With(int64_t seen, int64_t more) const {
    if (more <= 0 || static_cast<int64_t>(of_.size()) < seen) return all_;
    return all_ + more * *std::min_element(of_.begin(), of_.end());
  }

 private:
  std::vector<int64_t> of_;
  int64_t all_ = 0;
};

}  // namespace

TimeBound::TimeBound(const SoftwareProfile& profile, const Machine& machine, const Pricing& pricing)
    : runtime_(pricing.Runtime(profile, machine)),
      host_(HostParamsOf(runtime_)),
      timer_(machine, pricing.kernels(), runtime_) {}

void TimeBound::Begin(const ProgramPlan& plan) {
  const PlanOptions& options = *plan.request->options;
  pp_ = options.pp;
  micro_batches_ = options.micro_batches;
  there_and_back_ = GoThereAndBack(options);
  steps_alone_ = options.optimizer == StepTime::kAtEnd;
  updates_at_end_ = steps_alone_ && plan.homes == nullptr;
  stages_.clear();
  blocks_.clear();
  own_.clear();
  if (timer_.IsKnown()) timer_.Begin(plan.mesh, plan.bodies->bound.load.skew);
}

const BlockTimes& TimeBound::TimesOf(const BlockCatalogue& catalogue, int32_t block) {
  if (block >= static_cast<int32_t>(blocks_.size())) blocks_.resize(catalogue.size(), nullptr);
  const BlockTimes*& known = blocks_[block];
  if (known == nullptr) {
    known = catalogue.Outlives(block) ? &timer_.Of(catalogue[block])
                                      : &own_.emplace_back(timer_.OfOwn(catalogue[block]));
  }
  return *known;
}

void TimeBound::See(int64_t stage, const ProgramOutline& outline, const BlockCatalogue& catalogue) {
  if (!timer_.IsKnown()) return;
  if (!stages_.empty()) stages_.resize(stage, stages_.back());
  Stage& own = stages_.emplace_back();
  int32_t seen = 0;
  ForEachIssued(outline, [&](const Instance& instance, int32_t later) {
    if (IsPass(instance.phase)) seen = std::max(seen, instance.micro_batch + later + 1);
    return true;
  });
  Sums passes;
  std::array<Sums, kNumStreams> comms;
  Sums launches;
  int64_t other_launches = 0, last_launches = 0;  // of no pass; of the last instance
  int64_t other = 0;
  bool beside = false;  // kernels after the last pass that may run beside reductions
  for (const ProgramOutline::Turn& turn : outline.turns) {
    const ProgramOutline::Part& part = outline.parts[turn.part];
    Pass pass;
    for (int32_t i = part.begin; i < part.end; ++i) {
      const Instance& instance = outline.written.instances[i];
      const BlockTimes& block = TimesOf(catalogue, instance.block);
      const int64_t repeats = instance.layer_count;
      const int32_t micro_batch =
          std::clamp(instance.micro_batch + turn.later, 0, std::max(seen - 1, 0));
      for (int s = 0; s < kNumStreams; ++s) comms[s].Add(micro_batch, repeats * block.comms[s]);
      if (block.launches > 0) {
        last_launches = repeats * block.launches;
        if (IsPass(instance.phase)) {
          launches.Add(micro_batch, last_launches);
        } else {
          other_launches += last_launches;
        }
      }
      if (!IsPass(instance.phase)) {
        beside = beside || (block.computes && instance.phase != Phase::kOptimizer);
        own.exposed += repeats * block.comms[static_cast<int>(StreamKind::kGradComm)];
      }
      if (!block.computes) continue;
      const int64_t takes = block.Of(repeats);
      if (!IsPass(instance.phase)) {
        other += takes;
        own.after += takes;
        continue;
      }
      passes.Add(micro_batch, takes);
      own.after = own.exposed = 0;
      beside = false;
      own.ends_backward = instance.phase == Phase::kBackward;
      if (!pass.runs || pass.phase != instance.phase) {
        Note(pass, &own);
        pass = {true, instance.phase, 0, block.before_ports, 0};
      }
      pass.takes += takes;
      pass.before_end = block.before_end;
    }
    Note(pass, &own);
  }
  const int64_t more = micro_batches_ - seen;
  own.passes = passes.With(seen, more);
  if (beside || !updates_at_end_) own.exposed = 0;
  own.after += own.exposed;
  own.all = own.passes + other + own.exposed;
  for (int s = 0; s < kNumStreams; ++s) own.comms[s] = comms[s].With(seen, more);
  if (steps_alone_ && !host_.cuda_graphs) {
    own.launching = host_.launch_ps * (launches.With(seen, more) + other_launches - last_launches);
  }
}

void TimeBound::Note(const Pass& pass, Stage* stage) {
  if (!pass.runs || pass.phase == Phase::kWeight) return;
  Pass& least = pass.phase == Phase::kForward ? stage->forward : stage->backward;
  if (!least.runs) {
    least = pass;
    return;
  }
  least.takes = std::min(least.takes, pass.takes);
  least.before_ports = std::max(least.before_ports, pass.before_ports);
  least.before_end = std::max(least.before_end, pass.before_end);
}

int64_t TimeBound::Picoseconds() const {
  if (stages_.empty()) return 0;
  std::vector<Stage> stages = stages_;
  stages.resize(pp_, stages.back());
  int64_t most = 0;
  // Until the first forward pass comes to a stage, and from the last backward pass of a stage to
  // the end of the step on the first one.
  int64_t head = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const Pass& in = stage.forward;
    const int64_t begin = std::max<int64_t>(0, s == 0 ? 0 : head - in.before_ports);
    most = std::max({most, begin + stage.all, stage.launching});
    for (const int64_t sum : stage.comms) most = std::max(most, sum);
    if (!there_and_back_) continue;
    if (stage.ends_backward) {
      int64_t tail = begin + stage.passes - stage.backward.before_end;
      for (size_t before = s; s > 0 && before-- > 0;) {
        const Pass& back = stages[before].backward;
        tail += back.takes - back.before_ports - (before > 0 ? back.before_end : 0);
      }
      if (s > 0) most = std::max(most, tail + stages[0].after);
    }
    head = begin + in.takes - in.before_end;
  }
  return host_.start_ps + most;
}

}  // namespace plancast
