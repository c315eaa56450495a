#include "executor/simulate/transfers.h"

#include <algorithm>
#include <cmath>

#include "executor/contention/comm_priority.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;

}  // namespace

Transfers::Transfers(const SimInput& in, Streams& streams, KernelChains& kernels, Overlap& overlap,
                     Events& events, TransferListener& listener)
    : in_(in),
      streams_(streams),
      kernels_(kernels),
      overlap_(overlap),
      events_(events),
      listener_(listener),
      sharing_(in.link_sharing),
      contention_(FindContention(in.uses, in.sim, in.realised)),
      next_member_(streams.cursors().size(), -1),
      transfer_of_(streams.cursors().size(), -1),
      transfers_(streams.cursors().size()) {
  const SimGraph& sim = in.sim;
  for (int32_t r = 0; r < static_cast<int32_t>(sim.resources.size()); ++r) {
    const SimGraph::Resource& resource = sim.resources[r];
    sharing_.AddResource(resource.capacity_bytes_per_s, resource.level,
                         /*contended=*/!contention_.CursorsOn(r).empty());
  }
  const auto add_kind = [&](const SimGraph::Group& group, int64_t slowdown_q20) {
    const int64_t cap = MulDivFloor(
        std::max<int64_t>(in.realised[group.realised].rate_cap_bytes_per_s, 1), kOne, slowdown_q20);
    return sharing_.AddKind(std::max<int64_t>(cap, 1), 1, sim.LoadsOf(group),
                            PriorityOf(in.uses.uses[group.use]));
  };
  for (const SimGraph::Group& group : sim.groups) {
    const RealisedCollective& realised = in.realised[group.realised];
    const int32_t kind = add_kind(group, kOne);
    const int64_t moves =
        realised.work_bytes == 0 ? 0 : sharing_.AloneTime(kind, realised.work_bytes);
    alone_ps_.push_back(SaturateToInt64(int128{realised.delay_ps} + moves));
  }
  // Alongside kernels.
  for (size_t g = 0; g < sim.groups.size() && overlap_.slows_transfers(); ++g) {
    add_kind(sim.groups[g], in.CommSlowdownOf(sim.groups[g]));
  }
  int32_t meetings = static_cast<int32_t>(sim.groups.size()) * kNumStreams;
  for (int32_t use : in.uses.of_rendezvous) {
    meeting_begin_.push_back(meetings);
    meetings += sim.uses[use].num_groups;
  }
  meetings_.resize(meetings);
}

bool Transfers::Join(int32_t entity, int stream, const Streams::OpenLayer& layer, int32_t task) {
  int32_t first = CursorOf(entity, stream);
  const int32_t program = in_.ProgramOf(entity);
  int32_t use, meeting_index, group_index;
  if (task == layer.block->rendezvous_task) {
    const int32_t instance = streams_.cursor(first).instance;
    const int32_t rendezvous = in_.index.InstanceOf(program, instance).rendezvous;
    use = in_.uses.of_rendezvous[rendezvous];
    group_index = in_.sim.GroupOf(use, entity);
    meeting_index = meeting_begin_[rendezvous] + group_index - in_.sim.uses[use].first_group;
  } else {
    use = in_.uses.OfComm(program, layer.block->spec[task]);
    group_index = in_.sim.GroupOf(use, entity);
    meeting_index = group_index * kNumStreams + stream;
  }
  const SimGraph::Group& group = in_.sim.groups[group_index];
  Meeting& meeting = meetings_[meeting_index];
  next_member_[first] = meeting.last;
  meeting.last = first;
  streams_.cursor(first).state = StreamCursor::kMeeting;
  if (++meeting.arrived < group.member_end - group.member_begin) return false;
  meeting = Meeting();
  first = SortMembers(first);

  // All start when the last has come.
  const int64_t now = events_.now();
  const Cost cost = CostOf(group_index, first);
  for (int32_t member = first; member >= 0; member = next_member_[member]) {
    StreamCursor& cursor = streams_.cursor(member);
    streams_.Open(EntityOf(member), cursor).start[streams_.TaskAt(member)] = now;
    cursor.state = StreamCursor::kInFlight;
    transfer_of_[member] = first;
  }
  Prepare(first, group_index, cost.work_bytes, now + cost.delay);
  if (cost.alone == 0) {
    End(first);
    return true;
  }
  const bool known = !Shares(transfers_[first]);
  for (int32_t member = first; member >= 0; member = next_member_[member]) {
    if (!UsesSms(group_index)) break;
    BeginOn(EntityOf(member), known ? now + cost.alone : Events::kNever);
  }
  if (known) {
    events_.Schedule(first, now + cost.alone, Events::kEnds);
  } else if (cost.delay > 0) {
    events_.Schedule(first, now + cost.delay, Events::kBegins);
  } else {
    Start(first);
  }
  return false;
}

