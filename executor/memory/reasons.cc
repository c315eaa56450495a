#include "executor/memory/reasons.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace plancast {
namespace {

constexpr absl::string_view kBetween = "(between modules)";

// What becomes alive and dies by running part of a block once: copies of a kind of tensor, by its
// number and whether it is of what a pair does forward.
using Changes = std::map<std::pair<int32_t, bool>, int64_t>;

// A tensor that comes in parts and goes as one (gradients of a unit) has both among its
// entries: what is left of it becomes one entry.
std::vector<LiveTensor> JoinParts(std::vector<LiveTensor> live) {
  std::set<std::pair<std::string, MemoryKind>> in_parts;
  for (const LiveTensor& tensor : live) {
    if (tensor.copies < 0) in_parts.emplace(tensor.name, tensor.kind);
  }
  if (in_parts.empty()) return live;
  std::map<std::pair<std::string, MemoryKind>, LiveTensor> joined;
  std::vector<LiveTensor> result;
  for (LiveTensor& tensor : live) {
    const std::pair<std::string, MemoryKind> key(tensor.name, tensor.kind);
    if (in_parts.count(key) == 0) {
      result.push_back(std::move(tensor));
      continue;
    }
    LiveTensor& one = joined[key];
    const int64_t bytes = tensor.bytes();
    if (one.copies == 0) {
      one = std::move(tensor);
      one.copies = 1;
      one.bytes_each = 0;
    }
    one.bytes_each += bytes;
  }
  for (auto& [key, one] : joined) {
    if (one.bytes_each != 0) result.push_back(std::move(one));
  }
  return result;
}

class Ledger {
 public:
  explicit Ledger(const ExecutionGraph& graph) : graph_(graph), whole_(graph.blocks.size()) {}

  void Run(const Instance& instance, int64_t copies) {
    Changes& changes = whole_[instance.block];
    if (changes.empty()) {
      const Block& block = graph_.blocks[instance.block];
      changes = ChangesOf(block, block.memory.size());
      for (const PortMemory& port : block.gives) Move(block, port, -1, changes);
    }
    Apply(changes, instance, copies);
  }
  // The first `events` of a copy.
  void RunPart(const Instance& instance, int32_t events) {
    Apply(ChangesOf(graph_.blocks[instance.block], events), instance, 1);
  }

  std::vector<LiveTensor> Live() const {
    std::vector<LiveTensor> live;
    for (const auto& [key, number] : numbers_) {
      LiveTensor tensor;
      tensor.name = std::get<0>(key);
      tensor.kind = std::get<1>(key);
      tensor.bytes_each = std::get<2>(key);
      for (const auto& [micro_batch, copies] : alive_[number]) {
        if (copies == 0) continue;
        tensor.copies += copies;
        tensor.micro_batches.push_back(micro_batch);
      }
      if (tensor.copies != 0) live.push_back(std::move(tensor));
    }
    return JoinParts(std::move(live));
  }

 private:
  using Key = std::tuple<std::string, MemoryKind, int64_t>;  // name, kind, bytes of one

  int32_t NumberOf(absl::string_view name, MemoryKind kind, int64_t bytes) {
    const auto [it, inserted] =
        numbers_.try_emplace(Key(name, kind, bytes), static_cast<int32_t>(alive_.size()));
    if (inserted) alive_.emplace_back();
    return it->second;
  }

  // A tensor comes (+1) into the block's own names, or leaves them.
  void Move(const Block& block, const PortMemory& port, int64_t sign, Changes& changes) {
    const MemoryKind kind = MemoryKind::kActivations;
    changes[{NumberOf(block.tensors[port.tensor], kind, port.bytes), port.forward}] += sign;
    changes[{NumberOf(kBetween, kind, port.bytes), port.forward}] -= sign;
  }

  Changes ChangesOf(const Block& block, size_t events) {
    Changes changes;
    for (const PortMemory& port : block.takes) Move(block, port, 1, changes);
    for (size_t e = 0; e < events; ++e) {
      const MemoryEvent& event = block.memory[e];
      const int64_t bytes = event.delta < 0 ? -event.delta : event.delta;
      const int32_t number = NumberOf(block.tensors[event.tensor], event.kind, bytes);
      changes[{number, block.IsPairForward(event.task)}] += event.delta < 0 ? -1 : 1;
    }
    return changes;
  }

  void Apply(const Changes& changes, const Instance& instance, int64_t copies) {
    for (const auto& [of, change] : changes) {
      alive_[of.first][instance.MicroBatchOf(of.second)] += change * copies;
    }
  }

  const ExecutionGraph& graph_;
  std::vector<Changes> whole_;  // per block, once it has run
  absl::flat_hash_map<Key, int32_t> numbers_;
  std::vector<std::map<int32_t, int64_t>> alive_;  // per number: micro-batch -> copies
};

}  // namespace

PeakReasons ExplainPeak(const ExecutionGraph& graph, int32_t program) {
  const Program& replayed = graph.programs[program];
  const Peak peak = FindPeak(graph, program, ProfileBlocks(graph, AllocatorParams()));
  Ledger ledger(graph);
  for (int32_t i = 0; i < peak.place.instance; ++i) {
    ledger.Run(replayed.instances[i], replayed.instances[i].layer_count);
  }
  PeakReasons reasons;
  reasons.allocated = peak.allocated;
  if (peak.place.instance >= 0) {
    const Instance& instance = replayed.instances[peak.place.instance];
    const Block& block = graph.blocks[instance.block];
    ledger.Run(instance, peak.place.layer);
    ledger.RunPart(instance, peak.place.events);
    reasons.block = block.name;
    reasons.task = block.label[block.memory[peak.place.events - 1].task];
    const bool forward = block.IsPairForward(block.memory[peak.place.events - 1].task);
    reasons.layer = LayerOf(block, instance, peak.place.layer, forward);
    reasons.micro_batch = instance.MicroBatchOf(forward);
  }
  reasons.tensors = ledger.Live();
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    if (replayed.static_bytes[kind] == 0) continue;
    LiveTensor tensor;
    tensor.kind = static_cast<MemoryKind>(kind);
    tensor.name = std::string(kMemoryKindNames[tensor.kind]);
    tensor.bytes_each = replayed.static_bytes[kind];
    tensor.copies = 1;
    reasons.tensors.push_back(std::move(tensor));
  }
  std::sort(reasons.tensors.begin(), reasons.tensors.end(),
            [](const LiveTensor& a, const LiveTensor& b) {
              return std::make_tuple(-a.bytes(), a.name, a.bytes_each, a.kind) <
                     std::make_tuple(-b.bytes(), b.name, b.bytes_each, b.kind);
            });
  return reasons;
}

}  // namespace plancast
