#include "interop/astra/simulator/simulation.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plancast::astra {
namespace {

// For each node of a program, those that wait for it.
void WaitingFor(const AstraProgram& program, std::vector<int32_t>& begin,
                std::vector<int32_t>& waiting) {
  const size_t n = program.nodes.size();
  begin.assign(n + 1, 0);
  for (const int32_t dep : program.deps) ++begin[dep + 1];
  for (size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  waiting.resize(program.deps.size());
  std::vector<int32_t> cursor(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (int32_t d = program.dep_begin[i]; d < program.dep_begin[i + 1]; ++d) {
      waiting[cursor[program.deps[d]]++] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace

Simulation::Simulation(const AstraWorkload& workload, const AstraNetwork& network,
                       const AstraSystem& system, bool memo)
    : workload_(workload),
      network_(network),
      system_(system),
      wires_(network),
      circles_(network, system, workload.groups),
      npus_(network.npus()),
      chunks_at_once_((system.active_chunks + network.queues_per_dim - 1) / network.queues_per_dim),
      memo_(memo) {
  for (const AstraProgram& program : workload.programs) {
    for (const AstraNode& node : program.nodes) {
      // On the processor a collective may run alongside another one.
      if (node.kind == AstraNodeKind::kCollective && node.on_cpu) memo_ = false;
      has_messages_ =
          has_messages_ || node.kind == AstraNodeKind::kSend || node.kind == AstraNodeKind::kRecv;
    }
  }
  waiting_begin_.resize(workload.programs.size());
  waiting_.resize(workload.programs.size());
  for (size_t p = 0; p < workload.programs.size(); ++p) {
    WaitingFor(workload.programs[p], waiting_begin_[p], waiting_[p]);
  }
  custom_begin_.resize(system.custom.size());
  custom_waiting_.resize(system.custom.size());
  for (size_t p = 0; p < system.custom.size(); ++p) {
    WaitingFor(system.custom[p], custom_begin_[p], custom_waiting_[p]);
  }
  const size_t queues = network.dims.size() * network.queues_per_dim;
  ranks_.resize(npus_);
  for (int64_t r = 0; r < npus_; ++r) {
    Rank& rank = ranks_[r];
    const int32_t p = workload.program_of[r];
    rank.program = &workload.programs[p];
    rank.waiting_begin = &waiting_begin_[p];
    rank.waiting = &waiting_[p];
    rank.left = static_cast<int64_t>(rank.program->nodes.size());
    rank.deps_left.resize(rank.program->nodes.size());
    rank.turns = circles_.NewTurns();
    for (const AstraGroup& group : workload.groups) rank.group_chunks.push_back(group.id * 1000000);
    rank.queues.resize(queues);
    rank.running.resize(queues);
  }
}

absl::Status Simulation::Run(int64_t max_events) {
  for (int32_t r = 0; r < npus_; ++r) {
    Rank& rank = ranks_[r];
    for (size_t i = 0; i < rank.deps_left.size(); ++i) {
      rank.deps_left[i] = rank.program->dep_begin[i + 1] - rank.program->dep_begin[i];
      if (rank.deps_left[i] == 0) Free(rank, static_cast<int32_t>(i));
    }
  }
  for (int32_t r = 0; r < npus_; ++r) {
    IssueReady(r);
    CheckFinished(ranks_[r]);
  }
  while (true) {
    if (memo_ && events_.TimeIsOver()) LookForReplay();
    Event event;
    if (!events_.Pop(event)) break;
    if (++event_count_ > max_events) {
      return absl::OutOfRangeError(
          absl::StrCat("stopped after ", max_events, " events, the limit, at ", events_.now(),
                       " ns. Take fewer NPUs, collectives or `preferred-dataset-splits`."));
    }
    Handle(event);
  }
  return Stuck();
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kRank:
      GoThroughAgenda(event.a);
      return;
    case EventKind::kArrival: {
      if (event.b < 0) return Arrive(event.a, Party());
      const Message message = messages_[event.b];
      const Box& box = boxes_.at(message.box);
      if (message.at.npu != box.to || message.at.through >= 0) return EnterLink(event.b);
      free_messages_.push_back(event.b);
      return Arrive(message.box, message.sender);
    }
    case EventKind::kLinkFree:
      return LeaveLink(event.a);
    case EventKind::kReplay:
      return Replay(event.a);
    case EventKind::kReceipt:
      Party party = notes_[event.a].kind == Note::Kind::kCustom
                        ? Party{Party::Kind::kCustom, notes_[event.a].a, notes_[event.a].b}
                    : notes_[event.a].kind == Note::Kind::kNode
                        ? Party{Party::Kind::kNode, notes_[event.a].a, notes_[event.a].b}
                        : Party{Party::Kind::kChunk, notes_[event.a].a, 0};
      notes_[event.a].next = free_notes_;
      free_notes_ = event.a;
      return Tell(party, /*received=*/true);
  }
}

int32_t Simulation::FreeNote() {
  if (free_notes_ < 0) {
    notes_.emplace_back();
    return static_cast<int32_t>(notes_.size()) - 1;
  }
  const int32_t entry = free_notes_;
  free_notes_ = notes_[entry].next;
  return entry;
}

void Simulation::Remind(int32_t rank, int64_t delay, Note note) {
  const int32_t entry = FreeNote();
  note.next = -1;
  notes_[entry] = note;
  const int64_t time = events_.now() + delay;
  auto& agendas = ranks_[rank].agendas;
  for (Agenda& agenda : agendas) {
    if (agenda.time != time) continue;
    (agenda.last >= 0 ? notes_[agenda.last].next : agenda.first) = entry;
    agenda.last = entry;
    return;
  }
  agendas.push_back({time, entry, entry});
  events_.Push(time, {EventKind::kRank, rank, 0});
}

void Simulation::GoThroughAgenda(int32_t rank) {
  auto& agendas = ranks_[rank].agendas;
  const int64_t now = events_.now();
  const auto mine = [&] {
    return std::find_if(agendas.begin(), agendas.end(),
                        [now](const Agenda& agenda) { return agenda.time == now; });
  };
  while (true) {
    const auto agenda = mine();
    const int32_t entry = agenda->first;
    if (entry < 0) {
      *agenda = agendas.back();
      agendas.pop_back();
      return;
    }
    const Note note = notes_[entry];
    agenda->first = note.next;
    if (note.next < 0) agenda->last = -1;
    notes_[entry].next = free_notes_;
    free_notes_ = entry;
    switch (note.kind) {
      case Note::Kind::kReduce:
        chunks_[note.a].reminded_at = now;
        chunks_[note.a].reminder = ++reminders_;
        Remind(rank, ReduceTime(chunks_[note.a]), {Note::Kind::kMemory, note.a});
        break;
      case Note::Kind::kLast:
        Advance(note.a);
        break;
      case Note::Kind::kMemory:
        AfterMemory(note.a);
        break;
      case Note::Kind::kNode:
        NodeDone(rank, note.b);
        break;
      case Note::Kind::kCustom:
        CustomDone(note.a, note.b);
        break;
    }
  }
}

int32_t Simulation::FindBox(bool of_trace, int64_t tag, int64_t from, int64_t to, int64_t bytes) {
  const auto [box, added] =
      boxes_.Find(of_trace, tag, static_cast<int32_t>(from), static_cast<int32_t>(to), bytes);
  if (added && !network_.congestion_aware) {
    boxes_.at(box).delay = wires_.Delay(from, to, bytes);
  }
  return box;
}

void Simulation::Send(int32_t index, Party sender) {
  Box& box = boxes_.at(index);
  ++box.sent;
  ++message_count_;
  if (!network_.congestion_aware && sender.kind == Party::Kind::kNobody) {
    events_.Push(events_.now() + box.delay, {EventKind::kArrival, index, -1});
    return;
  }
  int32_t message;
  if (free_messages_.empty()) {
    message = static_cast<int32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    message = free_messages_.back();
    free_messages_.pop_back();
  }
  messages_[message] = {index, sender, {box.from, -1}, -1};
  if (network_.congestion_aware) return EnterLink(message);
  messages_[message].at.npu = box.to;
  events_.Push(events_.now() + box.delay, {EventKind::kArrival, index, message});
}

void Simulation::Receive(int32_t index, Party receiver) {
  Box& box = boxes_.at(index);
  if (++box.posted > box.arrived) return boxes_.Await(box, receiver);
  boxes_.ForgetIfOver(index);
  // It came before; the news comes in this nanosecond still.
  const int32_t entry = FreeNote();
  const Note::Kind kind = receiver.kind == Party::Kind::kCustom ? Note::Kind::kCustom
                          : receiver.kind == Party::Kind::kNode ? Note::Kind::kNode
                                                                : Note::Kind::kMemory;
  notes_[entry] = {kind, receiver.a, receiver.b, -1};
  events_.Push(events_.now(), {EventKind::kReceipt, entry, 0});
}

void Simulation::Arrive(int32_t index, Party sender) {
  Box& box = boxes_.at(index);
  const bool awaited = ++box.arrived <= box.posted;
  const Party receiver = awaited ? boxes_.TakeFirst(box) : Party();
  boxes_.ForgetIfOver(index);
  Tell(sender, /*received=*/false);
  if (awaited) Tell(receiver, /*received=*/true);
}

void Simulation::Tell(Party party, bool received) {
  switch (party.kind) {
    case Party::Kind::kNobody:
      return;
    case Party::Kind::kChunk:
      if (received) MessageCame(party.a);
      return;
    case Party::Kind::kNode:
      return NodeDone(party.a, party.b);
    case Party::Kind::kCustom:
      return CustomDone(party.a, party.b);
  }
}

void Simulation::EnterLink(int32_t message) {
  const Wires::Hop hop =
      wires_.NextHop(messages_[message].at, boxes_.at(messages_[message].box).to);
  Wires::Link& link = wires_.link(hop.link);
  messages_[message].at = hop.next;
  if (!link.busy) return StartLink(hop.link, message);
  messages_[message].next = -1;
  (link.last >= 0 ? messages_[link.last].next : link.first) = message;
  link.last = message;
}

void Simulation::StartLink(int32_t link, int32_t message) {
  const int64_t bytes = boxes_.at(messages_[message].box).bytes;
  wires_.link(link).busy = true;
  events_.Push(events_.now() + wires_.ArrivalTime(link, bytes),
               {EventKind::kArrival, messages_[message].box, message});
  events_.Push(events_.now() + wires_.SerialisationTime(link, bytes),
               {EventKind::kLinkFree, link, 0});
}

void Simulation::LeaveLink(int32_t index) {
  Wires::Link& link = wires_.link(index);
  link.busy = false;
  const int32_t message = link.first;
  if (message < 0) return;
  link.first = messages_[message].next;
  if (link.first < 0) link.last = -1;
  StartLink(index, message);
}

absl::Status Simulation::Stuck() const {
  for (int64_t r = 0; r < npus_; ++r) {
    const Rank& rank = ranks_[r];
    if (rank.finish_ns >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", r, " never ends: ", rank.left, " of its ", rank.program->nodes.size(),
        " nodes wait for others at ", events_.now(),
        " ns. All members of a group must issue the same collectives in the same order, and every "
        "send needs a receive of its size and tag."));
  }
  return absl::OkStatus();
}

AstraResult Simulation::Result() const {
  AstraResult result;
  for (const Rank& rank : ranks_) {
    result.finish_ns.push_back(rank.finish_ns);
    result.compute_ns.push_back(rank.compute_ns);
  }
  result.events = event_count_;
  result.messages = message_count_;
  result.collectives = collective_count_;
  return result;
}

}  // namespace plancast::astra
