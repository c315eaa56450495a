// Communications: members come together, take the time they need alone or share
// links with others in the fluid.

#include <algorithm>
#include <cmath>

#include "executor/simulate/simulator.h"

namespace plancast {

bool Simulator::Arrive(int32_t entity, int stream, const Copy& copy, int32_t task) {
  int32_t lane = entity * kNumStreams + stream;
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
  next_member_[lane] = meeting.last;
  meeting.last = lane;
  lanes_[lane].state = Lane::kMeets;
  if (++meeting.arrived < group.member_end - group.member_begin) return false;
  meeting = Meeting();
  lane = SortMembers(lane);

  // All start when the last has come.
  const Transfer transfer = TransferOf(group_index, lane);
  for (int32_t member = lane; member >= 0; member = next_member_[member]) {
    OpenCopy(member / kNumStreams, lanes_[member]).start[TaskOf(member)] = now_;
    lanes_[member].state = Lane::kFlies;
    flight_of_[member] = lane;
  }
  StartFlight(lane, group_index, transfer.work_bytes, now_ + transfer.delay);
  if (transfer.alone == 0) {
    EndFlight(lane);
    return true;
  }
  const bool known = !Shares(flights_[lane]);
  for (int32_t member = lane; member >= 0; member = next_member_[member]) {
    if (IsQuiet(group_index)) break;
    BeginComm(member / kNumStreams, known ? now_ + transfer.alone : kNever);
  }
  if (known) {
    Schedule(SlotOf(lane), now_ + transfer.alone, kEnds);
  } else if (transfer.delay > 0) {
    Schedule(SlotOf(lane), now_ + transfer.delay, kBegins);
  } else {
    StartTransfer(lane);
  }
  return false;
}

// Orders the members that have come, the last of them `last`, by lane: so in what order they
// came at one time shows nowhere, else steady states would not be known again.
int32_t Simulator::SortMembers(int32_t last) {
  if (next_member_[last] < 0) return last;
  arrived_.clear();
  for (int32_t member = last; member >= 0; member = next_member_[member]) {
    arrived_.push_back(member);
  }
  std::sort(arrived_.begin(), arrived_.end());
  for (size_t i = 0; i + 1 < arrived_.size(); ++i) next_member_[arrived_[i]] = arrived_[i + 1];
  next_member_[arrived_.back()] = -1;
  return arrived_[0];
}

void Simulator::StartFlight(int32_t lane, int32_t group, int64_t work_bytes, int64_t transfer_at) {
  Flight& flight = flights_[lane];
  flight = Flight();
  flight.group = group;
  flight.work_bytes = work_bytes;
  flight.transfer_at = transfer_at;
  flight.work_left = ActivityKinds::Work(work_bytes);
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

void Simulator::StartTransfer(int32_t flight) {
  if (at_once_ && contention_.of_group[flights_[flight].group]) DissolveRivals(flight);
  Flow(flight, Fluid::Fresh(flights_[flight].work_bytes, now_));
}

void Simulator::Flow(int32_t flight_index, const Fluid::Progress& progress) {
  Flight& flight = flights_[flight_index];
  flight.flows = true;
  if (contention_.of_group[flight.group]) {
    flight.activity = fluid_.Start(flight.group, progress);
    if (flight.activity >= static_cast<int32_t>(of_activity_.size())) {
      of_activity_.resize(flight.activity + 1);
    }
    of_activity_[flight.activity] = flight_index;
    Cancel(SlotOf(flight_index));
  } else {
    FlowAlone(flight_index, progress);
  }
  if (!yields_ || IsQuiet(flight.group)) return;
  int32_t busy = 0;
  for (int32_t lane = flight_index; lane >= 0; lane = next_member_[lane]) {
    Entity& entity = entities_[lane / kNumStreams];
    if (entity.flows++ == 0) entity.busy = false;
    busy += entity.busy ? 1 : 0;
    Doubt(lane / kNumStreams);
  }
  SlowTransfer(flight_index, busy);
}

void Simulator::FlowAlone(int32_t flight_index, const Fluid::Progress& before) {
  Flight& flight = flights_[flight_index];
  Fluid::Progress progress;
  progress.left = before.LeftAt(now_);
  progress.since = now_;
  progress.rate_q16 = fluid_.AloneRateQ16(KindOf(flight));
  progress.end = now_ + ActivityKinds::Duration(progress.left, progress.rate_q16);
  flight.progress = progress;
  Schedule(SlotOf(flight_index), progress.end, kEnds);
}

void Simulator::EndFlight(int32_t flight_index) {
  Flight& flight = flights_[flight_index];
  const bool quiet = IsQuiet(flight.group);
  const bool counts = flight.flows && yields_ && !quiet, known = !Shares(flight);
  flight.flows = false;
  for (int32_t lane = flight_index, next; lane >= 0; lane = next) {
    next = next_member_[lane];
    const int32_t entity = lane / kNumStreams, stream = lane % kNumStreams;
    const Copy copy = OpenCopy(entity, lanes_[lane]);
    const int32_t task = TaskOf(lane);
    copy.end[task] = now_;
    lanes_[lane].state = Lane::kIdle;
    if (counts) --entities_[entity].flows;
    if (copy.start[task] < now_ && !quiet) EndComm(entity, known);
    Advance(lane, 1, now_);
    Wake(entity, 1u << stream);
    WakeWaiting(entity, stream);
  }
}

}  // namespace plancast
