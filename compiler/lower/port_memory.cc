#include "compiler/lower/port_memory.h"

#include <algorithm>
#include <utility>

#include "compiler/lower/body_state.h"

namespace plancast {
namespace {

bool Tells(const Block& block, int tensor, int64_t delta) {
  return std::any_of(block.memory.begin(), block.memory.end(), [&](const MemoryEvent& e) {
    return e.tensor == tensor && e.delta == delta && e.kind == MemoryKind::kActivations;
  });
}

// Kept as it is.
bool IsPlain(const BytesKept& kept, const Buffers& buffers, int b) {
  return kept.from_forward[b] == buffers.bytes[b] && kept.until_weights[b] == buffers.bytes[b];
}

bool IsAmong(const std::vector<PortMemory>& ports, int tensor) {
  return std::count_if(ports.begin(), ports.end(),
                       [&](const PortMemory& p) { return p.tensor == tensor; }) == 1;
}

}  // namespace

void NotePorts(const BodyPlan& plan, const Buffers& buffers, const BytesKept& kept,
               const BufferTensors& tensors, BodyBlocks* blocks) {
  const size_t count = buffers.bytes.size();
  std::vector<bool> saved(count, false), until_weights(count, false);
  std::vector<int> given(count, 0), taken(count, 0);
  const auto buffer_of = [&](int value) { return value < 0 ? -1 : buffers.of_value[value]; };
  for (int value : tensors.saved) {
    if (const int b = buffer_of(value); b >= 0) saved[b] = true;
  }
  for (int value : tensors.until_weights) {
    if (const int b = buffer_of(value); b >= 0) until_weights[b] = true;
  }
  for (int value : plan.out_ports) {
    if (const int b = buffer_of(value); b >= 0) ++given[b];
  }
  for (int value : plan.in_ports) {
    if (const int b = buffer_of(value); b >= 0) ++taken[b];
  }
  const Block &forward = blocks->forward.block, &backward = blocks->backward.block;
  const auto plain = [&](int b) { return b >= 0 && IsPlain(kept, buffers, b); };
  for (int value : plan.in_ports) {
    InPortMemory& port = blocks->in_ports.emplace_back();
    const int b = buffer_of(value);
    if (!plain(b) || taken[b] != 1 || (!saved[b] && given[b] > 0)) continue;
    const int64_t bytes = buffers.bytes[b];
    const Block& last = until_weights[b] ? blocks->weights.block : backward;
    const int there = tensors.forward[b];
    const int back = !saved[b] ? -1 : (until_weights[b] ? tensors.weights : tensors.backward)[b];
    const bool freed = saved[b] ? Tells(last, back, -bytes) : Tells(forward, there, -bytes);
    if (freed && IsAmong(forward.takes, there)) {
      port = {there, back, bytes, saved[b] && until_weights[b]};
    }
  }
  for (int value : plan.out_ports) {
    OutPortMemory& port = blocks->out_ports.emplace_back();
    const int b = buffer_of(value);
    if (!plain(b) || given[b] != 1 || !saved[b]) continue;
    const int there = tensors.forward[b];
    const bool twice = Tells(forward, there, buffers.bytes[b]);
    if (twice && IsAmong(forward.gives, there)) port = {there, buffers.bytes[b], until_weights[b]};
  }
}

void NoteKept(const DeviceMesh& mesh, const BodyPlan& plan, const Buffers& buffers,
              const BytesKept& kept, const BufferTensors& tensors, BodyBlocks* blocks) {
  std::vector<bool> known(buffers.bytes.size(), false);
  for (const int value : tensors.saved) {
    const int b = value < 0 ? -1 : buffers.of_value[value];
    if (b < 0 || known[b]) continue;
    known[b] = true;
    if (!IsPlain(kept, buffers, b) || tensors.forward[b] < 0 || tensors.backward[b] < 0) continue;
    std::vector<int> copies = CopiesOf(mesh, plan.values[value].layout);
    if (copies.empty()) continue;
    blocks->kept.push_back(
        {blocks->forward.block.tensors[tensors.forward[b]], buffers.bytes[b], std::move(copies)});
  }
}

bool HandsOnOtherwise(const Buffers& buffers, const std::vector<int>& enters,
                      const std::vector<int>& stays, const std::vector<int>& out_ports) {
  std::vector<int> owners(buffers.bytes.size(), 0);
  const auto count = [&](const std::vector<int>& values, int sign) {
    for (int value : values) {
      if (value >= 0 && buffers.of_value[value] >= 0) owners[buffers.of_value[value]] += sign;
    }
  };
  count(stays, 1);
  count(enters, -1);
  const bool any =
      std::any_of(out_ports.begin(), out_ports.end(), [](int value) { return value >= 0; });
  return any && std::any_of(owners.begin(), owners.end(), [](int n) { return n != 0; });
}

bool EndsHere(const Buffers& buffers, const std::vector<int>& enters,
              const std::vector<int>& stays) {
  return std::any_of(enters.begin(), enters.end(), [&](int value) {
    if (value < 0 || buffers.of_value[value] < 0) return false;
    return std::none_of(stays.begin(), stays.end(), [&](int other) {
      return other >= 0 && buffers.of_value[other] == buffers.of_value[value];
    });
  });
}

}  // namespace plancast