// Orders the members that have come, the last of them `last`, by cursor: so in what order they
// came at one time shows nowhere, else steady states would not be recognised.
int32_t Transfers::SortMembers(int32_t last) {
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

void Transfers::Prepare(int32_t transfer, int32_t group, int64_t work_bytes, int64_t starts_at) {
  Transfer& own = transfers_[transfer];
  own = Transfer();
  own.group = group;
  own.work_bytes = work_bytes;
  own.starts_at = starts_at;
  own.work_left = ActivityKinds::Work(work_bytes);
}

Transfers::Cost Transfers::CostOf(int32_t group, int32_t cursor) const {
  const RealisedCollective& realised = in_.realised[in_.sim.groups[group].realised];
  Cost cost{realised.delay_ps, realised.work_bytes, alone_ps_[group]};
  if (in_.jitter == nullptr) return cost;
  const StreamCursor& at = streams_.cursor(cursor);
  const int32_t program = streams_.ProgramAt(cursor);
  const int32_t task = streams_.TaskAt(cursor);
  const Instance& instance = in_.index.InstanceOf(program, at.instance);
  const bool meets = task == in_.graph.blocks[instance.block].rendezvous_task;
  const double factor = in_.jitter->CommFactor(
      group, meets ? -1 - int64_t{instance.rendezvous}
                   : in_.index.IssueOf(program, {at.instance, at.layer, task}));
  const auto scaled = [factor](int64_t value) {
    return std::llround(static_cast<double>(value) * factor);
  };
  if (factor == 1) return cost;
  cost.delay = scaled(cost.delay);
  cost.work_bytes = scaled(cost.work_bytes);
  cost.alone = cost.delay + (cost.work_bytes == 0 ? 0 : sharing_.AloneTime(group, cost.work_bytes));
  return cost;
}

void Transfers::Start(int32_t transfer) {
  const Transfer& own = transfers_[transfer];
  if (contention_.of_group[own.group]) listener_.OnLoad(own.group);
  Flow(transfer, Fluid::Fresh(own.work_bytes, events_.now()));
}

void Transfers::Flow(int32_t transfer, const Fluid::Progress& progress) {
  Transfer& own = transfers_[transfer];
  own.flows = true;
  if (Yields(own.group)) FindBusy(transfer);
  if (contention_.of_group[own.group]) {
    own.activity = sharing_.Start(KindOf(own.group, own.slow), progress);
    if (own.activity >= static_cast<int32_t>(of_activity_.size())) {
      of_activity_.resize(own.activity + 1);
    }
    of_activity_[own.activity] = transfer;
    events_.Cancel(transfer);
  } else {
    FlowAlone(transfer, progress);
  }
}

// Which members run kernels, as far as that can be said before all is done that is to be done now.
void Transfers::FindBusy(int32_t transfer) {
  Transfer& own = transfers_[transfer];
  own.busy = 0;
  for (int32_t member = transfer; member >= 0; member = next_member_[member]) {
    const int32_t e = EntityOf(member);
    Overlap::Entity& entity = overlap_.of(e);
    int64_t until;
    if (entity.transfers++ == 0) entity.busy = kernels_.IsBusy(e, &until);
    own.busy += entity.busy ? 1 : 0;
    overlap_.Doubt(e);
  }
  own.slow = own.busy > 0;
}

void Transfers::FlowAlone(int32_t transfer, const Fluid::Progress& before) {
  Transfer& own = transfers_[transfer];
  Fluid::Progress progress;
  progress.left = before.LeftAt(events_.now());
  progress.since = events_.now();
  progress.rate_q16 = AloneRateQ16(own.group, own.slow);
  progress.end = events_.now() + ActivityKinds::Duration(progress.left, progress.rate_q16);
  own.progress = progress;
  events_.Schedule(transfer, progress.end, Events::kEnds);
}

void Transfers::AddBusy(int32_t transfer, int32_t more) {
  Transfer& own = transfers_[transfer];
  own.busy += more;
  const bool slow = own.busy > 0;
  if (slow == own.slow) return;
  own.slow = slow;
  if (own.activity >= 0) {
    sharing_.ChangeKind(own.activity, KindOf(own.group, slow));
    return;
  }
  FlowAlone(transfer, own.progress);
}

void Transfers::SettleSpeeds() {
  overlap_.Settle([this](int32_t e) {
    Overlap::Entity& entity = overlap_.of(e);
    int64_t until;
    const bool busy = kernels_.IsBusy(e, &until);
    if (until != Events::kNever) {
      events_.Schedule(e, Events::kBusyChange, until, Events::kBegins);
    }
    if (busy == entity.busy) return;
    entity.busy = busy;
    uint32_t rest = in_.index.program(in_.ProgramOf(e)).streams;
    for (; rest != 0; rest &= rest - 1) {
      const int32_t cursor = CursorOf(e, __builtin_ctz(rest));
      if (Loads(cursor) && UsesSms(transfers_[transfer_of_[cursor]].group)) {
        AddBusy(transfer_of_[cursor], busy ? 1 : -1);
      }
    }
  });
}

void Transfers::End(int32_t transfer) {
  Transfer& own = transfers_[transfer];
  const int64_t now = events_.now();
  const bool uses_sms = UsesSms(own.group);
  const bool yielded = own.flows && Yields(own.group), known = !Shares(own);
  own.flows = false;
  for (int32_t member = transfer, next; member >= 0; member = next) {
    next = next_member_[member];
    const int32_t entity = EntityOf(member), stream = StreamOf(member);
    StreamCursor& cursor = streams_.cursor(member);
    const Streams::OpenLayer layer = streams_.Open(entity, cursor);
    const int32_t task = streams_.TaskAt(member);
    layer.end[task] = now;
    cursor.state = StreamCursor::kIdle;
    if (yielded) --overlap_.of(entity).transfers;
    if (layer.start[task] < now && uses_sms) EndOn(entity, known);
    streams_.Advance(member, 1, now);
    streams_.Wake(entity, MaskOf(stream));
    streams_.WakeWaiting(entity, stream);
  }
}

void Transfers::BeginOn(int32_t entity, int64_t until) {
  if (!overlap_.slows_kernels()) return;
  overlap_.Begin(entity, until);
  if (streams_.run(entity).active) {
    listener_.OnCommsChange(entity);
  } else if (overlap_.of(entity).comms == 1) {
    kernels_.SetSlow(entity, true);
  }
}

void Transfers::EndOn(int32_t entity, bool known) {
  if (!overlap_.slows_kernels()) return;
  overlap_.End(entity, known);
  if (streams_.run(entity).active) {
    listener_.OnCommsChange(entity);
  } else if (overlap_.of(entity).comms == 0) {
    kernels_.SetSlow(entity, false);
  }
}

void Transfers::FindOver(int32_t entity) {
  int64_t& over_at = overlap_.of(entity).over_at;
  over_at = 0;
  for (int32_t cursor = CursorOf(entity, 0); cursor < CursorOf(entity + 1, 0); ++cursor) {
    if (streams_.cursor(cursor).state != StreamCursor::kInFlight) continue;
    const int32_t transfer = transfer_of_[cursor];
    if (Shares(transfers_[transfer]) || !UsesSms(transfers_[transfer].group)) continue;
    over_at = std::max(over_at, events_.TimeOf(EntityOf(transfer), StreamOf(transfer)));
  }
}

void Transfers::Take(int32_t cursor, LayerConditions::Ahead* ahead) {
  const int64_t now = events_.now();
  const int32_t entity = EntityOf(cursor);
  Transfer& own = transfers_[cursor];
  ahead->runs = true;
  events_.Cancel(cursor);
  streams_.cursor(cursor).state = StreamCursor::kInLayerRun;
  if (overlap_.slows_kernels() && UsesSms(own.group)) {
    overlap_.End(entity, /*known=*/!Shares(own));
    FindOver(entity);
  }
  ahead->work_left = own.work_left;
  if (own.flows) {
    own.flows = false;
    if (Yields(own.group)) --overlap_.of(entity).transfers;
    ahead->work_left = (own.activity >= 0 ? sharing_.Take(own.activity) : own.progress).LeftAt(now);
  } else if (now < own.starts_at) {
    ahead->since = own.starts_at - now;
  } else {
    Fluid::Progress progress;
    progress.left = own.work_left;
    progress.rate_q16 = AloneRateQ16(own.group, /*slow=*/false);
    progress.since = own.starts_at;
    ahead->work_left = progress.LeftAt(now);
  }
}

void Transfers::Resume(int32_t cursor, int32_t group, const LayerStop::Stream& at, int64_t origin) {
  const int32_t entity = EntityOf(cursor);
  const int64_t work_bytes = in_.realised[in_.sim.groups[group].realised].work_bytes;
  Prepare(cursor, group, work_bytes, origin + at.since);
  Transfer& own = transfers_[cursor];
  own.work_left = at.work_left;
  next_member_[cursor] = -1;
  transfer_of_[cursor] = cursor;
  streams_.cursor(cursor).state = StreamCursor::kInFlight;
  Fluid::Progress progress;
  progress.left = at.work_left;
  progress.rate_q16 = AloneRateQ16(group, at.slow && Yields(group));
  progress.since = own.starts_at;
  progress.end = progress.since + ActivityKinds::Duration(progress.left, progress.rate_q16);
  const bool known = !Shares(own);
  if (overlap_.slows_kernels() && UsesSms(group)) {
    overlap_.Begin(entity, known ? progress.end : Events::kNever);
  }
  if (known) {
    events_.Schedule(cursor, progress.end, Events::kEnds);
  } else if (events_.now() <= own.starts_at && at.work_left == ActivityKinds::Work(work_bytes)) {
    events_.Schedule(cursor, own.starts_at, Events::kBegins);
  } else {
    Flow(cursor, progress);
  }
}

void Transfers::Describe(int32_t cursor, Snapshot& snapshot) const {
  const int32_t transfer = transfer_of_[cursor];
  snapshot.Exact(next_member_[cursor]);
  snapshot.Exact(transfer);
  if (transfer != cursor) return;
  const Transfer& own = transfers_[transfer];
  snapshot.Exact(own.group);
  snapshot.Exact(own.flows);
  snapshot.Exact(own.slow);
  snapshot.Exact(own.busy);
  if (!own.flows) {
    snapshot.Time(own.starts_at);
    snapshot.Wide(own.work_left);
    return;
  }
  const Fluid::Progress progress =
      own.activity >= 0 ? sharing_.ProgressOf(own.activity) : own.progress;
  snapshot.Wide(progress.LeftAt(events_.now()));
  snapshot.Exact(progress.rate_q16);
}

void Transfers::MoveMeeting(int32_t entity, int32_t from, int32_t to) {
  const int32_t program = in_.ProgramOf(entity);
  const int32_t before = in_.index.InstanceOf(program, from).rendezvous;
  const int32_t after = in_.index.InstanceOf(program, to).rendezvous;
  if (before < 0 || before == after) return;
  const SimGraph::Use& use = in_.sim.uses[in_.uses.of_rendezvous[before]];
  for (int32_t g = 0; g < use.num_groups; ++g) {
    Meeting& meeting = meetings_[meeting_begin_[before] + g];
    if (meeting.arrived == 0) continue;
    meetings_[meeting_begin_[after] + g] = meeting;
    meeting = Meeting();
  }
}

}  // namespace plancast
