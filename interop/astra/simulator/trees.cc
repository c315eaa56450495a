// Double binary trees: every chunk of an all-reduce goes up one tree and down
// again; collectives take the two trees in turn.

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"
#include "interop/astra/simulator/tree_places.h"

namespace plancast::astra {

using State = Chunk::TreeState;

// The box of messages to a place of the tree, or from it.
int32_t Simulation::TreeBox(const Chunk& chunk, int64_t place, bool out) {
  const int64_t other = circles_.at(chunk.now().circle).At(chunk.rank, place);
  return FindBox(/*of_trace=*/false, chunk.tag, out ? chunk.rank : other, out ? other : chunk.rank,
                 chunk.now().bytes);
}

void Simulation::TreeStep(int32_t index, bool came, bool from_memory) {
  Chunk& chunk = chunks_[index];
  const Phase& phase = chunk.now();
  const Circle& circle = circles_.at(phase.circle);
  const TreePlace place = PlaceInTree(circle.PlaceOf(chunk.rank), circle.size(), phase.min_root);
  const bool inner = !place.root() && !place.leaf();
  const Party me{Party::Kind::kChunk, index, 0};
  const int64_t only_child = place.left >= 0 ? place.left : place.right;
  const auto await = [&](int64_t from) { Receive(TreeBox(chunk, from, /*out=*/false), me); };
  const auto send = [&](int64_t to) { Send(TreeBox(chunk, to, /*out=*/true), Party()); };
  chunk.size = phase.bytes;
  switch (chunk.tree) {
    case State::kBegin:
      if (place.root()) {
        chunk.tree = State::kAwaitOne;
        await(only_child);
      } else if (place.leaf()) {
        chunk.tree = State::kToParent;
        ToMemory(index, /*reduce=*/false);
      } else {
        chunk.tree = State::kAwaitTwo;
        await(place.left);
        await(place.right);
      }
      return;
    case State::kAwaitTwo:
      if (!came) break;
      chunk.tree = State::kAwaitOne;
      return ToMemory(index, /*reduce=*/true);
    case State::kAwaitOne:
      if (!came) break;
      chunk.tree = place.root() ? State::kToChildren : State::kToParent;
      return ToMemory(index, /*reduce=*/true);
    case State::kToParent:
      // Both children must have been added.
      if (inner && !chunk.one_reduced) break;
      if (came) return;
      chunk.tree = State::kAwaitParent;
      send(place.parent);
      return await(place.parent);
    case State::kAwaitParent:
      if (!came) return;
      chunk.tree = inner ? State::kToChildren : State::kEnd;
      return ToMemory(index, /*reduce=*/inner);
    case State::kToChildren:
      if (came) return;
      if (place.root()) {
        send(only_child);
      } else {
        send(place.left);
        send(place.right);
      }
      return Advance(index);
    case State::kEnd:
      return Advance(index);
  }
  if (inner && from_memory) chunk.one_reduced = true;
}

}  // namespace plancast::astra
