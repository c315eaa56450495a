#include "executor/horizon.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace plancast {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

Horizon::Horizon(const SimInput& input, const SimTrace& trace, const std::vector<int64_t>& alone_ps,
                 Lanes& lanes)
    : in_(input), trace_(trace), lanes_(lanes) {
  std::vector<int64_t> fastest;  // of the groups of each use
  for (const SimGraph::Use& use : in_.sim.uses) {
    const auto begin = alone_ps.begin() + use.first_group;
    fastest.push_back(use.num_groups == 0 ? 0 : *std::min_element(begin, begin + use.num_groups));
  }
  std::vector<std::pair<int32_t, int32_t>> known;  // program and speed
  for (const SimGraph::Entity& entity : in_.sim.entities) {
    const std::pair<int32_t, int32_t> key(entity.program, entity.price_row);
    // Entities of a program are neighbours, so a look back finds most.
    const auto found = std::find(known.rbegin(), known.rend(), key);
    work_of_.push_back(static_cast<int32_t>(known.rend() - found) - 1);
    if (found != known.rend()) continue;
    work_of_.back() = static_cast<int32_t>(known.size());
    known.push_back(key);
    work_before_.push_back(WorkBefore(entity, fastest));
  }
  int32_t parties = 0;
  for (const Rendezvous& rendezvous : in_.graph.rendezvous) {
    party_begin_.push_back(parties);
    parties += static_cast<int32_t>(rendezvous.parties.size());
  }
  party_task_.resize(parties);
  for (size_t p = 0; p < in_.tables.size(); ++p) {
    const TaskTable& table = in_.tables[p];
    for (int32_t t = 0; t < table.size(); ++t) {
      if ((table.flags[t] & TaskTable::kMeets) == 0) continue;
      int32_t party = party_begin_[table.spec[t]];
      for (const Rendezvous::Party& at : in_.graph.rendezvous[table.spec[t]].parties) {
        if (at.program == static_cast<int32_t>(p)) break;
        ++party;
      }
      party_task_[party] = t;
    }
  }
}

std::vector<int64_t> Horizon::WorkBefore(const SimGraph::Entity& entity,
                                         const std::vector<int64_t>& fastest) const {
  const TaskTable& table = in_.tables[entity.program];
  const auto is_comm = [&](int32_t t) { return (table.flags[t] & TaskTable::kIsComm) != 0; };
  std::vector<int64_t> before(table.size() + 1);
  for (int32_t t = 0; t < table.size(); ++t) {
    int64_t between = 0;
    for (int32_t d = table.dep_begin[t]; d < table.dep_begin[t + 1]; ++d) {
      const int32_t dep = table.deps[d];
      if (!is_comm(dep) || (table.flags[dep] & TaskTable::kMeets) != 0) continue;
      for (int32_t i = table.dep_begin[dep]; i < table.dep_begin[dep + 1]; ++i) {
        if (table.deps[i] == t - 1) between = std::max(between, fastest[table.spec[dep]]);
      }
    }
    before[t + 1] = before[t] + between +
                    (is_comm(t) ? 0 : in_.prices.Duration(entity.price_row, table.spec[t]));
  }
  return before;
}

int64_t Horizon::Of(int32_t entity, int stream, int64_t now, int64_t need) {
  int64_t horizon = kNever;
  for (int other = 0; other < kNumStreams && horizon >= need; ++other) {
    if (other == stream) continue;
    horizon = std::min(horizon, OfLane(entity * kNumStreams + other, stream, now, need, kDepth));
  }
  return horizon;
}

