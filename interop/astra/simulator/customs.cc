// Collectives that are given as traces of sends, receives and reductions of each
// member. All nodes that are free run at once.

#include <algorithm>

#include "base/check.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast::astra {

const AstraProgram& Simulation::CustomProgram(const Chunk& chunk) const {
  return system_.custom[circles_.at(chunk.now().circle).PlaceOf(chunk.rank)];
}

void Simulation::BeginCustom(int32_t index) {
  Chunk& chunk = chunks_[index];
  const AstraProgram& program = CustomProgram(chunk);
  const auto n = static_cast<int32_t>(program.nodes.size());
  chunk.custom_nodes = n;
  chunk.custom_left.resize(n);
  for (int32_t i = 0; i < n; ++i) {
    chunk.custom_left[i] = program.dep_begin[i + 1] - program.dep_begin[i];
  }
  for (int32_t i = 0; i < n; ++i) {
    if (program.dep_begin[i + 1] == program.dep_begin[i]) IssueCustom(index, i);
  }
}

void Simulation::IssueCustom(int32_t index, int32_t node_index) {
  const Chunk& chunk = chunks_[index];
  const AstraNode& node = CustomProgram(chunk).nodes[node_index];
  if (node.kind != AstraNodeKind::kSend && node.kind != AstraNodeKind::kRecv) {
    return Remind(chunk.rank, std::max<int64_t>(1, node.duration_us * 1000),
                  {Note::Kind::kCustom, index, node_index});
  }
  const int64_t peer = circles_.at(chunk.now().circle).At(chunk.rank, node.peer);
  const bool send = node.kind == AstraNodeKind::kSend;
  const int32_t box = FindBox(/*of_trace=*/true, node.tag, send ? chunk.rank : peer,
                              send ? peer : chunk.rank, node.bytes);
  const Party party{Party::Kind::kCustom, index, node_index};
  if (send) return Send(box, party);
  Receive(box, party);
}

void Simulation::CustomDone(int32_t index, int32_t node) {
  Chunk& chunk = chunks_[index];
  const auto place = circles_.at(chunk.now().circle).PlaceOf(chunk.rank);
  const auto& begin = custom_begin_[place];
  // Those that become free, by id.
  std::vector<int32_t> free;
  for (int32_t w = begin[node]; w < begin[node + 1]; ++w) {
    const int32_t waiting = custom_waiting_[place][w];
    if (--chunk.custom_left[waiting] == 0) free.push_back(waiting);
  }
  std::sort(free.begin(), free.end());
  for (const int32_t next : free) IssueCustom(index, next);
  if (--chunk.custom_nodes == 0) Advance(index);
}

}  // namespace plancast::astra
