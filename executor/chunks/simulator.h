#ifndef PLANCAST_EXECUTOR_CHUNKS_SIMULATOR_H_
#define PLANCAST_EXECUTOR_CHUNKS_SIMULATOR_H_

#include <cstdint>
#include <vector>

#include "executor/chunks/chunk_graph.h"
#include "executor/chunks/simulation.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// The state of SimulateChunks. simulation.cc runs it, jump.cc skips periods.
class ChunkSimulator {
 public:
  ChunkSimulator(const ChunkGraph& graph, const ChunkSimulationOptions& options);
  absl::StatusOr<ChunkSimulationResult> Run();

 private:
  enum class Phase : uint8_t { kWaits, kBusy, kDone };
  struct BlockState {
    int64_t turn = 0, rep = 0, done_steps = 0;
    int32_t run = 0;
    int32_t piece = 0;
    int32_t activity = -1;
    Phase phase = Phase::kWaits;
    bool queued = false;
  };
  struct Queue {  // of a connection; pieces
    int64_t sent = 0, arrived = 0, consumed = 0;
  };
  enum class EventKind : uint8_t { kStart, kArrival, kLocal };
  struct Event {
    int64_t time = 0;
    EventKind kind = EventKind::kStart;
    int32_t id = 0;  // a connection, or a block
    friend bool operator<(const Event& a, const Event& b) {
      if (a.time != b.time) return a.time < b.time;
      return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
    }
    friend bool operator>(const Event& a, const Event& b) { return b < a; }
  };
  struct Pieces {
    int64_t count = 1, bytes = 0;  // of each
    int64_t places = 0;            // of the queue; 0: unlimited
  };

  const StepRun& RunOf(int32_t b) const {
    return graph_.scripts[graph_.blocks[b].script].runs[blocks_[b].run];
  }
  Pieces PiecesOf(int32_t b) const;
  void Enqueue(int32_t b);
  void Push(const Event& event);
  void Drain();
  void Try(int32_t b);
  void FinishPiece(int32_t b);
  void Arrive(int32_t connection);
  void Happen(int64_t time);
  absl::Status NameStuck() const;

  // jump.cc. What there is at one moment, relative to it.
  struct Moment {
    std::vector<int64_t> state;
    std::vector<int64_t> turn, rep;  // per block
    int64_t time = 0;
    int64_t taken_at = 0;  // checks so far
    bool valid = false;
  };
  void ChooseClock();
  void Describe(Moment& moment);
  void MaybeJump();
  bool JumpFrom(const Moment& before, const Moment& now);
  void Check(Moment& before, int64_t& checks);

  const ChunkGraph& graph_;
  const ChunkSimulationOptions options_;
  Fluid fluid_;
  std::vector<BlockState> blocks_;
  std::vector<Queue> queues_;
  std::vector<std::vector<int32_t>> waiters_;  // per block: blocks that wait for a step of it
  std::vector<int32_t> ready_;
  std::vector<Event> events_;  // a heap, the first on top
  std::vector<int32_t> block_of_activity_;
  std::vector<int64_t> started_;  // per block, when its transfer began (record)
  int64_t now_ = 0;
  int64_t left_ = 0;  // blocks not done
  ChunkSimulationResult result_;

  int32_t clock_ = -1;
  int64_t clock_turn_ = 0, clock_rep_ = 0;
  Moment of_turn_, of_step_, now_is_;
  int64_t turn_checks_ = 0, step_checks_ = 0, messages_when_seen_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_SIMULATOR_H_
