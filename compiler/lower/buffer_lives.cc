#include "compiler/lower/buffer_lives.h"

#include <algorithm>
#include <set>

#include "compiler/lower/op_memory.h"
#include "compiler/lower/quantized.h"

namespace plancast {

BytesKept BytesKeptOf(const LowerContext& context, const BodyPlan& plan, const Buffers& buffers,
                      const BackwardHalves& halves) {
  BytesKept kept;
  kept.from_forward = KeptBytes(context, plan, buffers, plan.saved, plan.backward);
  DropBuffers(context, plan.backward, buffers, &kept.from_forward);
  const std::vector<PlanStep>& later = halves.weights.steps;
  kept.until_weights = KeptBytes(context, plan, buffers, halves.reads, later, /*ports=*/false);
  DropBuffers(context, later, buffers, &kept.until_weights);
  return kept;
}

std::vector<int> Stays(const Buffers& buffers, const std::vector<int>& kept,
                       const std::vector<int>& out_ports) {
  std::set<int> seen;
  std::vector<int> stays;
  for (int value : kept) {
    if (value >= 0 && seen.insert(buffers.of_value[value]).second) stays.push_back(value);
  }
  stays.insert(stays.end(), out_ports.begin(), out_ports.end());
  return stays;
}

void WriteLives(const LivesOf& of, const BlockBorder& border, std::vector<BufferLife>* lives,
                std::vector<int>* tensors, BlockBuilder* builder) {
  const Buffers& buffers = of.buffers;
  std::vector<int> kept(buffers.bytes.size(), 0);
  for (int value : border.enters) {
    if (value >= 0 && buffers.of_value[value] >= 0) {
      (*lives)[buffers.of_value[value]].enters = true;
    }
  }
  for (int value : border.stays) {
    if (value >= 0 && buffers.of_value[value] >= 0) ++kept[buffers.of_value[value]];
  }
  auto tensor = [&](size_t buffer) {
    int& number = (*tensors)[buffer];
    if (number < 0) number = builder->AddTensor(NameIn(of.path, buffers.name[buffer]));
    return static_cast<uint16_t>(number);
  };
  std::set<int> taken;
  for (int value : border.in_ports) {
    const int buffer = value < 0 ? -1 : buffers.of_value[value];
    if (buffer < 0 || !taken.insert(buffer).second) continue;
    builder->Take(tensor(buffer), buffers.bytes[buffer]);
  }
  for (int value : border.out_ports) {
    const int buffer = value < 0 ? -1 : buffers.of_value[value];
    if (buffer >= 0) builder->Give(tensor(buffer), buffers.bytes[buffer]);
  }
  for (size_t b = 0; b < lives->size(); ++b) {
    const BufferLife& life = (*lives)[b];
    const int64_t bytes = buffers.bytes[b];
    const bool touched = life.last >= 0;
    if (of.entered_bytes[b] != bytes || of.kept_bytes[b] != bytes) {
      const QuantizedLife quantized{bytes, of.entered_bytes[b], of.kept_bytes[b], kept[b],
                                    life.enters};
      AddQuantized(quantized, touched ? life.first : 0, std::max(life.last, 0), tensor(b), builder);
      continue;
    }
    // Kept for two owners (saved here and passed on): counted for both.
    const int owners_before = life.enters ? 1 : 0;
    for (int i = owners_before; i < std::max(kept[b], touched ? 1 : 0); ++i) {
      builder->AddMemory(touched ? life.first : 0, false, MemoryKind::kActivations, tensor(b),
                         bytes);
    }
    if (kept[b] == 0 && (touched || life.enters)) {
      builder->AddMemory(std::max(life.last, 0), true, MemoryKind::kActivations, tensor(b), -bytes);
    }
  }
}

}  // namespace plancast
