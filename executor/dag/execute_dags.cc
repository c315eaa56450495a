#include "executor/dag/execute_dags.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/dag/comm_prices.h"

namespace plancast {
namespace {

using Kind = DagTask::Kind;

// One run of a job.
class Run {
 public:
  Run(const DagJob& job, const Machine& machine)
      : job_(job), prices_(machine, fluid_), ranks_(job.dag_of.size()), shapes_(job.dags.size()) {
    for (size_t d = 0; d < job.dags.size(); ++d) {
      job.dags[d].Waiting(shapes_[d].begin, shapes_[d].waiting);
      shapes_[d].collectives.resize(job.groups.size());
      shapes_[d].place.resize(job.dags[d].tasks.size());
      for (const int32_t task : job.dags[d].Order()) {
        const DagTask& what = job.dags[d].tasks[task];
        if (what.kind != Kind::kCollective) continue;
        std::vector<int32_t>& collectives = shapes_[d].collectives[what.group];
        shapes_[d].place[task] = static_cast<int32_t>(collectives.size());
        collectives.push_back(task);
      }
    }
    meetings_of_.resize(job.groups.size());
    most_in_flight_.resize(job.queues.size());
  }

  absl::StatusOr<DagResult> Go() {
    for (int32_t r = 0; r < static_cast<int32_t>(ranks_.size()); ++r) {
      Rank& rank = ranks_[r];
      const RankDag& dag = DagOf(r);
      rank.next.resize(job_.groups.size());
      rank.left.resize(dag.tasks.size());
      rank.ready.resize(dag.tasks.size());
      rank.tasks_left = static_cast<int64_t>(dag.tasks.size());
      for (size_t i = 0; i < dag.tasks.size(); ++i) {
        rank.left[i] = dag.dep_begin[i + 1] - dag.dep_begin[i];
      }
      for (size_t i = 0; i < dag.tasks.size(); ++i) {
        if (dag.dep_begin[i + 1] == dag.dep_begin[i]) {
          RETURN_IF_ERROR(Free(r, static_cast<int32_t>(i)));
        }
      }
    }
    while (true) {
      RETURN_IF_ERROR(Settle());
      const int64_t timed = events_.empty() ? Fluid::kNever : events_.top().time;
      const int64_t next = std::min(timed, fluid_.NextCompletion());
      if (next == Fluid::kNever) break;
      now_ = next;
      std::vector<int32_t> ended;
      for (const int32_t activity : fluid_.AdvanceTo(now_)) {
        ended.push_back(meeting_of_activity_[activity]);
      }
      std::sort(ended.begin(), ended.end());
      for (const int32_t meeting : ended) RETURN_IF_ERROR(End(meeting));
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        if (event.rank < 0) {
          RETURN_IF_ERROR(Flow(event.what));
        } else {
          RETURN_IF_ERROR(Done(event.rank, event.what));
        }
      }
    }
    return Result();
  }

 private:
  // Per dag: what waits for a task, and the collectives of each group in order.
  struct Shape {
    std::vector<int32_t> begin, waiting;
    std::vector<std::vector<int32_t>> collectives;
    std::vector<int32_t> place;  // of a collective among those of its group, by task
  };
  // Of a CommQueue, that of one group or one sender.
  struct Turns {
    int32_t queue = 0;
    int64_t in_flight = 0;
    bool touched = false;
    std::set<std::tuple<int64_t, int64_t, int32_t>> waiting;  // what goes first, place, meeting
  };
  using Queue = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;
  struct Rank {
    std::vector<int32_t> left;  // dependencies, by task
    std::vector<bool> ready;    // by task
    std::vector<int32_t> next;  // by group: collectives joined
    Queue host, kernels;        // free to run
    bool host_busy = false, kernel_busy = false;
    int32_t comms = 0;  // joined and not ended
    int64_t tasks_left = 0;
    int64_t since = 0;  // of the parts below
    DagRankResult result;
  };
  // Of a collective of a group, or of a message.
  struct Meeting {
    DagTask task;
    int32_t group = -1;  // -1: a message
    int64_t source = -1, destination = -1;
    std::vector<std::pair<int32_t, int32_t>> parties;  // (rank, task)
    int64_t begin = 0;
    bool begun = false, ended = false;
    const CommPrices::Price* price = nullptr;  // null: it takes what its task says
    Turns* turns = nullptr;                    // that it was let go by
  };
  struct Event {
    int64_t time = 0;
    int64_t order = 0;
    int32_t rank = -1;  // -1: the delay of meeting `what` is over
    int32_t what = 0;
    bool operator>(const Event& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };
  // Messages of one pair, tag and size whose other end has not come.
  struct Waiting {
    std::deque<std::pair<int32_t, int32_t>> sends, receives;
    std::deque<int32_t> sent;  // meetings, where sends are buffered
  };

