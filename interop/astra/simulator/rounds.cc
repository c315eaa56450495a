// Rings, direct exchange and halving-doubling: a message is prepared in memory,
// sent when a slot is free, and each one that comes prepares the next.

#include <algorithm>

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast::astra {
namespace {

using Kind = AstraAlgorithm::Kind;

int32_t Log2(int64_t n) {
  int32_t log = 0;
  while (n > 1) ++log, n /= 2;
  return log;
}

}  // namespace

void Simulation::BeginRounds(Chunk& chunk) {
  const Phase& phase = chunk.now();
  const Circle& circle = circles_.at(phase.circle);
  const auto n = static_cast<int32_t>(circle.size());
  const bool all_reduce = phase.kind == AstraCollective::kAllReduce;
  chunk.free = chunk.prepared = chunk.sent = chunk.received = 0;
  chunk.left_plain = chunk.left_reduced = 0;
  chunk.odd_round = false;
  chunk.window = 1;
  chunk.message = chunk.size = phase.message;
  chunk.out_box = chunk.in_box = -1;
  switch (phase.algorithm.kind) {
    case Kind::kHalvingDoubling:
      chunk.to_send = (all_reduce ? 2 : 1) * Log2(n);
      chunk.doubling = phase.kind == AstraCollective::kAllGather;
      chunk.distance = chunk.doubling ? n / 2 : 1;
      break;
    case Kind::kDirect:
      chunk.window = phase.algorithm.window > 0 ? std::min(phase.algorithm.window, n - 1) : n - 1;
      chunk.to_send = (all_reduce ? 2 : 1) * (n - 1);
      break;
    default:
      chunk.to_send = phase.kind == AstraCollective::kAllToAll ? n * (n - 1) / 2
                                                               : (all_reduce ? 2 : 1) * (n - 1);
      break;
  }
}

// One more message is made ready for sending, and on its way through memory.
void Simulation::Prepare(int32_t index) {
  Chunk& chunk = chunks_[index];
  const Phase& phase = chunk.now();
  const Circle& circle = circles_.at(phase.circle);
  const auto n = static_cast<int32_t>(circle.size());
  const Kind kind = phase.algorithm.kind;
  if (chunk.left_plain == 0 && chunk.left_reduced <= 0) {
    chunk.left_plain = chunk.window;
    chunk.left_reduced = kind == Kind::kHalvingDoubling             ? Log2(n) - 1
                         : kind == Kind::kDirect && !circle.local() ? chunk.window
                                                                    : (n - 1) * chunk.window;
    chunk.odd_round = !chunk.odd_round;
  }
  bool reduce = false;
  if (chunk.left_plain > 0) {
    --chunk.left_plain;
  } else {
    --chunk.left_reduced;
    reduce = phase.kind == AstraCollective::kReduceScatter ||
             (phase.kind == AstraCollective::kAllReduce && chunk.odd_round);
  }
  ++chunk.prepared;
  if (kind == Kind::kHalvingDoubling) {
    // The next partner and size; an all-reduce turns round at the farthest.
    chunk.size = chunk.message;
    if (chunk.distance > 0) {
      const bool up = circle.PlaceOf(chunk.rank) / chunk.distance % 2 == 0;
      chunk.peer = circle.After(chunk.rank, up ? chunk.distance : -chunk.distance);
    }
    const auto step = [&] {
      chunk.distance = chunk.doubling ? chunk.distance / 2 : chunk.distance * 2;
      chunk.message = chunk.doubling ? chunk.message * 2 : chunk.message / 2;
    };
    step();
    if (!chunk.doubling && chunk.distance == n && phase.kind == AstraCollective::kAllReduce) {
      chunk.doubling = true;
      step();
    }
  }
  ToMemory(index, reduce);
}

bool Simulation::SendPrepared(int32_t index) {
  Chunk& chunk = chunks_[index];
  if (chunk.prepared == chunk.sent || chunk.to_send == 0 || chunk.free == 0) return false;
  const Phase& phase = chunk.now();
  const Circle& circle = circles_.at(phase.circle);
  int32_t out = chunk.out_box, in = chunk.in_box;
  if (out < 0) {
    int64_t to = chunk.peer, from = chunk.peer;
    if (phase.algorithm.kind != Kind::kHalvingDoubling) {
      int64_t steps = 1;
      if (phase.algorithm.kind == Kind::kDirect) steps += chunk.sent % (circle.size() - 1);
      if (phase.backwards) steps = -steps;
      to = circle.After(chunk.rank, steps);
      from = circle.After(chunk.rank, -steps);
    }
    out = FindBox(/*of_trace=*/false, chunk.tag, chunk.rank, to, chunk.size);
    in = FindBox(/*of_trace=*/false, chunk.tag, from, chunk.rank, chunk.size);
    if (phase.algorithm.kind == Kind::kRing) {
      chunk.out_box = out, chunk.in_box = in;
      ++boxes_.at(out).holders, ++boxes_.at(in).holders;
    }
  }
  Send(out, Party());
  Receive(in, {Party::Kind::kChunk, index, 0});
  --chunk.to_send;
  ++chunk.sent;
  --chunk.free;
  return true;
}

void Simulation::AfterMemoryRounds(int32_t index) {
  Chunk& chunk = chunks_[index];
  ++chunk.free;
  const int64_t others = circles_.at(chunk.now().circle).size() - 1;
  // The second half of a direct all-reduce starts when all of the first has come.
  if (chunk.now().algorithm.kind == Kind::kDirect &&
      chunk.now().kind == AstraCollective::kAllReduce && chunk.to_send <= others) {
    if (chunk.received < others) return;
    for (int32_t i = 0; i < chunk.window; ++i) SendPrepared(index);
  } else {
    SendPrepared(index);
  }
  EndIfDone(index);
}

void Simulation::EndIfDone(int32_t index) {
  Chunk& chunk = chunks_[index];
  if (chunk.to_send > 0 || chunk.free != chunk.window) return;
  for (const int32_t box : {chunk.out_box, chunk.in_box}) {
    if (box < 0) continue;
    --boxes_.at(box).holders;
    boxes_.ForgetIfOver(box);
  }
  Advance(index);
}

}  // namespace plancast::astra
