#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_CHUNK_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_CHUNK_H_

#include <cstdint>
#include <vector>

#include "interop/astra/simulator/phases.h"

namespace plancast::astra {

// One chunk of a collective on one rank, and where its present phase stands.
struct Chunk {
  int32_t rank = 0;
  int32_t collective = 0;  // on this rank, into Simulation
  int64_t tag = 0;         // the same on all ranks
  int64_t priority = 0;
  std::vector<Phase> phases;
  int32_t phase = -1;
  bool begun = false;   // it runs in its queue
  int32_t ordinal = 0;  // among the chunks of its collective

  // The last time that it told itself to go on, and as the how-manieth of all.
  int64_t reminded_at = 0, reminder = 0;

  // Rings, direct, halving-doubling: sends, each of which may start once a slot is
  // free; messages come in rounds, of which the first is not reduced.
  int32_t to_send = 0, window = 1, free = 0;
  int32_t prepared = 0, sent = 0, received = 0;
  int32_t left_plain = 0, left_reduced = 0;
  bool odd_round = false;
  // Halving-doubling: the message that comes next, and how far its partner is.
  int64_t message = 0;
  int64_t distance = 0;
  bool doubling = false;
  int64_t peer = 0, size = 0;  // of the message that is prepared
  // Rings: always the same boxes.
  int32_t out_box = -1, in_box = -1;

  // Trees.
  enum class TreeState : uint8_t {
    kBegin,
    kAwaitTwo,
    kAwaitOne,
    kToParent,
    kAwaitParent,
    kToChildren,
    kEnd
  };
  TreeState tree = TreeState::kBegin;
  bool one_reduced = false;

  // A custom collective: dependencies left by node, and nodes left.
  std::vector<int32_t> custom_left;
  int32_t custom_nodes = 0;

  const Phase& now() const { return phases[phase]; }
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_CHUNK_H_