  const RankDag& DagOf(int32_t rank) const { return job_.dags[job_.dag_of[rank]]; }
  const Shape& ShapeOf(int32_t rank) const { return shapes_[job_.dag_of[rank]]; }

  void Account(Rank& rank) {
    const int64_t passed = now_ - rank.since;
    (rank.kernel_busy ? rank.result.kernels_ps
     : rank.comms > 0 ? rank.result.exposed_ps
                      : rank.result.idle_ps) += passed;
    rank.since = now_;
  }

  void At(int64_t time, int32_t rank, int32_t what) { events_.push({time, order_++, rank, what}); }

  absl::Status Free(int32_t r, int32_t index) {
    Rank& rank = ranks_[r];
    const DagTask& task = DagOf(r).tasks[index];
    switch (task.kind) {
      case Kind::kNothing:
        done_.emplace_back(r, index);
        return absl::OkStatus();
      case Kind::kHost:
        rank.host.push(index);
        touched_.push_back(r);
        return absl::OkStatus();
      case Kind::kKernel:
        rank.kernels.push(index);
        touched_.push_back(r);
        return absl::OkStatus();
      case Kind::kCollective:
        rank.ready[index] = true;
        return task.queue < 0 ? Join(r, task.group)
                              : JoinAt(r, task.group, ShapeOf(r).place[index]);
      default:
        return Meet(r, index);
    }
  }

  // Joins what is next of a group, while it is free.
  absl::Status Join(int32_t r, int32_t group) {
    Rank& rank = ranks_[r];
    const auto& sequence = ShapeOf(r).collectives[group];
    for (int32_t& next = rank.next[group];
         next < static_cast<int32_t>(sequence.size()) && rank.ready[sequence[next]]; ++next) {
      RETURN_IF_ERROR(JoinAt(r, group, next));
    }
    return absl::OkStatus();
  }

  // Joins the collective at a place among those of a group.
  absl::Status JoinAt(int32_t r, int32_t group, int32_t place) {
    Rank& rank = ranks_[r];
    const int32_t index = ShapeOf(r).collectives[group][place];
    const DagTask& task = DagOf(r).tasks[index];
    auto& meetings = meetings_of_[group];
    while (place >= static_cast<int32_t>(meetings.size())) {
      meetings.push_back(static_cast<int32_t>(meetings_.size()));
      meetings_.emplace_back();
      meetings_.back().group = group;
    }
    Meeting& meeting = meetings_[meetings[place]];
    if (meeting.parties.empty()) meeting.task = task;
    if (task.collective != meeting.task.collective || task.bytes != meeting.task.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", r, ": task ", task.id, " is not the collective that other ",
                       "members of its group issue there. All must issue the same in order."));
    }
    Account(rank);
    ++rank.comms;
    meeting.parties.emplace_back(r, index);
    if (task.queue < 0) return StartIfAllAreThere(group, place);
    if (meeting.parties.size() != job_.groups[group].size()) return absl::OkStatus();
    return TakeTurns(meetings[place], ~int64_t{group}, place);
  }

