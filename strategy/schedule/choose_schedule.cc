#include "strategy/schedule/choose_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/schedule/check_schedule.h"
#include "strategy/schedule/interleaved_group.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/schedule_word.h"

namespace plancast {
namespace {

class Chooser {
 public:
  Chooser(const ShortForm& form, const SoftwareProfile& profile, PlanOptions* options,
          std::vector<std::string>* notes)
      : form_(form), profile_(profile), o_(*options), notes_(notes) {}

  absl::Status Choose() {
    o_.vpp = form_.vpp.value_or(1);
    if (o_.pp == 1) {
      WithoutPipeline();
      return absl::OkStatus();
    }
    o_.schedule = o_.vpp > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
    if (form_.schedule.has_value()) {
      RETURN_IF_ERROR(LooksLikeScheduleTable(*form_.schedule) ? TakeTable() : TakeName());
    }
    if (notes_ != nullptr) NoteMicroBatches();
    return absl::OkStatus();
  }

 private:
  template <typename... Parts>
  void Note(const Parts&... parts) {
    if (notes_ != nullptr) notes_->push_back(absl::StrCat(parts...));
  }

  void NoteMicroBatches() {
    if (o_.schedule == Schedule::kInterleaved) {
      const int64_t group = InterleavedGroup(o_.pp, o_.micro_batches);
      if (group > o_.pp) {
        Note("the ", o_.micro_batches, " micro-batches are not a multiple of pp=", o_.pp,
             ": the interleaved schedule takes ", group, " at a time, which needs more memory");
      }
    }
    if (o_.micro_batches < o_.pp) {
      Note("fewer micro-batches (", o_.micro_batches, ") than pipeline stages (", o_.pp, ")");
    }
    // It is simulated all the same: another release may run it, and it is what was asked for.
    const std::string why = profile_.limits.WhyNotSoMany(form_, profile_.name, o_.micro_batches);
    if (!why.empty()) Note("it would not run: ", why);
  }

  void WithoutPipeline() {
    if (o_.vpp > 1) Note("vpp=", o_.vpp, " has no effect with pp=1");
    if (form_.schedule.has_value()) {
      const bool table = LooksLikeScheduleTable(*form_.schedule);
      Note(table ? "a table of the schedule" : absl::StrCat("schedule=", *form_.schedule),
           " has no effect with pp=1");
    }
    o_.vpp = 1;
    o_.schedule = Schedule::kNone;
  }

  absl::Status TakeName() {
    const ScheduleWord word = *ReadScheduleWord(*form_.schedule);
    const Schedule said = word.schedule;
    o_.search_memory = word.search_memory;
    if (!word.most_ongoing.empty()) return TakeOngoing(word);
    if (Turns(said)) return TakeTurning(said);
    if (RunsBothWays(said) && o_.micro_batches < 2) {
      return Wrong("schedule=", *form_.schedule, " sends half of the micro-batches each way, and ",
                   "there is one. Take a smaller mb, less dp or a larger batch.");
    }
    if (RunsBothWays(said) && o_.pp % 2 != 0) {
      return Wrong("schedule=", *form_.schedule,
                   " sends micro-batches down the stages and up, and ",
                   "pairs stages that hold the same layers: pp=", o_.pp,
                   " is odd. Take an even pp, or schedule=dualpipev.");
    }
    if (o_.vpp == 1 && RunsChunks(said) && !FollowsTimes(said)) {
      o_.schedule = said == Schedule::kBreadthFirst ? Schedule::kGpipe : Schedule::k1f1b;
      Note("schedule=", kScheduleNames[said], " with vpp=1 is ", kScheduleNames[o_.schedule]);
      return absl::OkStatus();
    }
    if (o_.vpp > 1 && !RunsChunks(said)) {
      return Wrong("schedule=", *form_.schedule,
                   " runs one chunk of layers a stage, and vpp=", o_.vpp, " asks for ", o_.vpp,
                   ". Use schedule=interleaved, or leave vpp out.");
    }
    o_.schedule = said;
    return absl::OkStatus();
  }

  // Layers that go down the stages and up again.
  absl::Status TakeTurning(Schedule said) {
    o_.vpp = form_.vpp.value_or(UsualChunks(said));
    o_.schedule = said;
    if (said == Schedule::kHanayo ? o_.vpp % 2 == 0 : o_.vpp == 2) return absl::OkStatus();
    return Wrong("schedule=", *form_.schedule, " takes layers down the stages and up again",
                 said == Schedule::kHanayo ? ", as often as vpp says, twice for each wave" : "",
                 ": vpp=", o_.vpp, " is ", o_.vpp % 2 != 0 ? "odd" : "more than one V",
                 said == Schedule::kHanayo ? ". Take an even vpp, or leave it out for one wave."
                                           : ". Leave vpp out, or use schedule=hanayo.");
  }

  // By what stages may have in flight: a rule with a name where it is that one's.
  absl::Status TakeOngoing(const ScheduleWord& word) {
    const std::vector<int64_t>& most = word.most_ongoing;
    if (o_.vpp > 1) {
      return Wrong("schedule=", *form_.schedule, " counts micro-batches of stages with one chunk ",
                   "of layers, and vpp=", o_.vpp, " asks for ", o_.vpp,
                   ". Leave vpp out, or use schedule=interleaved.");
    }
    if (most.size() != 1 && static_cast<int64_t>(most.size()) != o_.pp) {
      return Wrong("schedule=", *form_.schedule, " says it for ", most.size(),
                   " stages, and the plan has ", o_.pp,
                   ". Give one number a stage, or one for all.");
    }
    const auto bound = [&](int64_t s) { return most.size() == 1 ? most[0] : most[s]; };
    bool one_by_one = true, all_at_once = true;
    for (int64_t s = 0; s < o_.pp; ++s) {
      one_by_one = one_by_one && bound(s) == o_.pp - s;
      all_at_once = all_at_once && bound(s) >= o_.micro_batches;
    }
    o_.schedule = word.schedule;
    if (word.schedule == Schedule::kOngoing && (one_by_one || all_at_once)) {
      o_.schedule = one_by_one ? Schedule::k1f1b : Schedule::kGpipe;
      return absl::OkStatus();
    }
    for (int64_t s = 0; s < o_.pp; ++s) {
      o_.most_ongoing.push_back(std::min(bound(s), o_.micro_batches));
    }
    return absl::OkStatus();
  }

  absl::Status TakeTable() {
    o_.schedule = Schedule::kTable;
    ASSIGN_OR_RETURN(const ScheduleTable table, ParseScheduleTable(*form_.schedule));
    // As many micro-batches are what a table has steps for.
    RETURN_IF_ERROR(CheckSchedule(table, {o_.pp, o_.micro_batches, o_.vpp}).status())
        << "`schedule`";
    o_.schedule_table = PrintScheduleTable(table);
    return absl::OkStatus();
  }

  const ShortForm& form_;
  const SoftwareProfile& profile_;
  PlanOptions& o_;
  std::vector<std::string>* const notes_;
};

}  // namespace

absl::Status ChooseSchedule(const ShortForm& form, const SoftwareProfile& profile,
                            PlanOptions* options, std::vector<std::string>* notes) {
  return Chooser(form, profile, options, notes).Choose();
}

}  // namespace plancast
