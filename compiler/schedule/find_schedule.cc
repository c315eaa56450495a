#include "compiler/schedule/find_schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/made_orders.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/varuna_order.h"

namespace plancast {
namespace {

// Passes of all stages up to which orders are made whole; beyond it they are prolonged.
constexpr int64_t kMadeWhole = 768;
constexpr int64_t kPeriods = 12;  // a multiple of every period that is looked for in a loop
constexpr size_t kProlonged = 3;  // so many of the best

constexpr Overrun kOverruns[] = {Overrun::kNever, Overrun::kByHalf, Overrun::kAlways};

ScheduleTable WithoutWeights(ScheduleTable table) {
  const auto is_weight = [](const ScheduleStep& step) { return step.phase == Phase::kWeight; };
  for (std::vector<ScheduleStep>& steps : table.stages) {
    steps.erase(std::remove_if(steps.begin(), steps.end(), is_weight), steps.end());
  }
  return table;
}

class Search {
 public:
  Search(int64_t micro_batches, const PipelineTimes& times, const SearchOptions& options)
      : micro_batches_(micro_batches),
        times_(times),
        placement_(times.placement),
        options_(options) {}

  absl::StatusOr<FoundSchedule> Find() {
    if (Names().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no schedule that has a name runs virtual stages on stages `", placement_.Text(),
          "`. Take `loop`, `v` (an even number of chunks) or `both-ways`."));
    }
    AddNamed();
    const std::string best_named = best_.has_value() ? best_->from : "";
    const ScheduleRun best_named_run = best_.has_value() ? best_->run : ScheduleRun();
    const int64_t few = Few();
    if (few == micro_batches_) {
      for (Candidate& made : Made(few)) Offer(std::move(made.table), made.from);
    } else {
      AddProlonged(few);
    }
    if (!best_.has_value()) return NoneFits();
    best_->best_named = best_named;
    best_->best_named_run = best_named_run;
    return *std::move(best_);
  }

 private:
  struct Candidate {
    std::string from;
    ScheduleTable table;
    ScheduleRun run;
  };

  bool FitsIn(const ScheduleRun& run) const {
    for (size_t s = 0; s < options_.memory.size(); ++s) {
      if (run.most_kept[s] > options_.memory[s]) return false;
    }
    return true;
  }

  void Offer(ScheduleTable table, const std::string& from) {
    // Of what takes longer than the best there is nothing to know.
    const bool bound = best_.has_value() && !options_.by_longest_stage;
    const int64_t most = bound ? best_->run.makespan : std::numeric_limits<int64_t>::max();
    std::optional<ScheduleRun> run = RunWithin(most, table, micro_batches_, times_);
    if (!run.has_value() || !FitsIn(*run)) return;
    if (best_.has_value() && options_.CostOf(best_->run) <= options_.CostOf(*run)) return;
    best_ = FoundSchedule{std::move(table), *std::move(run), from, "", {}};
  }

  ScheduleTable Named(Schedule schedule, int64_t micro_batches) const {
    if (!placement_.Loops()) return TableOfRule(schedule, placement_, micro_batches);
    ScheduleTable table;
    const PipelineSchedule rule(schedule, times_.stages(), micro_batches, times_.chunks());
    for (int64_t s = 0; s < times_.stages(); ++s) table.stages.push_back(rule.OfStage(s));
    return table;
  }

  // All that a plan with this placement can name.
  std::vector<Schedule> Names() const {
    const std::string text = placement_.Text();
    if (text.empty() && times_.chunks() > 1) {
      return {Schedule::kInterleaved, Schedule::kBreadthFirst};
    }
    if (text.empty()) {
      return {Schedule::k1f1b, Schedule::kEager1f1b, Schedule::kGpipe,
              Schedule::kZbH1, Schedule::kZb1p,      Schedule::kZb2p};
    }
    if (text == "v" && times_.chunks() == 2) {
      return {Schedule::kHanayo, Schedule::kZbV, Schedule::kZbVHalf, Schedule::kZbVMin,
              Schedule::kDualPipeV};
    }
    if (text == "v") return {Schedule::kHanayo};
    if (text == "both-ways") return {Schedule::kChimera, Schedule::kDualPipe};
    return {};
  }
  std::vector<Schedule> WholeNames() const {
    std::vector<Schedule> names = Names();
    names.erase(std::remove_if(names.begin(), names.end(), SplitsBackward), names.end());
    return names;
  }

  void AddNamed() {
    for (const Schedule name : Names()) {
      if (!(SplitsBackward(name) ? options_.may_split : options_.may_leave_whole)) continue;
      Offer(Named(name, micro_batches_), std::string(kScheduleNames[name]));
    }
    if (options_.may_leave_whole && OneByOne()) {
      Offer(OrderByVarunasRule(micro_batches_, times_), "varuna");
    }
  }

  // Stages of one chunk, in a loop.
  bool OneByOne() const { return placement_.Loops() && times_.chunks() == 1; }

  // With so many micro-batches orders are made that are prolonged then; all: none is.
  int64_t Few() const {
    const int64_t p = times_.stages();
    const bool chunks = placement_.Loops() && times_.chunks() > 1;
    if (chunks || p * micro_batches_ <= kMadeWhole) return micro_batches_;
    // A multiple of every period that is looked for.
    const int64_t periods = placement_.Loops() ? kPeriods : 2 * p * placement_.copies();
    const int64_t few = std::max<int64_t>(6 * p, 2 * kPeriods);
    if (few + periods >= micro_batches_) return micro_batches_;
    return few + (micro_batches_ - few) % periods;
  }