  absl::Status StartIfAllAreThere(int32_t group, int32_t place) {
    const auto& meetings = meetings_of_[group];
    if (place >= static_cast<int32_t>(meetings.size())) return absl::OkStatus();
    const Meeting& meeting = meetings_[meetings[place]];
    const bool first = place == 0 || meetings_[meetings[place - 1]].ended;
    if (meeting.begun || !first || meeting.parties.size() != job_.groups[group].size())
      return absl::OkStatus();
    return Start(meetings[place]);
  }

  absl::Status Meet(int32_t r, int32_t index) {
    const DagTask& task = DagOf(r).tasks[index];
    const bool send = task.kind == Kind::kSend;
    const int64_t from = send ? r : task.peer, to = send ? task.peer : r;
    Waiting& waiting = messages_[{from, to, task.tag, task.bytes}];
    Account(ranks_[r]);
    ++ranks_[r].comms;
    if (job_.buffered_sends) return send ? Post(r, index, waiting) : Await(r, index, waiting);
    auto& mine = send ? waiting.sends : waiting.receives;
    auto& others = send ? waiting.receives : waiting.sends;
    if (others.empty()) {
      mine.emplace_back(r, index);
      return absl::OkStatus();
    }
    Meeting meeting;
    meeting.task = task;
    meeting.task.collective = CollectiveKind::kSendRecv;
    meeting.source = from, meeting.destination = to;
    meeting.parties = {{r, index}, others.front()};
    others.pop_front();
    // The sender says when it goes.
    const int32_t sent = send ? index : meeting.parties[1].second;
    meeting.task = DagOf(static_cast<int32_t>(from)).tasks[sent];
    meeting.task.collective = CollectiveKind::kSendRecv;
    return Send(std::move(meeting), sent);
  }

  // Task `sent` of the sender goes, when it is its turn.
  absl::Status Send(Meeting meeting, int32_t sent) {
    const int64_t from = meeting.source, to = meeting.destination;
    const int32_t queue = meeting.task.queue;
    meetings_.push_back(std::move(meeting));
    const auto number = static_cast<int32_t>(meetings_.size()) - 1;
    if (queue < 0) return Start(number);
    const bool apart = job_.queues[queue].per_receiver;
    return TakeTurns(number, apart ? (from << 32) + to : from, sent);
  }

  // A send that does not wait for its receive.
  absl::Status Post(int32_t r, int32_t index, Waiting& waiting) {
    Meeting meeting;
    meeting.task = DagOf(r).tasks[index];
    meeting.task.collective = CollectiveKind::kSendRecv;
    meeting.source = r, meeting.destination = meeting.task.peer;
    meeting.parties = {{r, index}};
    if (waiting.receives.empty()) {
      waiting.sent.push_back(static_cast<int32_t>(meetings_.size()));
    } else {
      meeting.parties.push_back(waiting.receives.front());
      waiting.receives.pop_front();
    }
    return Send(std::move(meeting), index);
  }

  // Its receive.
  absl::Status Await(int32_t r, int32_t index, Waiting& waiting) {
    if (waiting.sent.empty()) {
      waiting.receives.emplace_back(r, index);
      return absl::OkStatus();
    }
    Meeting& meeting = meetings_[waiting.sent.front()];
    waiting.sent.pop_front();
    if (meeting.ended) {
      done_.emplace_back(r, index);
    } else {
      meeting.parties.emplace_back(r, index);
    }
    return absl::OkStatus();
  }

  // A communication that all have joined waits for its turn in the queue of `whose`.
  absl::Status TakeTurns(int32_t number, int64_t whose, int32_t place) {
    const DagTask& task = meetings_[number].task;
    if (task.priority < 0) return Start(number);
    const auto [turns, added] = turns_.try_emplace({task.queue, whose});
    if (added) turns->second.queue = task.queue;
    const bool by_priority = job_.queues[task.queue].by_priority;
    turns->second.waiting.emplace(by_priority ? task.priority : now_, place, number);
    meetings_[number].turns = &turns->second;
    Touch(&turns->second);
    return absl::OkStatus();
  }

