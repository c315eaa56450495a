// Programs: which node of a rank runs when.

#include <algorithm>

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast::astra {

// One node at a time on the processor, in kernels and in communication; receives
// wait in any number.
Simulation::Slot Simulation::SlotOf(const AstraNode& node) {
  if (node.on_cpu) return kCpu;
  if (node.kind == AstraNodeKind::kCompute) return kKernel;
  return node.kind == AstraNodeKind::kRecv ? kRecv : kComm;
}

void Simulation::Free(Rank& rank, int32_t node) {
  const AstraNode& what = rank.program->nodes[node];
  rank.ready[what.kind == AstraNodeKind::kNothing ? kRecv : SlotOf(what)].push(node);
}

void Simulation::IssueReady(int32_t index) {
  Rank& rank = ranks_[index];
  while (true) {
    int best = -1;
    for (int slot = 0; slot < kSlots; ++slot) {
      if (rank.taken[slot] || rank.ready[slot].empty()) continue;
      if (best < 0 || rank.ready[slot].top() < rank.ready[best].top()) best = slot;
    }
    if (best < 0) return;
    const int32_t node = rank.ready[best].top();
    rank.ready[best].pop();
    if (rank.program->nodes[node].kind == AstraNodeKind::kNothing) {
      Complete(rank, node);
      continue;
    }
    rank.taken[best] = best != kRecv;
    ++rank.in_flight;
    Issue(index, node);
  }
}

void Simulation::Issue(int32_t index, int32_t node_index) {
  const AstraNode& node = ranks_[index].program->nodes[node_index];
  const bool replay = system_.replay_only || (node.kind == AstraNodeKind::kCollective &&
                                              node.collective == AstraCollective::kReplay);
  if (node.kind == AstraNodeKind::kCompute || replay) return IssueKernel(index, node_index);
  if (node.kind == AstraNodeKind::kCollective) return StartCollective(index, node_index);
  const bool send = node.kind == AstraNodeKind::kSend;
  const int32_t box = FindBox(/*of_trace=*/true, node.tag, send ? index : node.peer,
                              send ? node.peer : index, node.bytes);
  const Party party{Party::Kind::kNode, index, node_index};
  if (send) return Send(box, party);
  Receive(box, party);
}

void Simulation::IssueKernel(int32_t index, int32_t node_index) {
  Rank& rank = ranks_[index];
  const AstraNode& node = rank.program->nodes[node_index];
  int64_t time = std::max<int64_t>(1, node.duration_us * 1000);  // nothing takes no time
  if (system_.roofline && !system_.replay_only && !node.on_cpu &&
      node.kind == AstraNodeKind::kCompute) {
    const double intensity = static_cast<double>(node.ops) / static_cast<double>(node.bytes);
    const double rate =
        std::min(system_.local_mem_gb_per_s * 1e9 * intensity, system_.peak_tflops * 1e12);
    time = node.bytes == 0 || node.ops == 0
               ? 0
               : static_cast<int64_t>(static_cast<double>(node.ops) / rate * 1e9);
  }
  if (node.kind == AstraNodeKind::kCompute && !node.on_cpu) rank.compute_ns += time;
  Remind(index, time, {Note::Kind::kNode, index, node_index});
}

void Simulation::Complete(Rank& rank, int32_t node) {
  --rank.left;
  const auto& begin = *rank.waiting_begin;
  for (int32_t w = begin[node]; w < begin[node + 1]; ++w) {
    const int32_t waiting = (*rank.waiting)[w];
    if (--rank.deps_left[waiting] == 0) Free(rank, waiting);
  }
}

void Simulation::NodeDone(int32_t index, int32_t node) {
  Rank& rank = ranks_[index];
  const Slot slot = SlotOf(rank.program->nodes[node]);
  rank.taken[slot] = false;
  --rank.in_flight;
  Complete(rank, node);
  IssueReady(index);
  CheckFinished(rank);
}

void Simulation::CheckFinished(Rank& rank) {
  if (rank.left == 0 && rank.in_flight == 0 && rank.finish_ns < 0) rank.finish_ns = events_.now();
}

}  // namespace plancast::astra
