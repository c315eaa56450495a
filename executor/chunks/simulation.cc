#include "executor/chunks/simulation.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "executor/chunks/simulator.h"

namespace plancast {

ChunkSimulator::ChunkSimulator(const ChunkGraph& graph, const ChunkSimulationOptions& options)
    : graph_(graph), options_(options) {
  for (const int64_t capacity : graph.resources) fluid_.AddResource(capacity);
  std::vector<Fluid::Use> uses;
  for (const ChunkGraph::Connection& connection : graph.connections) {
    uses.clear();
    for (int32_t u = connection.use_begin; u < connection.use_end; ++u) {
      uses.push_back({graph.uses[u].resource, graph.uses[u].coefficient_q20});
    }
    fluid_.AddKind(connection.bytes_per_s, 1, uses);
  }
  blocks_.resize(graph.blocks.size());
  queues_.resize(graph.connections.size());
  waiters_.resize(graph.blocks.size());
  result_.finish_ps.resize(graph.blocks.size());
  if (options.record) started_.resize(graph.blocks.size());
}

ChunkSimulator::Pieces ChunkSimulator::PiecesOf(int32_t b) const {
  const ChunkGraph::Program& program = graph_.programs[graph_.blocks[b].program];
  const int64_t chunk =
      blocks_[b].turn + 1 == program.turns ? program.last_chunk_bytes : program.chunk_bytes;
  const int64_t message = chunk * RunOf(b).chunks;
  Pieces pieces;
  if (program.slice_bytes > 0 && message > program.slice_bytes) {
    pieces.count = (message + program.slice_bytes - 1) / program.slice_bytes;
  }
  pieces.bytes = (message + pieces.count - 1) / pieces.count;
  if (program.fifo_bytes > 0) {
    pieces.places = std::max<int64_t>(1, program.fifo_bytes / std::max<int64_t>(1, pieces.bytes));
  }
  return pieces;
}

void ChunkSimulator::Enqueue(int32_t b) {
  BlockState& block = blocks_[b];
  if (block.queued || block.phase != Phase::kWaits) return;
  block.queued = true;
  ready_.push_back(b);
}

void ChunkSimulator::Push(const Event& event) {
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void ChunkSimulator::Drain() {
  while (!ready_.empty()) {
    const int32_t b = ready_.back();
    ready_.pop_back();
    blocks_[b].queued = false;
    Try(b);
  }
}

// Goes on with a block as far as it can at this moment.
void ChunkSimulator::Try(int32_t b) {
  const ChunkGraph::Block& block = graph_.blocks[b];
  BlockState& state = blocks_[b];
  while (state.phase == Phase::kWaits) {
    const StepRun& run = RunOf(b);
    if (run.dependency >= 0 && state.piece == 0) {
      const int32_t other = graph_.dependencies[block.first_dependency + run.dependency];
      const int64_t steps = graph_.scripts[graph_.blocks[other].script].steps;
      if (blocks_[other].done_steps < state.turn * steps + run.after_step + 1) {
        waiters_[other].push_back(b);
        return;
      }
    }
    if (run.receives) {
      const Queue& queue = queues_[block.in];
      if (queue.arrived == queue.consumed) return;
    }
    if (!run.sends && !run.local && !run.receives) {
      FinishPiece(b);
      continue;
    }
    const Pieces pieces = PiecesOf(b);
    if (run.sends) {
      Queue& queue = queues_[block.out];
      if (pieces.places > 0 && queue.sent - queue.consumed >= pieces.places) return;
      ++queue.sent;
      ++result_.messages;
      state.phase = Phase::kBusy;
      state.activity = fluid_.Start(block.out, pieces.bytes);
      if (static_cast<size_t>(state.activity) >= block_of_activity_.size()) {
        block_of_activity_.resize(state.activity + 1);
      }
      block_of_activity_[state.activity] = b;
      if (options_.record) started_[b] = now_;
      return;
    }
    const int64_t rate = graph_.programs[block.program].local_bytes_per_s;
    if (rate > 0) {
      state.phase = Phase::kBusy;
      const int128 work = int128{pieces.bytes} * 1'000'000'000'000 + (rate - 1);
      Push({now_ + static_cast<int64_t>(work / rate), EventKind::kLocal, b});
      return;
    }
    FinishPiece(b);
  }
}

void ChunkSimulator::FinishPiece(int32_t b) {
  const ChunkGraph::Block& block = graph_.blocks[b];
  BlockState& state = blocks_[b];
  const StepRun& run = RunOf(b);
  state.phase = Phase::kWaits;
  if (run.receives) {
    ++queues_[block.in].consumed;
    Enqueue(graph_.connections[block.in].sender);
  }
  const bool moves = run.receives || run.sends || run.local;
  if (moves && ++state.piece < PiecesOf(b).count) return;
  state.piece = 0;
  ++state.done_steps;
  const Script& script = graph_.scripts[block.script];
  if (++state.rep == run.repeat) {
    state.rep = 0;
    if (++state.run == static_cast<int32_t>(script.runs.size())) {
      state.run = 0;
      if (++state.turn == graph_.programs[block.program].turns) {
        state.phase = Phase::kDone;
        result_.finish_ps[b] = now_;
        --left_;
      }
    }
  }
  if (waiters_[b].empty()) return;
  for (const int32_t waiter : waiters_[b]) Enqueue(waiter);
  waiters_[b].clear();
}

void ChunkSimulator::Arrive(int32_t connection) {
  ++queues_[connection].arrived;
  Enqueue(graph_.connections[connection].receiver);
}

void ChunkSimulator::Happen(int64_t time) {
  now_ = time;
  ++result_.events;
  for (const int32_t activity : fluid_.AdvanceTo(time)) {
    const int32_t b = block_of_activity_[activity];
    const int32_t out = graph_.blocks[b].out;
    if (options_.record) {
      const Script& script = graph_.scripts[graph_.blocks[b].script];
      result_.transfers.push_back({b, blocks_[b].turn,
                                   script.first_step[blocks_[b].run] + blocks_[b].rep,
                                   PiecesOf(b).bytes, started_[b], time});
    }
    blocks_[b].activity = -1;
    const int64_t latency = graph_.connections[out].latency_ps;
    if (latency > 0) {
      Push({time + latency, EventKind::kArrival, out});
    } else {
      Arrive(out);
    }
    FinishPiece(b);
    Enqueue(b);
  }
  while (!events_.empty() && events_.front().time <= time) {
    const Event event = events_.front();
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    events_.pop_back();
    switch (event.kind) {
      case EventKind::kArrival:
        Arrive(event.id);
        break;
      case EventKind::kLocal:
        FinishPiece(event.id);
        Enqueue(event.id);
        break;
      case EventKind::kStart:
        Enqueue(event.id);
        break;
    }
  }
}

absl::Status ChunkSimulator::NameStuck() const {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].phase == Phase::kDone) continue;
    const ChunkGraph::Block& block = graph_.blocks[b];
    const Script& script = graph_.scripts[block.script];
    const int64_t step = script.first_step[blocks_[b].run] + blocks_[b].rep;
    return absl::FailedPreconditionError(absl::StrCat(
        "a deadlock: gpu ", block.rank, " waits for ever in step ", step,
        " of a thread block that ", block.out < 0 ? "only receives" : "sends",
        ", because blocks wait for each other or a queue is too short for what two of them "
        "send each other first. Use smaller chunks, or a program that passes the check."));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChunkSimulationResult> ChunkSimulator::Run() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const ChunkGraph::Block& block = graph_.blocks[b];
    const ChunkGraph::Program& program = graph_.programs[block.program];
    if (graph_.scripts[block.script].runs.empty() || program.turns == 0) {
      blocks_[b].phase = Phase::kDone;
      result_.finish_ps[b] = program.start_ps;
      continue;
    }
    ++left_;
    Push({program.start_ps, EventKind::kStart, static_cast<int32_t>(b)});
  }
  ChooseClock();
  while (left_ > 0) {
    const int64_t event = events_.empty() ? Fluid::kNever : events_.front().time;
    const int64_t time = std::min(event, fluid_.NextCompletion());
    if (time == Fluid::kNever) return NameStuck();
    Happen(time);
    Drain();
    if (options_.jump && !options_.record && clock_ >= 0) MaybeJump();
  }
  return std::move(result_);
}

absl::StatusOr<ChunkSimulationResult> SimulateChunks(const ChunkGraph& graph,
                                                     const ChunkSimulationOptions& options) {
  return ChunkSimulator(graph, options).Run();
}

}  // namespace plancast