  void Touch(Turns* turns) {
    if (turns->touched) return;
    turns->touched = true;
    touched_turns_.push_back(turns);
  }

  // Lets go what the credit is enough for.
  absl::Status LetGo(Turns* turns) {
    turns->touched = false;
    int64_t& most = most_in_flight_[turns->queue];
    while (!turns->waiting.empty() && turns->in_flight < job_.queues[turns->queue].credit_bytes) {
      const int32_t number = std::get<2>(*turns->waiting.begin());
      turns->waiting.erase(turns->waiting.begin());
      turns->in_flight += meetings_[number].task.bytes;
      most = std::max(most, turns->in_flight);
      RETURN_IF_ERROR(Start(number));
    }
    return absl::OkStatus();
  }

  absl::Status Start(int32_t index) {
    Meeting& meeting = meetings_[index];
    meeting.begin = now_;
    meeting.begun = true;
    if (meeting.task.takes_ps >= 0) {
      At(now_ + meeting.task.overhead_ps + meeting.task.takes_ps, -1, index);
      return absl::OkStatus();
    }
    std::vector<int64_t> pair;
    std::pair<int64_t, int64_t> key(-1, meeting.group);
    if (meeting.group < 0) {
      key = {meeting.source, meeting.destination};
      pair = {std::min(key.first, key.second), std::max(key.first, key.second)};
    }
    ASSIGN_OR_RETURN(meeting.price,
                     prices_.Of(key, meeting.group < 0 ? pair : job_.groups[meeting.group],
                                meeting.task.collective, meeting.task.bytes, meeting.source));
    At(now_ + meeting.task.overhead_ps + meeting.price->realised.delay_ps, -1, index);
    return absl::OkStatus();
  }

  // The delay of a communication is over.
  absl::Status Flow(int32_t index) {
    Meeting& meeting = meetings_[index];
    if (meeting.price == nullptr || meeting.price->activity_kind < 0) return End(index);
    const int32_t activity =
        fluid_.Start(meeting.price->activity_kind, meeting.price->realised.work_bytes);
    if (activity >= static_cast<int32_t>(meeting_of_activity_.size())) {
      meeting_of_activity_.resize(activity + 1);
    }
    meeting_of_activity_[activity] = index;
    return absl::OkStatus();
  }

  absl::Status End(int32_t index) {
    Meeting& meeting = meetings_[index];
    meeting.ended = true;
    comms_.push_back({meeting.task.collective, meeting.task.bytes,
                      meeting.group < 0 ? 2 : static_cast<int64_t>(meeting.parties.size()), "", "",
                      meeting.begin, now_});
    if (meeting.price != nullptr) {
      comms_.back().algorithm = meeting.price->realised.algorithm;
      comms_.back().protocol = meeting.price->realised.protocol;
    }
    if (Turns* const turns = meeting.turns; turns != nullptr) {
      turns->in_flight -= meeting.task.bytes;
      Touch(turns);
    }
    const int32_t group = meeting.group;
    const bool in_order = group >= 0 && meeting.task.queue < 0;
    const int64_t begin = meeting.begin;
    const auto parties = std::move(meeting.parties);
    for (const auto& [r, task] : parties) {
      if (r == 0) spans_.push_back({task, begin, now_});
      RETURN_IF_ERROR(Done(r, task));
    }
    if (!in_order) return absl::OkStatus();
    const auto& meetings = meetings_of_[group];
    const auto place = std::lower_bound(meetings.begin(), meetings.end(), index);
    return StartIfAllAreThere(group, static_cast<int32_t>(place - meetings.begin()) + 1);
  }

