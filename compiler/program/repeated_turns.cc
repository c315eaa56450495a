#include "compiler/program/repeated_turns.h"

#include <algorithm>
#include <optional>

#include "compiler/schedule/repeated_steps.h"

namespace plancast {
namespace {

// Whether one does for micro-batches so much later what the other does.
bool IsLike(const Instance& a, const Instance& b, int32_t later) {
  return a.block == b.block && a.micro_batch + later == b.micro_batch &&
         a.layer_begin == b.layer_begin && a.layer_count == b.layer_count && a.chunk == b.chunk &&
         a.phase == b.phase && a.join_end - a.join_begin == b.join_end - b.join_begin &&
         (a.rendezvous < 0) == (b.rendezvous < 0) && !a.pairs() && !b.pairs();
}

}  // namespace

void RepeatedTurns::Begin(const std::vector<ScheduleStep>& schedule, const LastPasses& last_passes,
                          int64_t most_micro_batches) {
  size_t until = 0;
  while (until < schedule.size() && !last_passes.GoesBackAt(until)) ++until;
  const std::optional<RepeatedSteps> repeated =
      FindRepeatedSteps(schedule, until, most_micro_batches);
  if (!repeated.has_value()) return;
  next_ = repeated->begin;
  end_ = std::min(repeated->end, until);
  length_ = repeated->length;
  micro_batches_ = repeated->micro_batches;
  writer_.RecordMeetings(&meetings_);
}

void RepeatedTurns::Stop() {
  length_ = 0;
  writer_.RecordMeetings(nullptr);
}

RepeatedTurns::Mark RepeatedTurns::Now() const {
  const Program& program = writer_.program();
  return {static_cast<int32_t>(program.instances.size()), program.joins.size(), meetings_.size(),
          left_.size()};
}

size_t RepeatedTurns::Append(size_t begin) {
  if (length_ == 0 || begin < next_) return 0;
  // Steps that are written together may begin in one turn and end in the next.
  const bool missed = begin > next_ && !marks_.empty();
  const size_t times = begin < end_ ? (end_ - begin) / length_ : 0;
  if (missed || times == 0) {
    Stop();
    return 0;
  }
  next_ = begin + length_;
  marks_.push_back(Now());
  const size_t turns = marks_.size() - 1;
  if (others_) alike_ = turns;
  others_ = false;
  if (turns < alike_ + 2) return 0;
  if (!IsLikeBefore()) {
    alike_ = turns - 1;
    return 0;
  }
  if (!RefersTo(marks_[alike_].instances)) return 0;
  const Mark &from = marks_[turns - 1], &to = marks_[turns];
  writer_.Repeat(from.instances,
                 absl::MakeConstSpan(meetings_.data() + from.meetings, to.meetings - from.meetings),
                 micro_batches_, static_cast<int32_t>(times));
  const int32_t length = to.instances - from.instances;
  for (int32_t t = 1; t <= static_cast<int32_t>(times); ++t) {
    for (size_t i = from.left; i < to.left; ++i) {
      const Left& left = left_[i];
      (*left.column)[left.micro_batch + t * micro_batches_] = left.instance + t * length;
    }
  }
  const size_t written = times * length_;
  Stop();
  return written;
}

bool RepeatedTurns::IsLikeBefore() const {
  const Mark* const mark = &marks_[marks_.size() - 3];
  const int32_t length = mark[1].instances - mark[0].instances;
  if (mark[2].instances - mark[1].instances != length ||
      mark[2].joins - mark[1].joins != mark[1].joins - mark[0].joins ||
      mark[2].meetings - mark[1].meetings != mark[1].meetings - mark[0].meetings ||
      mark[2].left - mark[1].left != mark[1].left - mark[0].left) {
    return false;
  }
  const auto alike = [mark](const auto& all, size_t Mark::*place, const auto& is_like) {
    const auto* const before = all.data() + mark[0].*place;
    return std::equal(before, before + (mark[1].*place - mark[0].*place),
                      all.data() + mark[1].*place, is_like);
  };
  const Program& program = writer_.program();
  const Instance* const before = program.instances.data() + mark[0].instances;
  return std::equal(before, before + length, before + length,
                    [this](const Instance& a, const Instance& b) {
                      return IsLike(a, b, micro_batches_);
                    }) &&
         alike(program.joins, &Mark::joins,
               [length](const Join& a, const Join& b) {
                 return a.from + length == b.from && a.from_port == b.from_port &&
                        a.to_port == b.to_port;
               }) &&
         alike(meetings_, &Mark::meetings,
               [&](const ProgramWriter::Meeting& a, const ProgramWriter::Meeting& b) {
                 return a.instance + length == b.instance && a.slot + micro_batches_ == b.slot;
               }) &&
         alike(left_, &Mark::left, [&](const Left& a, const Left& b) {
           return a.column == b.column && a.micro_batch + micro_batches_ == b.micro_batch &&
                  a.instance + length == b.instance;
         });
}

bool RepeatedTurns::RefersTo(int32_t first) const {
  const Mark &from = marks_[marks_.size() - 2], &to = marks_.back();
  const std::vector<Join>& joins = writer_.program().joins;
  const std::vector<int32_t>& held = writer_.held_by();
  const auto is_since = [first](int32_t instance) { return instance >= first; };
  return is_since(writer_.last_compute()) && std::all_of(held.begin(), held.end(), is_since) &&
         std::all_of(joins.begin() + from.joins, joins.begin() + to.joins,
                     [&](const Join& join) { return is_since(join.from); }) &&
         std::all_of(left_.begin() + from.left, left_.begin() + to.left,
                     [&](const Left& left) { return is_since(left.instance); });
}

}  // namespace plancast
