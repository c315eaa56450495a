#include "executor/horizon.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace plancast {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

Horizon::Horizon(const SimInput& input, const SimTrace& trace, Lanes& lanes)
    : in_(input), trace_(trace), lanes_(lanes) {
  std::vector<std::pair<int32_t, int32_t>> known;  // program and speed
  for (const SimGraph::Entity& entity : in_.sim.entities) {
    const std::pair<int32_t, int32_t> key(entity.program, entity.price_row);
    // Entities of a program are neighbours, so a look back finds most.
    const auto found = std::find(known.rbegin(), known.rend(), key);
    work_of_.push_back(static_cast<int32_t>(known.rend() - found) - 1);
    if (found != known.rend()) continue;
    work_of_.back() = static_cast<int32_t>(known.size());
    known.push_back(key);
    const TaskTable& table = in_.tables[entity.program];
    std::vector<int64_t>& before = work_before_.emplace_back(table.size() + 1);
    for (int32_t t = 0; t < table.size(); ++t) {
      const bool is_comm = (table.flags[t] & TaskTable::kIsComm) != 0;
      before[t + 1] =
          before[t] + (is_comm ? 0 : in_.prices.Duration(entity.price_row, table.spec[t]));
    }
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
  switch (lanes_.state[lane]) {
    case Lanes::kIdle:
      if (lanes_.next[lane] == TableOf(entity).stream_begin[lane % kNumStreams + 1]) return kNever;
      return now;
    case Lanes::kBlocked:
      return EndOf(entity, lanes_.blocker[lane], stream, now, depth);
    case Lanes::kMeets:
      // Bounds only rise.
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
  int32_t next = lanes_.next[lane];
  int64_t from = now;
  if (next > table.stream_begin[own]) {
    from = std::max(now, trace_.end[trace_.begin[entity] + next - 1]);
  }
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
      ++next;
      break;
  }
  const std::vector<int64_t>& before = work_before_[work_of_[entity]];
  if (from == kNever) return kNever;
  from += before[task + 1] - before[next];
  if (depth == 0 || (table.flags[task] & TaskTable::kIsComm) == 0) return from;
  return std::max(from, BeginOf(entity, task, stream, now, depth - 1));
}

}  // namespace plancast
