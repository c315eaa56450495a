#include "graph/execution/kept_tensors.h"

namespace plancast {

std::vector<int64_t> KeptBytes(const Block& forward) {
  std::vector<int64_t> kept(forward.tensors.size());
  for (const PortMemory& take : forward.takes) kept[take.tensor] += take.bytes;
  for (const PortMemory& give : forward.gives) kept[give.tensor] -= give.bytes;
  for (const MemoryEvent& event : forward.memory) {
    if (event.kind == MemoryKind::kActivations) kept[event.tensor] += event.delta;
  }
  return kept;
}

std::vector<KeptTensor> KeptTensors(const Block& forward, int64_t least_bytes) {
  const std::vector<int64_t> kept = KeptBytes(forward);
  std::vector<KeptTensor> tensors;
  for (size_t t = 0; t < kept.size(); ++t) {
    if (kept[t] > 0 && kept[t] >= least_bytes) tensors.push_back({forward.tensors[t], kept[t]});
  }
  return tensors;
}

int64_t TotalBytes(const std::vector<KeptTensor>& tensors) {
  int64_t total = 0;
  for (const KeptTensor& tensor : tensors) total += tensor.bytes;
  return total;
}

}  // namespace plancast
