#ifndef PLANCAST_EXECUTOR_SIMULATE_COPY_OUTCOME_H_
#define PLANCAST_EXECUTOR_SIMULATE_COPY_OUTCOME_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/int128.h"
#include "executor/simulate/index/task_index.h"

namespace plancast {

// What the tasks of a layer cost on an entity. Its communications are all of that
// entity alone, and nothing else loads their links meanwhile: at most kMostSharing of its
// streams load the same.
inline constexpr int kMostSharing = 3;
struct LayerCosts {
  struct Task {
    int64_t alone = 0;                        // picoseconds
    int64_t slowdown_q20 = 0;                 // of a kernel beside communications
    int64_t delay = 0;                        // of a communication, before its transfer
    int128 work = 0;                          // of the transfer, 2^-16 bytes/s times ps
    int64_t rate_q16 = 0, slow_rate_q16 = 0;  // of it, alone and beside kernels
    bool uses_no_sms = false;                 // it slows no kernel, nor they it
    int32_t sharer = -1;  // its row of `shared_q16`, if it loads links that another stream may load
  };
  // Of the block, and behind them those of layers before that may last into this one.
  std::vector<Task> tasks;
  // Rates of transfers of two streams that load the same links at once: `sharers` rows of as many
  // for kernels that do not run, and again beside kernels.
  std::vector<int64_t> shared_q16;
  int32_t sharers = 0;
  int64_t RateBeside(int32_t own, int32_t other, bool busy) const {
    return shared_q16[((busy ? sharers : 0) + own) * sharers + other];
  }
  // The same of three, where so many may.
  std::function<int64_t(int32_t own, int32_t other, int32_t third, bool busy)> rate_of_three;
  int64_t launch_ps = 0;
  bool hosted = false;      // the host's launches matter
  bool interferes = false;  // kernels are slower beside communications
};

// What a layer finds when all that it waits for is over, which is its time 0.
struct LayerConditions {
  // The host's clock after its launches so far; that of a host far ahead counts as
  // if it had just launched the whole layer.
  int64_t host = 0;
  // Whether others communicate on the entity, if kernels are slower by that: times
  // at which that begins and ends in turn, as far as known.
  using Toggles = absl::InlinedVector<int64_t, 6>;
  Toggles toggles;
  // Streams other than that of kernels that have begun already, or at most one that is still at
  // its last communication of a layer before.
  static constexpr int32_t kBehind = -1;
  struct Ahead {
    int32_t stream = 0;
    int32_t rank = 0;   // tasks before it are over; kBehind: of a layer before
    bool runs = false;  // it is under way:
    int64_t since = 0;  // its transfer begins, 0 if it has begun
    int128 work_left = 0;
    int32_t task = 0;  // in LayerCosts, of one that is behind

    friend bool operator==(const Ahead& a, const Ahead& b) {
      return a.stream == b.stream && a.rank == b.rank && a.runs == b.runs && a.since == b.since &&
             a.work_left == b.work_left && a.task == b.task;
    }
  };
  absl::InlinedVector<Ahead, 1> ahead;

  // The stream that is behind, or null.
  const Ahead* Behind() const {
    for (const Ahead& own : ahead) {
      if (own.rank == kBehind) return &own;
    }
    return nullptr;
  }
  // The first task of a stream in this layer that is not over, and whether it has begun.
  int32_t RankOf(int stream) const {
    for (const Ahead& own : ahead) {
      if (own.stream == stream) return own.rank == kBehind ? 0 : own.rank;
    }
    return 0;
  }
  bool Begun(int stream, int32_t rank) const {
    for (const Ahead& own : ahead) {
      if (own.stream == stream) return own.runs && own.rank == rank;
    }
    return false;
  }

