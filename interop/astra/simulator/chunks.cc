// Collectives: their chunks, the queues in which these wait, and the way between
// processor and memory.

#include <algorithm>

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast::astra {

using Kind = AstraAlgorithm::Kind;

int32_t Simulation::NewChunk() {
  if (free_chunks_.empty()) {
    free_chunks_.push_back(static_cast<int32_t>(chunks_.size()));
    chunks_.emplace_back();
  }
  const int32_t chunk = free_chunks_.back();
  free_chunks_.pop_back();
  ++live_chunks_;
  return chunk;
}

void Simulation::StartCollective(int32_t rank_index, int32_t node_index) {
  Rank& rank = ranks_[rank_index];
  const AstraNode& node = rank.program->nodes[node_index];
  int64_t left = node.bytes;
  int64_t size = left / system_.splits;
  // No chunk is smaller than a byte for each rank, but in an all-gather.
  if (node.collective != AstraCollective::kAllGather && size < npus_) {
    size = npus_;
    left = size * system_.splits;
  }
  int64_t priority = node.priority;
  if (system_.order == AstraSystem::Order::kLifo) priority = rank.next_priority++;
  if (system_.order == AstraSystem::Order::kFifo) priority = rank.next_priority--;
  if (free_collectives_.empty()) {
    free_collectives_.push_back(static_cast<int32_t>(collectives_.size()));
    collectives_.emplace_back();
  }
  const int32_t collective = free_collectives_.back();
  free_collectives_.pop_back();
  // What is left over is a chunk of full size.
  const int64_t count = (left + size - 1) / size;
  collectives_[collective].node = node_index;
  collectives_[collective].chunks_left = static_cast<int32_t>(count);
  collectives_[collective].chunks.clear();
  ++collective_count_;
  if (memo_) NoteBegin(rank_index, collective);
  const std::vector<bool>* involved =
      node.dims < 0 ? nullptr : &workload_.involved[static_cast<size_t>(node.dims)];
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Phase> phases =
        circles_.PhasesOf(node.collective, node.group, size, involved, rank.turns);
    if (phases.empty()) {  // with nobody else
      free_collectives_.push_back(collective);
      Remind(rank_index, 0, {Note::Kind::kNode, rank_index, node_index});
      return;
    }
    const int32_t index = NewChunk();
    Chunk& chunk = chunks_[index];
    chunk = Chunk();
    chunk.rank = rank_index;
    chunk.collective = collective;
    chunk.ordinal = static_cast<int32_t>(i);
    if (memo_) collectives_[collective].chunks.push_back(index);
    chunk.tag = node.group < 0 ? rank.collectives++ : rank.group_chunks[node.group]++;
    chunk.priority = priority;
    chunk.phases = std::move(phases);
    Advance(index);
  }
}

// On to the next phase. The collective ends before its last chunk leaves the
// queue, so what that starts finds the queue still taken.
void Simulation::Advance(int32_t index) {
  Chunk& chunk = chunks_[index];
  Rank& rank = ranks_[chunk.rank];
  const int32_t before = chunk.phase >= 0 ? chunk.now().queue : -1;
  const bool last = chunk.phase + 1 == static_cast<int32_t>(chunk.phases.size());
  if (last && --collectives_[chunk.collective].chunks_left == 0) {
    const int32_t node = collectives_[chunk.collective].node;
    if (memo_) NoteEnd(chunk);
    free_collectives_.push_back(chunk.collective);
    NodeDone(chunk.rank, node);
  }
  if (before >= 0) {
    auto& queue = rank.queues[before];
    queue.erase(std::find(queue.begin(), queue.end(), index));
  }
  if (last) {
    --rank.running[before];
    free_chunks_.push_back(index);
    --live_chunks_;
    return StartWaiting(rank, before);
  }
  ++chunk.phase;
  chunk.begun = false;
  const int32_t queue = chunk.now().queue;
  Insert(rank.queues[queue], index);
  if (before >= 0) {
    --rank.running[before];
    StartWaiting(rank, before);
  }
  StartWaiting(rank, queue);
}

void Simulation::Insert(std::vector<int32_t>& queue, int32_t index) {
  const auto place = std::find_if(queue.begin(), queue.end(), [&](int32_t other) {
    return !chunks_[other].begun && chunks_[other].priority < chunks_[index].priority;
  });
  queue.insert(place, index);
}

void Simulation::StartWaiting(Rank& rank, int32_t queue) {
  auto& chunks = rank.queues[queue];
  int32_t& running = rank.running[queue];
  while (running < chunks_at_once_ && running < static_cast<int32_t>(chunks.size())) {
    Begin(chunks[running++]);
  }
}

void Simulation::Begin(int32_t index) {
  Chunk& chunk = chunks_[index];
  chunk.begun = true;
  switch (chunk.now().algorithm.kind) {
    case Kind::kCustom:
      return BeginCustom(index);
    case Kind::kDoubleBinaryTree:
      chunk.tree = Chunk::TreeState::kBegin;
      chunk.one_reduced = false;
      return TreeStep(index, /*came=*/false, /*from_memory=*/false);
    default:
      BeginRounds(chunk);
      for (int32_t i = 0; i < chunk.window; ++i) Prepare(index);
  }
}

void Simulation::ToMemory(int32_t index, bool reduce) {
  Chunk& chunk = chunks_[index];
  chunk.reminded_at = events_.now();
  chunk.reminder = ++reminders_;
  // Rings of groups have a fixed delay.
  const bool fast = circles_.at(chunk.now().circle).local();
  Remind(chunk.rank, fast ? 10 : system_.endpoint_delay_ns,
         {reduce ? Note::Kind::kReduce : Note::Kind::kMemory, index, 0});
}

// Two reads and a write.
int64_t Simulation::ReduceTime(const Chunk& chunk) const {
  return 3 * static_cast<int64_t>(static_cast<double>(chunk.size) /
                                  (system_.local_mem_gb_per_s * 1e9) * 1e9);
}

void Simulation::AfterMemory(int32_t index) {
  if (chunks_[index].now().algorithm.kind == Kind::kDoubleBinaryTree) {
    return TreeStep(index, /*came=*/false, /*from_memory=*/true);
  }
  AfterMemoryRounds(index);
}

void Simulation::MessageCame(int32_t index) {
  if (chunks_[index].now().algorithm.kind == Kind::kDoubleBinaryTree) {
    return TreeStep(index, /*came=*/true, /*from_memory=*/false);
  }
  ++chunks_[index].received;
  Prepare(index);
}

}  // namespace plancast::astra