  absl::Status Done(int32_t r, int32_t index) {
    Rank& rank = ranks_[r];
    Account(rank);
    switch (DagOf(r).tasks[index].kind) {
      case Kind::kNothing:
        break;
      case Kind::kHost:
      case Kind::kKernel:
        (DagOf(r).tasks[index].kind == Kind::kHost ? rank.host_busy : rank.kernel_busy) = false;
        if (r == 0) spans_.push_back({index, now_ - DagOf(r).tasks[index].duration_ps, now_});
        break;
      default:
        --rank.comms;
    }
    touched_.push_back(r);
    if (--rank.tasks_left == 0) rank.result.finish_ps = now_;
    const Shape& shape = ShapeOf(r);
    for (int32_t w = shape.begin[index]; w < shape.begin[index + 1]; ++w) {
      const int32_t waiting = shape.waiting[w];
      if (--rank.left[waiting] > 0) continue;
      RETURN_IF_ERROR(Free(r, waiting));
    }
    return absl::OkStatus();
  }

  // Ends what takes no time, and starts what is free, by rank.
  absl::Status Settle() {
    while (!done_.empty()) {
      const auto [r, index] = done_.front();
      done_.pop_front();
      RETURN_IF_ERROR(Done(r, index));
    }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const int32_t r : touched_) {
      Rank& rank = ranks_[r];
      for (auto [queue, busy] : {std::make_pair(&rank.host, &rank.host_busy),
                                 std::make_pair(&rank.kernels, &rank.kernel_busy)}) {
        if (*busy || queue->empty()) continue;
        const int32_t index = queue->top();
        queue->pop();
        Account(rank);
        *busy = true;
        At(now_ + DagOf(r).tasks[index].duration_ps, r, index);
      }
    }
    touched_.clear();
    // Once all that ends now has ended and all that is free now waits.
    if (events_.empty() || events_.top().time > now_) {
      const std::vector<Turns*> touched = std::exchange(touched_turns_, {});
      for (Turns* const turns : touched) RETURN_IF_ERROR(LetGo(turns));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DagResult> Result() {
    DagResult result;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.tasks_left > 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", r, kNeverEnds, rank.tasks_left, " of its ", rank.left.size(),
            " tasks wait for others. Members of a group must issue the same collectives in the "
            "same order, and every send needs a receive of its size and tag."));
      }
      result.ranks.push_back(rank.result);
      result.makespan_ps = std::max(result.makespan_ps, rank.result.finish_ps);
    }
    std::stable_sort(comms_.begin(), comms_.end(),
                     [](const DagComm& a, const DagComm& b) { return a.begin_ps < b.begin_ps; });
    result.comms = std::move(comms_);
    result.spans = std::move(spans_);
    result.most_in_flight = std::move(most_in_flight_);
    return result;
  }

  const DagJob& job_;
  Fluid fluid_;
  CommPrices prices_;
  std::vector<Rank> ranks_;
  std::vector<Shape> shapes_;
  int64_t now_ = 0, order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Meeting> meetings_;
  std::vector<std::vector<int32_t>> meetings_of_;  // by group
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t, int64_t>, Waiting> messages_;
  std::vector<int32_t> meeting_of_activity_;
  std::vector<int32_t> touched_;                  // ranks that may start something
  std::deque<std::pair<int32_t, int32_t>> done_;  // without taking time
  std::vector<DagComm> comms_;
  std::map<std::pair<int32_t, int64_t>, Turns> turns_;  // by queue and by sender or ~group
  std::vector<Turns*> touched_turns_;
  std::vector<int64_t> most_in_flight_;
  std::vector<DagSpan> spans_;
};

}  // namespace

absl::StatusOr<DagResult> ExecuteDags(const DagJob& job, const Machine& machine) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of traces"));
  RETURN_IF_ERROR(job.Verify());
  if (static_cast<int64_t>(job.dag_of.size()) > machine.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("the job has ", job.dag_of.size(),
                                                   " ranks, the machine ", machine.num_devices(),
                                                   " devices. Take more hosts: `PRESET:HOSTS`."));
  }
  return Run(job, machine).Go();
}

}  // namespace plancast