  friend bool operator==(const LayerConditions& a, const LayerConditions& b) {
    return a.host == b.host && a.toggles == b.toggles && a.ahead == b.ahead;
  }
};

// A task of each stream that is under way when a layer stops.
struct LayerStop {
  struct Stream {
    int32_t rank = 0;  // LayerConditions::kBehind: still at a layer before
    bool runs = false;
    int64_t start = 0;
    // Of a kernel: what is left of it since, and whether it is slow. Of a
    // communication: what is left of its transfer, which begins no earlier than
    // `since`, and its rate.
    int64_t since = 0, left = 0;
    bool slow = false;
    int128 work_left = 0;
  };
  Stream streams[kNumStreams];
};

// How a layer goes on from a kernel that begins while nothing else is under way, if others
// communicate alongside it to its end or not at all, and hosts are ahead: the same whenever that
// is.
struct LayerTail {
  std::vector<int64_t> times;  // when each task starts, and when each ends
  int64_t end = 0;             // of all
  // Per kernel: when it begins so, -1 if something else is under way then; and how many tasks of
  // each stream of the layer are over.
  std::vector<int64_t> begins;
  std::vector<int32_t> ranks;
};
// Of a layer that runs alone, and beside others that communicate. Empty: not known.
using LayerTails = std::vector<LayerTail>;

// Runs layers of blocks, alone but for what their conditions say.
class LayerRunner {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Sets when the tasks of a layer start and end; 0 if that was before. Returns when
  // all are over. Communications and kernels slow each other for exactly as long as
  // both run. `tails`: of the same block and costs, if they are known. Of a stream that is
  // behind, `end[index.size]` is when it is through with the layer before.
  int64_t Run(const Block& block, const BlockIndex& index, const LayerCosts& costs,
              const LayerConditions& conditions, int64_t* start, int64_t* end,
              const LayerTails& tails = {});
  // The same if times are known under conditions that were equal until `changed`.
  int64_t RunFrom(int64_t changed, const int64_t* known, const Block& block,
                  const BlockIndex& index, const LayerCosts& costs,
                  const LayerConditions& conditions, int64_t* start, int64_t* end,
                  const LayerTails& tails = {});
  LayerTails TailsOf(const Block& block, const BlockIndex& index, const LayerCosts& costs);
  // The same up to a time: what ends then is over, nothing begins then. `known`: times until then,
  // or null.
  LayerStop RunUntil(int64_t time, const int64_t* known, const Block& block,
                     const BlockIndex& index, const LayerCosts& costs,
                     const LayerConditions& conditions);

 private:
  struct Stream {
    int index = 0;
    const int32_t* order = nullptr;
    int32_t count = 0, rank = 0;
    bool runs = false, is_comm = false, uses_no_sms = false, slow = false;
    int64_t next = kNever;  // when its task ends, or may be launched
    int64_t launched = 0;   // it ends no earlier
    int64_t since = 0, left = 0;
    int128 work_left = 0;
    const LayerCosts::Task* comm = nullptr;  // that runs
    // Of one with LayerCosts::Task::sharer: whether its transfer has yet to begin, and its rate.
    bool delayed = false;
    int64_t rate_q16 = 0;
    bool flows() const { return runs && is_comm && comm->sharer >= 0 && !delayed; }
  };

  void Prepare(const BlockIndex& index);
  // Back from a time until which times are known to the last one when nothing was under way; false:
  // that is the beginning.
  bool GoBack(int64_t changed, const int64_t* known, const BlockIndex& index,
              const LayerConditions& conditions, int64_t* start, int64_t* end);
  void Begin(const BlockIndex& index, const LayerCosts& costs, const LayerConditions& conditions,
             int64_t* start, int64_t* end);
  // From now on, where all tasks under way are ahead.
  void Go(const Block& block, const BlockIndex& index, const LayerCosts& costs,
          const LayerConditions& conditions, const LayerTails& tails, int64_t stop, int64_t* start,
          int64_t* end);
  void BeginAhead(const LayerCosts& costs, const LayerConditions::Ahead& ahead, int64_t* start,
                  int64_t* end, Stream& stream);
  // True if a stream begins a task now that takes no time.
  bool Begin(const Block& block, const BlockIndex& index, const LayerCosts& costs, int64_t host,
             int64_t* start, int64_t* end, Stream& stream);
  // Lets kernels end before `limit` that nothing waits for but the next kernel, which begins at
  // once. True if one that is over has to be followed by others; it ended now. `alone`: nothing
  // else is under way, nor comes.
  bool GoOnWithKernels(const Block& block, const BlockIndex& index, const LayerCosts& costs,
                       int64_t host, int64_t limit, const LayerTail* alone, int64_t* start,
                       int64_t* end);
  // Whether a kernel begins now, with nothing else under way, from which on `tail` is known.
  bool IsAt(const LayerTail& tail) const;
  // Goes on from there to the end.
  void Take(const LayerTail& tail, int32_t tasks, int64_t* start, int64_t* end);
  void Record(LayerTail& tail) const;
  bool RunsKernel() const { return compute_ != nullptr && compute_->runs && !compute_->is_comm; }
  void SlowKernel(const LayerCosts& costs, bool slow);
  void TimeKernel(const LayerCosts& costs);
  void TimeComms(bool busy);
  // The same of those whose links another stream may load.
  void BeginShared(Stream& stream);
  void TimeShared(const LayerCosts& costs, bool busy);

  int64_t now_ = 0;
  Stream streams_[kNumStreams];
  int num_streams_ = 0;
  Stream* compute_ = nullptr;
  int comms_ = 0;               // under way
  bool slow_ = false;           // kernels are
  bool timed_ = false;          // the end of the kernel is known
  LayerTail* found_ = nullptr;  // if it is to be found
  std::vector<int64_t> scratch_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_COPY_OUTCOME_H_