  // Tables of F and B for others to put W into.
  std::vector<Candidate> Whole(int64_t micro_batches) const {
    std::vector<Candidate> whole;
    for (const Schedule name : OneByOne() ? WholeNames() : Names()) {
      whole.push_back(
          {std::string(kScheduleNames[name]), WithoutWeights(Named(name, micro_batches)), {}});
    }
    if (!OneByOne()) return whole;
    std::vector<int64_t> twice;
    for (int64_t s = 0; s < times_.stages(); ++s) twice.push_back(2 * (times_.stages() - s - 1));
    whole.push_back({"zb2p", WarmedUp(micro_batches, Allowed(twice)), {}});
    for (const bool waits : {true, false}) {
      whole.push_back(
          {waits ? "a warm-up by time" : "a long warm-up by time",
           WarmedUp(micro_batches, Allowed(WarmUpsByTime(micro_batches, times_, waits))),
           {}});
    }
    return whole;
  }

  // Warm-ups less what the memory cannot keep.
  std::vector<int64_t> Allowed(std::vector<int64_t> warm_ups) const {
    for (size_t s = 0; s < options_.memory.size(); ++s) {
      const int64_t each = std::max<int64_t>(times_.memory[s].activations, 1);
      warm_ups[s] = std::max<int64_t>(std::min(warm_ups[s], options_.memory[s] / each - 1), 0);
      if (s > 0) warm_ups[s] = std::min(warm_ups[s], warm_ups[s - 1]);
    }
    return warm_ups;
  }

  // Those without a name.
  std::vector<Candidate> Made(int64_t micro_batches) const {
    std::vector<Candidate> made;
    const auto add = [&](std::optional<ScheduleTable> table, std::string from) {
      if (table.has_value()) made.push_back({std::move(from), *std::move(table), {}});
    };
    for (const Candidate& whole : Whole(micro_batches)) {
      for (const Overrun overrun : kOverruns) {
        if (!options_.may_split) break;
        add(PutOffWeights(whole.table, micro_batches, times_, options_.memory, overrun),
            absl::StrCat(whole.from, " with W in bubbles"));
      }
      const auto name = kScheduleNames.Find(whole.from);
      const bool split = name.has_value() && SplitsBackward(*name);
      if (options_.may_leave_whole) {
        add(whole.table, absl::StrCat(whole.from, split ? " with W in B" : ""));
      }
    }
    if (!OneByOne()) return made;
    for (const bool splits : {true, false}) {
      if (!(splits ? options_.may_split : options_.may_leave_whole)) continue;
      for (const bool waits : {false, true}) {
        for (const Overrun overrun : {Overrun::kNever, Overrun::kAlways}) {
          if (!splits && overrun != Overrun::kNever) continue;
          for (const TakingRule& rule : Rules(micro_batches, waits, overrun, splits)) {
            add(TakeWhatIsThere(micro_batches, times_, options_.memory, rule),
                "what is there, B before F before W");
          }
        }
      }
    }
    return made;
  }

  std::vector<TakingRule> Rules(int64_t micro_batches, bool waits, Overrun overrun,
                                bool splits) const {
    std::vector<TakingRule> rules(3, {{}, waits, overrun, splits});
    for (int64_t s = 0; s < times_.stages(); ++s) {
      const int64_t after = times_.stages() - s;
      rules[0].most_ahead.push_back(after);
      rules[1].most_ahead.push_back(2 * after - 1);
      rules[2].most_ahead.push_back(std::min(micro_batches, 2 * times_.stages()));
    }
    return rules;
  }

  void AddProlonged(int64_t few) {
    std::vector<Candidate> made = Made(few);
    std::vector<Candidate*> good;
    for (Candidate& candidate : made) {
      absl::StatusOr<ScheduleRun> run = RunSchedule(candidate.table, few, times_);
      if (!run.ok() || !FitsIn(*run)) continue;
      candidate.run = *std::move(run);
      good.push_back(&candidate);
    }
    std::stable_sort(good.begin(), good.end(), [&](const Candidate* a, const Candidate* b) {
      return options_.CostOf(a->run) < options_.CostOf(b->run);
    });
    size_t taken = 0;
    for (const Candidate* candidate : good) {
      std::optional<ScheduleTable> longer = Prolonged(candidate->table, placement_, micro_batches_);
      if (!longer.has_value()) continue;
      Offer(*std::move(longer), candidate->from);
      if (++taken == kProlonged) break;
    }
  }

  absl::Status NoneFits() const {
    return absl::InvalidArgumentError(absl::StrCat(
        "no order of the passes keeps as little as `memory` allows: a stage keeps the activations "
        "of one micro-batch at least. Allow more."));
  }

  const int64_t micro_batches_;
  const PipelineTimes& times_;
  const StagePlacement& placement_;
  const SearchOptions& options_;
  std::optional<FoundSchedule> best_;
};

}  // namespace

// Of equals what keeps less.
std::tuple<int64_t, int64_t, int64_t> SearchOptions::CostOf(const ScheduleRun& run) const {
  const int64_t kept = std::accumulate(run.most_kept.begin(), run.most_kept.end(), int64_t{0});
  return by_longest_stage ? std::make_tuple(run.longest_stage, run.makespan, kept)
                          : std::make_tuple(run.makespan, run.longest_stage, kept);
}

absl::StatusOr<FoundSchedule> FindSchedule(int64_t micro_batches, const PipelineTimes& times,
                                           const SearchOptions& options) {
  return Search(micro_batches, times, options).Find();
}

}  // namespace plancast
