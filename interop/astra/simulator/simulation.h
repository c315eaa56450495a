#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATION_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATION_H_

#include <cstdint>
#include <deque>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "interop/astra/simulator/chunk.h"
#include "interop/astra/simulator/epochs.h"
#include "interop/astra/simulator/event_queue.h"
#include "interop/astra/simulator/phases.h"
#include "interop/astra/simulator/postal.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "interop/astra/simulator/wires.h"

namespace plancast::astra {

// What SimulateAstra runs. Owns all state of one simulation; the descriptions
// must outlive it.
class Simulation {
 public:
  Simulation(const AstraWorkload& workload, const AstraNetwork& network, const AstraSystem& system,
             bool memo);

  absl::Status Run(int64_t max_events);
  AstraResult Result() const;

 private:
  // Something that a rank told itself to do later.
  struct Note {
    enum class Kind : uint8_t { kMemory, kReduce, kNode, kCustom, kLast };
    Kind kind = Kind::kMemory;
    int32_t a = 0, b = 0;  // chunk (and node of a custom collective), or node
    int32_t next = -1;
  };
  // A rank's notes for one time are gone through together, in the place of the
  // first of them.
  struct Agenda {
    int64_t time = 0;
    int32_t first = -1, last = -1;  // into notes_
  };
  struct Message {
    int32_t box = 0;
    Party sender;
    Wires::Place at;
    int32_t next = -1;  // behind it on the link
  };
  // A collective of one rank.
  struct Collective {
    int32_t node = 0;
    int32_t chunks_left = 0;
    std::vector<int32_t> chunks = {};  // as they began
  };
  enum Slot { kCpu, kKernel, kComm, kRecv, kSlots };
  using Ready = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;
  struct Rank {
    const AstraProgram* program = nullptr;
    const std::vector<int32_t>* waiting_begin = nullptr;  // CSR: who waits for a node
    const std::vector<int32_t>* waiting = nullptr;
    std::vector<int32_t> deps_left;
    Ready ready[kSlots];
    bool taken[kSlots] = {};
    int64_t in_flight = 0, left = 0;  // nodes
    int64_t finish_ns = -1, compute_ns = 0;

    Turns turns;
    int64_t collectives = 0;  // chunks of collectives of all ranks so far
    int64_t next_priority = 0;
    std::vector<int64_t> group_chunks;         // by group
    std::vector<std::vector<int32_t>> queues;  // chunks by queue, in their order
    std::vector<int32_t> running;              // by queue

    absl::InlinedVector<Agenda, 4> agendas;
  };

  // simulation.cc: time and messages
  void Handle(const Event& event);
  int32_t FreeNote();  // an entry of notes_ that nothing uses
  void Remind(int32_t rank, int64_t delay, Note note);
  void GoThroughAgenda(int32_t rank);
  void Send(int32_t box, Party sender);
  void Receive(int32_t box, Party receiver);
  void Arrive(int32_t box, Party sender);
  void Tell(Party party, bool received);
  void EnterLink(int32_t message);
  void StartLink(int32_t link, int32_t message);
  void LeaveLink(int32_t link);
  int32_t FindBox(bool of_trace, int64_t tag, int64_t from, int64_t to, int64_t bytes);
  absl::Status Stuck() const;

  // replays.cc: collectives of all ranks that begin at one time, seen before
  void NoteBegin(int32_t rank, int32_t collective);
  void NoteEnd(const Chunk& chunk);
  void LookForReplay();
  bool AllBeganAlike(std::vector<int64_t>& key) const;
  void StartReplay(const Epoch& epoch);
  void Replay(int32_t replay);

  // nodes.cc: programs
  static Slot SlotOf(const AstraNode& node);
  void Free(Rank& rank, int32_t node);
  void IssueReady(int32_t rank);
  void Issue(int32_t rank, int32_t node);
  void IssueKernel(int32_t rank, int32_t node);
  void NodeDone(int32_t rank, int32_t node);
  void Complete(Rank& rank, int32_t node);
  void CheckFinished(Rank& rank);

  // chunks.cc: collectives, their chunks and queues
  void StartCollective(int32_t rank, int32_t node);
  void Advance(int32_t chunk);
  void Insert(std::vector<int32_t>& queue, int32_t chunk);
  void StartWaiting(Rank& rank, int32_t queue);
  void Begin(int32_t chunk);
  void ToMemory(int32_t chunk, bool reduce);
  int64_t ReduceTime(const Chunk& chunk) const;
  void AfterMemory(int32_t chunk);
  void MessageCame(int32_t chunk);
  int32_t NewChunk();

  // rounds.cc: rings, direct, halving-doubling
  void BeginRounds(Chunk& chunk);
  void Prepare(int32_t index);
  bool SendPrepared(int32_t index);
  void AfterMemoryRounds(int32_t index);
  void EndIfDone(int32_t index);

  // trees.cc
  void TreeStep(int32_t index, bool came, bool from_memory);
  int32_t TreeBox(const Chunk& chunk, int64_t place, bool out);

  // customs.cc
  void BeginCustom(int32_t index);
  void IssueCustom(int32_t index, int32_t node);
  void CustomDone(int32_t index, int32_t node);
  const AstraProgram& CustomProgram(const Chunk& chunk) const;

  const AstraWorkload& workload_;
  const AstraNetwork& network_;
  const AstraSystem& system_;
  Wires wires_;
  Circles circles_;
  int64_t npus_;
  int32_t chunks_at_once_;  // in one queue
  EventQueue events_;
  Boxes boxes_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<int32_t>> waiting_begin_, waiting_;  // by program
  std::vector<std::vector<int32_t>> custom_begin_, custom_waiting_;
  std::vector<Note> notes_;
  int32_t free_notes_ = -1;
  std::vector<Message> messages_;
  std::vector<int32_t> free_messages_;
  std::deque<Chunk> chunks_;
  std::vector<int32_t> free_chunks_;
  std::vector<Collective> collectives_;
  std::vector<int32_t> free_collectives_;

  bool memo_;
  bool has_messages_ = false;  // sends or receives of its own
  Epochs epochs_;
  int64_t reminders_ = 0, live_chunks_ = 0;

  int64_t event_count_ = 0, message_count_ = 0, collective_count_ = 0;
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATION_H_
