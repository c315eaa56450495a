#ifndef PLANCAST_EXECUTOR_SIMULATOR_H_
#define PLANCAST_EXECUTOR_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/comm_times.h"
#include "executor/sharing/contention.h"
#include "executor/sharing/levels.h"
#include "executor/horizon.h"
#include "executor/simulate.h"

namespace plancast {

// Kernels and communications depend on what they wait for and on what runs beside
// them. As soon as that is known, however far ahead, their ends are written down:
// a stream runs on until it meets something unknown. Only communications that
// others may slow down before they end pass through the queue and the Levels, in
// order of time. The outcome depends on no order of work, only on times.
//
// What is not known yet cannot begin before a lower bound (Horizon): a
// communication that ends before anything on its links can begin takes as long as
// alone, and a kernel is slowed down by known communications only, if it ends
// before any other can begin. Otherwise its end is an event that moves as
// communications become known.
//
// A lane is a stream of an entity: entity * kNumStreams + stream. At most one
// communication is under way in a lane, so lanes number flights too.
class Simulator {
 public:
  Simulator(const SimInput& in, SimTrace memory);

  absl::StatusOr<SimTrace> Run() &&;

 private:
  static constexpr int64_t kUnknown = -1;
  static constexpr int kCompute = static_cast<int>(StreamKind::kCompute);
  static constexpr int32_t kNobody = std::numeric_limits<int32_t>::max();

  enum EventKind : int32_t { kKernelEnd, kFlow };

  struct Event {
    int64_t time = 0;
    int32_t kind = 0;
    int32_t lane = 0;     // the flight, of a communication
    int32_t version = 0;  // of a kernel's end: only the latest counts
    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.time, a.kind, a.lane, a.version) >
             std::tie(b.time, b.kind, b.lane, b.version);
    }
  };

  // Members of a communication that have come so far.
  struct Meeting {
    int32_t last = -1;  // lane that came last; others are chained behind
    int32_t arrived = 0;
  };
  // A kernel whose end is not known.
  struct Kernel {
    int64_t start = 0, duration = 0;
    int64_t launched = 0;  // it ends no earlier
    int64_t expected = 0;  // its end as far as communications are known
    int32_t version = 0;   // of its event
  };

  const TaskTable& TableOf(size_t entity) const {
    return in_.tables[sim_.entities[entity].program];
  }

  // Streams: simulate.cc.
  void PrepareTrace();
  void PrepareGroups();
  void Wake(int32_t entity, uint32_t streams);
  void Drain();
  // Runs a stream until it is done or meets something unknown.
  void RunStream(int32_t entity, int stream);
  void Finish(int32_t lane, int64_t end);
  // Wakes the streams that waited for what is over by now.
  void WakeWaiting(int32_t entity, int stream);
  void Push(const Event& event);
  Event Pop();
  void Handle(const Event& event);
  bool IsStale(const Event& event) const {
    return event.kind == kKernelEnd && event.version != kernels_[event.lane].version;
  }

  // Communications: flights.cc.
  // An entity comes to a communication. True if its end is known by that.
  bool Arrive(int32_t entity, int stream, const TaskTable& table, int32_t task);
  // Whether nothing else can load the links of a communication before it ends.
  bool UndisturbedUntil(int64_t end, int32_t flight);
  bool InFlight(int32_t lane, int32_t flight) const;
  // What a communication of a group is made of, with jitter.
  struct Transfer {
    int64_t delay = 0, work_bytes = 0, alone = 0;
  };
  Transfer TransferOf(int32_t group_index, const TaskTable& table, int32_t task) const;
  // All members start when the last has come.
  int64_t BeginTogether(int32_t flight);
  // The delay of a communication is over.
  void StartFlow(int32_t flight);
  void FinishFlight(int32_t flight, int64_t end);
  // A communication of all members is known to take place in [begin, end).
  void Occupy(int32_t flight, int64_t begin, int64_t end);

  // Kernels that communications slow down: slowed_kernels.cc.
  // Sets the end of a kernel, as far as communications are known, and says
  // whether that is all.
  bool KnowEnd(int32_t entity, int stream, int32_t task, int64_t start, int64_t* end);
  // No kernel of the entity whose end is yet to be found starts before this.
  int64_t EarliestKernel(int32_t entity, int stream, int64_t start) const;
  void StartKernel(int32_t lane, int64_t expected, const Kernel& kernel);
  void ExpectEnd(int32_t lane, int64_t end);
  // More is known of the communications beside kernels.
  void ReviewKernels(int32_t entity);

  const SimInput& in_;
  const SimGraph& sim_;
  const bool interferes_;
  int64_t now_ = 0;
  SimTrace trace_;
  Lanes lanes_;
  Levels fluid_;
  Contention contention_;
  std::vector<int64_t> alone_;            // per group
  std::vector<int32_t> launches_;         // per kernel
  std::vector<bool> hosted_;              // per program: its host matters
  std::vector<uint8_t> waiting_;          // per lane: streams that wait for it
  std::vector<int32_t> chain_;            // per lane: next member of the same communication
  std::vector<int32_t> group_of_flight_;  // per lane
  std::vector<int64_t> work_of_flight_;   // per lane, bytes
  std::vector<uint8_t> ready_;            // per entity: streams to run
  std::vector<bool> listed_;              // per entity: in work_
  std::vector<int32_t> work_;
  std::vector<Meeting> meetings_;
  std::vector<int32_t> meeting_begin_;  // per rendezvous
  std::vector<Event> queue_;
  std::vector<int32_t> flight_of_;       // per fluid activity
  std::vector<Kernel> kernels_;          // per lane
  std::vector<CommTimes> comm_times_;    // per entity
  std::vector<uint8_t> kernel_streams_;  // per program
  std::vector<bool> review_;             // per entity: kernels are to be looked at again
  std::vector<uint8_t> woken_;           // per entity: streams that stopped waiting since
  std::vector<int64_t> known_until_;     // per entity: horizon of its compute stream
  std::unique_ptr<Horizon> horizon_;
  std::vector<int32_t> earliest_wait_;  // per lane: first task that another lane waits for
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATOR_H_
