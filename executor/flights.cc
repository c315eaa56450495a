// Communications: members come together, take the time they need alone or share
// links with others in the fluid.

#include <algorithm>
#include <cmath>

#include "executor/simulator.h"

namespace plancast {

bool Simulator::Arrive(int32_t entity, int stream, const TaskTable& table, int32_t task) {
  int32_t use = table.spec[task], meeting_index;
  int32_t group_index;
  if ((table.flags[task] & TaskTable::kMeets) != 0) {
    const int32_t rendezvous = table.spec[task];
    use = in_.uses.of_rendezvous[rendezvous];
    group_index = sim_.GroupOf(use, entity);
    meeting_index = meeting_begin_[rendezvous] + group_index - sim_.uses[use].first_group;
  } else {
    group_index = sim_.GroupOf(use, entity);
    meeting_index = group_index * kNumStreams + stream;
  }
  const SimGraph::Group& group = sim_.groups[group_index];
  const int32_t lane = entity * kNumStreams + stream;
  Meeting& meeting = meetings_[meeting_index];
  chain_[lane] = meeting.last;
  meeting.last = lane;
  lanes_.state[lane] = Lanes::kMeets;
  lanes_.bound[lane] = trace_.start[trace_.begin[entity] + task];
  if (++meeting.arrived < group.member_end - group.member_begin) return false;
  meeting = Meeting();

  const int64_t begin = BeginTogether(lane);
  const Transfer transfer = TransferOf(group_index, table, task);
  const int64_t end = begin + transfer.alone;
  if (contention_.of_group[group_index]) {
    group_of_flight_[lane] = group_index;
    work_of_flight_[lane] = transfer.work_bytes;
    const int64_t flows = begin + transfer.delay;
    for (int32_t member = lane; member >= 0; member = chain_[member]) {
      lanes_.state[member] = Lanes::kFlies;
      lanes_.bound[member] = end;
      lanes_.flows[member] = flows;
    }
    if (!UndisturbedUntil(end, lane)) {
      Push({flows, kFlow, lane, 0});
      Occupy(lane, begin, CommTimes::kOpen);
      return false;
    }
  }
  lanes_.state[lane] = Lanes::kIdle;
  trace_.end[trace_.begin[entity] + task] = end;
  for (int32_t member = chain_[lane]; member >= 0; member = chain_[member]) Finish(member, end);
  if (end > begin) Occupy(lane, begin, end);
  return true;
}

Simulator::Transfer Simulator::TransferOf(int32_t group_index, const TaskTable& table,
                                          int32_t task) const {
  const RealisedCollective& realised = in_.realised[sim_.groups[group_index].realised];
  Transfer transfer{realised.delay_ps, realised.work_bytes, alone_[group_index]};
  if (in_.jitter == nullptr) return transfer;
  const bool meets = (table.flags[task] & TaskTable::kMeets) != 0;
  const double factor = in_.jitter->CommFactor(
      group_index, meets ? -1 - int64_t{table.spec[task]} : int64_t{table.issue[task]});
  const auto scaled = [factor](int64_t value) {
    return std::llround(static_cast<double>(value) * factor);
  };
  if (factor == 1) return transfer;
  transfer.delay = scaled(transfer.delay);
  transfer.work_bytes = scaled(transfer.work_bytes);
  transfer.alone =
      transfer.delay +
      (transfer.work_bytes == 0 ? 0 : fluid_.AloneTime(group_index, transfer.work_bytes));
  return transfer;
}

bool Simulator::UndisturbedUntil(int64_t end, int32_t flight) {
  if (horizon_ == nullptr) return false;
  const SimGraph::Group& group = sim_.groups[group_of_flight_[flight]];
  for (const Fluid::Use& load : sim_.LoadsOf(group)) {
    for (const int32_t lane : contention_.LanesOn(load.resource)) {
      if (lanes_.state[lane] == Lanes::kFlies) {
        if (lanes_.flows[lane] >= end || InFlight(lane, flight)) continue;
        return false;
      }
      if (horizon_->OfLane(lane, Horizon::kNoStream, now_, end) < end) return false;
    }
  }
  return true;
}

bool Simulator::InFlight(int32_t lane, int32_t flight) const {
  for (; flight >= 0; flight = chain_[flight]) {
    if (flight == lane) return true;
  }
  return false;
}

int64_t Simulator::BeginTogether(int32_t flight) {
  int64_t begin = 0;
  int32_t last = 0;
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    const int32_t entity = lane / kNumStreams;
    const int64_t arrival = trace_.start[trace_.begin[entity] + lanes_.next[lane]];
    if (arrival > begin || (arrival == begin && entity < last)) last = entity;
    begin = std::max(begin, arrival);
  }
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    const int64_t at = trace_.begin[lane / kNumStreams] + lanes_.next[lane];
    if (trace_.start[at] == begin) continue;
    trace_.start[at] = begin;
    trace_.cause[at] = SimTrace::PeerCause(last);
  }
  return begin;
}

void Simulator::StartFlow(int32_t flight) {
  const int32_t group = group_of_flight_[flight];
  if (UndisturbedUntil(lanes_.bound[flight], flight)) {
    FinishFlight(flight, lanes_.bound[flight]);
    return;
  }
  const int32_t activity = fluid_.Start(group, work_of_flight_[flight]);
  if (activity >= static_cast<int32_t>(flight_of_.size())) flight_of_.resize(activity + 1);
  flight_of_[activity] = flight;
}

void Simulator::FinishFlight(int32_t flight, int64_t end) {
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    if (interferes_) {
      comm_times_[lane / kNumStreams].Close(lane, end);
      review_[lane / kNumStreams] = true;
    }
    Finish(lane, end);
  }
}

void Simulator::Occupy(int32_t flight, int64_t begin, int64_t end) {
  if (!interferes_) return;
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    comm_times_[lane / kNumStreams].Add(begin, end, lane);
    review_[lane / kNumStreams] = true;
    Wake(lane / kNumStreams, 0);
  }
}

}  // namespace plancast
