#ifndef PLANCAST_EXECUTOR_SIMULATE_TRACE_H_
#define PLANCAST_EXECUTOR_SIMULATE_TRACE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/simulate/index/task_index.h"

namespace plancast {

// Some consecutive layers of one instance, as they ran on an entity: the first at
// `origin`, each further one `period` later. The times of a layer's tasks, in issue
// order, are `origin` + SimTrace::times[start + task], and [start + size + task]
// for their ends.
struct Piece {
  int32_t first_layer = 0, layers = 1;
  int32_t outcome = -1;  // LayerOutcome::trace_number; -1: ran task by task, from time `origin`;
                         // some may be unknown yet
  int64_t origin = 0, period = 0;
  int64_t start = 0;
};

// When every task of every entity ran.
struct SimTrace {
  static constexpr int64_t kUnknown = -1;

  std::vector<int64_t> instance_begin;  // per entity: into `layer_begin`
  std::vector<int64_t> layer_begin;     // per instance of an entity: into `piece_of`
  std::vector<int32_t> piece_of;        // per layer: its piece, or -1
  std::vector<Piece> pieces;
  std::vector<int64_t> times;
  std::vector<int64_t> stepped_tasks;  // per entity: of layers whose tasks ran one by one
  std::vector<int64_t> stream_end;  // per entity and stream: when it is over; 0 if it has no tasks
  int64_t makespan_ps = 0;          // how long an iteration takes
  // Per entity, where iterations overlap: when its own begins. Empty: all at 0.
  std::vector<int64_t> begins;
  // Periods of a steady state that were not simulated: instances from `first` on, so
  // many in each, which go on as the period before does.
  struct Repeat {
    int32_t first = 0, length = 0;
    int32_t all = 0;  // from this one on those of streams that were further ahead do, too
  };
  struct Jump {
    int32_t periods = 0;
    int64_t period_ps = 0;
    std::vector<Repeat> repeats;  // per entity
  };
  std::vector<Jump> jumps;  // one after another

  void Clear() {
    jumps.clear();
    instance_begin.clear();
    layer_begin.clear();
    piece_of.clear();
    pieces.clear();
    times.clear();
    stepped_tasks.clear();
    stream_end.clear();
    begins.clear();
    makespan_ps = 0;
  }

  // Left out in all.
  int32_t Periods() const {
    int32_t periods = 0;
    for (const Jump& jump : jumps) periods += jump.periods;
    return periods;
  }

  // When the last task of an entity ends; 0 if it has none.
  int64_t FinishOf(int32_t entity) const {
    const auto begin = stream_end.begin() + int64_t{entity} * kNumStreams;
    return *std::max_element(begin, begin + kNumStreams);
  }
  int64_t BeginOf(int32_t entity) const { return begins.empty() ? 0 : begins[entity]; }
  // The piece that holds a layer, or -1: it has not begun, or its block has no tasks.
  int32_t PieceOf(int32_t entity, int32_t instance, int32_t layer) const {
    return piece_of[layer_begin[instance_begin[entity] + instance] + layer];
  }
  // Adds the piece of the layers that it says; they have none yet.
  int32_t Add(int32_t entity, int32_t instance, const Piece& piece) {
    const auto at = static_cast<int32_t>(pieces.size());
    std::fill_n(
        piece_of.begin() + layer_begin[instance_begin[entity] + instance] + piece.first_layer,
        piece.layers, at);
    pieces.push_back(piece);
    return at;
  }
  // Picoseconds; `column`: 0 for starts, the block's size for ends.
  int64_t TimeIn(const Piece& piece, int32_t layer, int32_t column, int32_t task) const {
    const int64_t time = times[piece.start + column + task];
    if (time == kUnknown && piece.outcome < 0) return kUnknown;
    return piece.origin + piece.period * (layer - piece.first_layer) + time;
  }
  int64_t StartOf(int32_t entity, const TaskRef& ref) const {
    const int32_t piece = PieceOf(entity, ref.instance, ref.layer);
    return piece < 0 ? kUnknown : TimeIn(pieces[piece], ref.layer, 0, ref.task);
  }
  // `size`: of the block.
  int64_t EndOf(int32_t entity, const TaskRef& ref, int32_t size) const {
    const int32_t piece = PieceOf(entity, ref.instance, ref.layer);
    return piece < 0 ? kUnknown : TimeIn(pieces[piece], ref.layer, size, ref.task);
  }
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_TRACE_H_
