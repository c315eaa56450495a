// Ranks in lockstep repeat themselves: what a collective came to once is replayed
// when all begin it again in the same order on an idle network. Only collectives
// that end for all ranks at one time are, since until then nobody can communicate
// otherwise: each rank has one slot for it.

#include <algorithm>

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast::astra {

void Simulation::NoteBegin(int32_t rank, int32_t collective) {
  if (epochs_.time != events_.now()) {
    epochs_.time = events_.now();
    epochs_.begun.clear();
  }
  epochs_.begun.push_back({rank, collective});
}

void Simulation::NoteEnd(const Chunk& chunk) {
  if (!epochs_.watching) return;
  Epoch& epoch = epochs_.watched;
  const int64_t length = events_.now() - epochs_.watched_from;
  if (!epoch.lasts.empty() && epoch.length != length) {
    epochs_.watching = false;  // some end earlier
    return;
  }
  epoch.length = length;
  epoch.lasts.push_back(
      {chunk.rank, chunk.ordinal, chunk.reminded_at - epochs_.watched_from, chunk.reminder});
  if (static_cast<int64_t>(epoch.lasts.size()) < npus_) return;
  epochs_.watching = false;
  epoch.messages = message_count_ - epochs_.messages_before;
  std::sort(epoch.lasts.begin(), epoch.lasts.end(),
            [](const Epoch::Last& a, const Epoch::Last& b) { return a.reminder < b.reminder; });
  const bool later = std::all_of(epoch.lasts.begin(), epoch.lasts.end(),
                                 [](const Epoch::Last& last) { return last.reminded > 0; });
  if (later) epochs_.known.emplace(std::move(epochs_.watched_key), std::move(epoch));
}

// At the end of a time: have all ranks just begun one collective, and is nothing
// else in flight?
void Simulation::LookForReplay() {
  if (epochs_.time != events_.now() || static_cast<int64_t>(epochs_.begun.size()) != npus_) return;
  epochs_.time = -1;
  std::vector<int64_t> key;
  if (!boxes_.empty() || !AllBeganAlike(key)) return;
  if (const auto known = epochs_.known.find(key); known != epochs_.known.end()) {
    return StartReplay(known->second);
  }
  epochs_.watching = true;
  epochs_.watched_key = std::move(key);
  epochs_.watched_from = events_.now();
  epochs_.messages_before = message_count_;
  epochs_.watched = Epoch();
}

// The key says what began, in which queues, and in which order if that may matter: messages share
// links, or meet what other ranks sent, or chunks may overtake each other between dimensions.
bool Simulation::AllBeganAlike(std::vector<int64_t>& key) const {
  const auto node_of = [&](const Epochs::Begin& begin) -> const AstraNode& {
    return ranks_[begin.rank].program->nodes[collectives_[begin.collective].node];
  };
  const Epochs::Begin& first = epochs_.begun[0];
  const AstraNode& node = node_of(first);
  const std::vector<int32_t>& chunks = collectives_[first.collective].chunks;
  if (chunks.empty() || live_chunks_ != npus_ * static_cast<int64_t>(chunks.size())) return false;
  key = {static_cast<int64_t>(node.collective), node.bytes, node.group, node.dims};
  for (const int32_t chunk : chunks) {
    for (const Phase& phase : chunks_[chunk].phases) {
      key.push_back(phase.queue * 4 + (phase.backwards ? 2 : 0) + (phase.min_root ? 1 : 0));
    }
  }
  const bool order_matters = network_.congestion_aware || has_messages_ ||
                             (chunks.size() > 1 && chunks_[chunks[0]].phases.size() > 1);
  std::vector<bool> seen(npus_);
  std::vector<int32_t> order;  // chunks on their way, as they set out
  for (const Epochs::Begin& begin : epochs_.begun) {
    const AstraNode& other = node_of(begin);
    const std::vector<int32_t>& others = collectives_[begin.collective].chunks;
    if (seen[begin.rank] || other.collective != node.collective || other.bytes != node.bytes ||
        other.group != node.group || other.dims != node.dims || others.size() != chunks.size()) {
      return false;
    }
    seen[begin.rank] = true;
    for (size_t c = 0; c < chunks.size(); ++c) {
      const std::vector<Phase>& mine = chunks_[chunks[c]].phases;
      const std::vector<Phase>& theirs = chunks_[others[c]].phases;
      if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                      [](const Phase& a, const Phase& b) {
                        return a.queue == b.queue && a.backwards == b.backwards &&
                               a.min_root == b.min_root;
                      })) {
        return false;
      }
    }
    if (!order_matters) continue;
    for (const int32_t chunk : others) {
      if (chunks_[chunk].begun) order.push_back(chunk);
    }
  }
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return chunks_[a].reminder < chunks_[b].reminder; });
  for (const int32_t chunk : order) {
    key.push_back(chunks_[chunk].rank * static_cast<int64_t>(chunks.size()) +
                  chunks_[chunk].ordinal);
  }
  return true;
}

// Takes back what has begun, but for the last chunk of each rank, which stays in
// its queue until the end.
void Simulation::StartReplay(const Epoch& epoch) {
  std::vector<int32_t> collective_of(npus_);
  for (const Epochs::Begin& begin : epochs_.begun) collective_of[begin.rank] = begin.collective;
  const int64_t now = events_.now();
  int32_t replay = -1;
  int64_t reminded = -1;
  for (const Epoch::Last& last : epoch.lasts) {
    Rank& rank = ranks_[last.rank];
    for (Agenda& agenda : rank.agendas) {
      int32_t* link = &agenda.first;
      agenda.last = -1;
      while (*link >= 0) {
        const int32_t entry = *link;
        Note& note = notes_[entry];
        if (note.kind == Note::Kind::kNode) {
          agenda.last = entry;
          link = &note.next;
          continue;
        }
        *link = note.next;
        note.next = free_notes_;
        free_notes_ = entry;
      }
    }
    for (auto& queue : rank.queues) queue.clear();
    std::fill(rank.running.begin(), rank.running.end(), 0);
    Collective& collective = collectives_[collective_of[last.rank]];
    const int32_t kept = collective.chunks[last.ordinal];
    for (const int32_t chunk : collective.chunks) {
      if (chunk == kept) continue;
      free_chunks_.push_back(chunk);
      --live_chunks_;
    }
    collective.chunks_left = 1;
    Chunk& chunk = chunks_[kept];
    chunk.phase = static_cast<int32_t>(chunk.phases.size()) - 1;
    chunk.begun = true;
    rank.queues[chunk.now().queue] = {kept};
    rank.running[chunk.now().queue] = 1;
    if (last.reminded != reminded) {
      reminded = last.reminded;
      if (epochs_.free_replays.empty()) {
        epochs_.free_replays.push_back(static_cast<int32_t>(epochs_.replays.size()));
        epochs_.replays.emplace_back();
      }
      replay = epochs_.free_replays.back();
      epochs_.free_replays.pop_back();
      events_.Push(now + reminded, {EventKind::kReplay, replay, 0});
    }
    epochs_.replays[replay].push_back({last.rank, kept, epoch.length - reminded});
  }
  message_count_ += epoch.messages;
}

void Simulation::Replay(int32_t index) {
  for (const Epochs::Reminder& reminder : epochs_.replays[index]) {
    Remind(reminder.rank, reminder.delay, {Note::Kind::kLast, reminder.chunk, 0});
  }
  epochs_.replays[index].clear();
  epochs_.free_replays.push_back(index);
}

}  // namespace plancast::astra
