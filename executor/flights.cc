// Communications: members come together, take the time they need alone or share
// links with others in the fluid.

#include <algorithm>
#include <cmath>

#include "executor/simulator.h"

namespace plancast {

bool Simulator::Arrive(int32_t entity, int stream, const Copy& copy, int32_t task) {
  const int32_t lane = entity * kNumStreams + stream;
  const int32_t program = in_.ProgramOf(entity);
  int32_t use, meeting_index, group_index;
  if (task == copy.block->rendezvous_task) {
    const int32_t rendezvous = in_.index.InstanceOf(program, lanes_[lane].instance).rendezvous;
    use = in_.uses.of_rendezvous[rendezvous];
    group_index = sim_.GroupOf(use, entity);
    meeting_index = meeting_begin_[rendezvous] + group_index - sim_.uses[use].first_group;
  } else {
    use = in_.uses.OfComm(program, copy.block->spec[task]);
    group_index = sim_.GroupOf(use, entity);
    meeting_index = group_index * kNumStreams + stream;
  }
  const SimGraph::Group& group = sim_.groups[group_index];
  Meeting& meeting = meetings_[meeting_index];
  chain_[lane] = meeting.last;
  meeting.last = lane;
  lanes_[lane].state = Lane::kMeets;
  lanes_[lane].bound = copy.start[task];
  if (++meeting.arrived < group.member_end - group.member_begin) return false;
  meeting = Meeting();

  const int64_t begin = BeginTogether(lane);
  const Transfer transfer = TransferOf(group_index, lane);
  const int64_t end = begin + transfer.alone;
  if (contention_.of_group[group_index]) {
    group_of_flight_[lane] = group_index;
    work_of_flight_[lane] = transfer.work_bytes;
    const int64_t flows = begin + transfer.delay;
    for (int32_t member = lane; member >= 0; member = chain_[member]) {
      lanes_[member].state = Lane::kFlies;
      lanes_[member].bound = end;
      lanes_[member].flows = flows;
    }
    if (!UndisturbedUntil(end, lane)) {
      Push({flows, kFlow, lane, 0});
      Occupy(lane, begin, CommTimes::kOpen);
      return false;
    }
  }
  lanes_[lane].state = Lane::kIdle;
  copy.end[task] = end;
  Advance(lane, end);
  for (int32_t member = chain_[lane]; member >= 0; member = chain_[member]) Finish(member, end);
  if (end > begin) Occupy(lane, begin, end);
  return true;
}

Simulator::Transfer Simulator::TransferOf(int32_t group_index, int32_t lane_index) const {
  const RealisedCollective& realised = in_.realised[sim_.groups[group_index].realised];
  Transfer transfer{realised.delay_ps, realised.work_bytes, alone_[group_index]};
  if (in_.jitter == nullptr) return transfer;
  const Lane& lane = lanes_[lane_index];
  const int32_t program = in_.ProgramOf(lane_index / kNumStreams);
  const int32_t task = TaskOf(lane_index);
  const Instance& instance = in_.index.InstanceOf(program, lane.instance);
  const bool meets = task == in_.graph.blocks[instance.block].rendezvous_task;
  const double factor = in_.jitter->CommFactor(
      group_index, meets ? -1 - int64_t{instance.rendezvous}
                         : in_.index.IssueOf(program, {lane.instance, lane.copy, task}));
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
      if (lanes_[lane].state == Lane::kFlies) {
        if (lanes_[lane].flows >= end || InFlight(lane, flight)) continue;
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
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    begin = std::max(begin, OpenCopy(lane / kNumStreams, lanes_[lane]).start[TaskOf(lane)]);
  }
  for (int32_t lane = flight; lane >= 0; lane = chain_[lane]) {
    OpenCopy(lane / kNumStreams, lanes_[lane]).start[TaskOf(lane)] = begin;
  }
  return begin;
}

void Simulator::StartFlow(int32_t flight) {
  const int32_t group = group_of_flight_[flight];
  if (UndisturbedUntil(lanes_[flight].bound, flight)) {
    FinishFlight(flight, lanes_[flight].bound);
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