int64_t Horizon::OfLane(int32_t lane, int stream, int64_t now, int64_t need, int depth) {
  const int32_t entity = lane / kNumStreams;
  // Bounds only rise, so one that is enough stays so.
  switch (lanes_.state[lane]) {
    case Lanes::kIdle:
      if (lanes_.next[lane] == TableOf(entity).stream_begin[lane % kNumStreams + 1]) return kNever;
      return now;
    case Lanes::kBlocked: {
      const int32_t blocker = lanes_.blocker[lane];
      if (TableOf(entity).StreamOf(blocker) == stream) return kNever;
      if (lanes_.bound[lane] >= need) break;
      const int64_t end = EndOf(entity, blocker, stream, now, depth);
      if (stream != kNoStream) return end;
      lanes_.bound[lane] = std::max(lanes_.bound[lane], end);
      break;
    }
    case Lanes::kMeets:
      if (lanes_.bound[lane] < need) {
        lanes_.bound[lane] = std::max(lanes_.bound[lane], OfMeeting(lane, now));
      }
      break;
    case Lanes::kFlies:
    case Lanes::kKernel:
      break;
  }
  return std::max(now, lanes_.bound[lane]);
}

// All members that have not come yet have to come first.
int64_t Horizon::OfMeeting(int32_t lane, int64_t now) const {
  const int32_t entity = lane / kNumStreams, task = lanes_.next[lane];
  const TaskTable& table = TableOf(entity);
  const bool meets = (table.flags[task] & TaskTable::kMeets) != 0;
  const int32_t spec = table.spec[task];
  const int32_t group = in_.sim.GroupOf(meets ? in_.uses.of_rendezvous[spec] : spec, entity);
  int64_t bound = std::max(now, trace_.start[trace_.begin[entity] + task]);
  for (const int32_t member : in_.sim.MembersOf(in_.sim.groups[group])) {
    if (member == entity) continue;
    int32_t own = task;
    if (meets) {
      int32_t party = party_begin_[spec];
      for (const Rendezvous::Party& at : in_.graph.rendezvous[spec].parties) {
        if (at.program == in_.sim.entities[member].program) break;
        ++party;
      }
      own = party_task_[party];
    }
    bound = std::max(bound, BeginOf(member, own, kNoStream, now, kDepth - 1));
  }
  return bound;
}

int64_t Horizon::BeginOf(int32_t entity, int32_t task, int stream, int64_t now, int depth) const {
  const TaskTable& table = TableOf(entity);
  int64_t bound = now;
  for (int32_t d = table.dep_begin[task]; d < table.dep_begin[task + 1]; ++d) {
    bound = std::max(bound, EndOf(entity, table.deps[d], stream, now, depth));
  }
  return bound;
}

int64_t Horizon::EndOf(int32_t entity, int32_t task, int stream, int64_t now, int depth) const {
  const int64_t known = trace_.end[trace_.begin[entity] + task];
  if (known >= 0) return std::max(known, now);
  const TaskTable& table = TableOf(entity);
  const int own = table.StreamOf(task);
  if (own == stream) return kNever;
  const int32_t lane = entity * kNumStreams + own;
  const int32_t next = lanes_.next[lane];
  const std::vector<int64_t>& before = work_before_[work_of_[entity]];
  int64_t from = now;  // when the next task begins or, under way, ends
  bool begins = true;
  switch (lanes_.state[lane]) {
    case Lanes::kIdle:
      break;
    case Lanes::kBlocked:
      if (depth == 0) break;
      from = std::max(from, EndOf(entity, lanes_.blocker[lane], stream, now, depth - 1));
      break;
    case Lanes::kMeets:
      from = std::max(from, lanes_.bound[lane]);
      break;
    case Lanes::kFlies:
    case Lanes::kKernel:
      from = std::max(from, lanes_.bound[lane]);
      begins = false;
      break;
  }
  if (from == kNever) return kNever;
  if (begins && (table.flags[next] & TaskTable::kIsComm) == 0) {
    from += in_.prices.Duration(in_.sim.entities[entity].price_row, table.spec[next]);
  }
  from += before[task + 1] - before[next + 1];
  if (next > table.stream_begin[own]) {
    const int64_t last = trace_.end[trace_.begin[entity] + next - 1];
    from = std::max(from, last + before[task + 1] - before[next]);
  }
  if (depth == 0 || (table.flags[task] & TaskTable::kIsComm) == 0) return from;
  return std::max(from, BeginOf(entity, task, stream, now, depth - 1));
}

}  // namespace plancast
