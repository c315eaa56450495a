#include "collectives/synthesis/max_flow.h"

#include <algorithm>
#include <limits>

namespace plancast {

void MaxFlow::AddArc(int32_t from, int32_t to, int64_t capacity) {
  arcs_of_[from].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({to, capacity});
  arcs_of_[to].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

bool MaxFlow::Rank(int32_t source, int32_t sink) {
  rank_.assign(arcs_of_.size(), -1);
  rank_[source] = 0;
  std::vector<int32_t> queue = {source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int32_t index : arcs_of_[queue[i]]) {
      const Arc& arc = arcs_[index];
      if (arc.left == 0 || rank_[arc.to] >= 0) continue;
      rank_[arc.to] = rank_[queue[i]] + 1;
      queue.push_back(arc.to);
    }
  }
  return rank_[sink] >= 0;
}

int64_t MaxFlow::Push(int32_t node, int32_t sink, int64_t most) {
  if (node == sink) return most;
  for (size_t& i = next_[node]; i < arcs_of_[node].size(); ++i) {
    const int32_t index = arcs_of_[node][i];
    const Arc arc = arcs_[index];
    if (arc.left == 0 || rank_[arc.to] != rank_[node] + 1) continue;
    const int64_t pushed = Push(arc.to, sink, std::min(most, arc.left));
    if (pushed == 0) continue;
    arcs_[index].left -= pushed;
    arcs_[index ^ 1].left += pushed;
    return pushed;
  }
  return 0;
}

int64_t MaxFlow::Solve(int32_t source, int32_t sink) {
  int64_t flow = 0;
  while (Rank(source, sink)) {
    next_.assign(arcs_of_.size(), 0);
    while (const int64_t pushed = Push(source, sink, std::numeric_limits<int64_t>::max())) {
      flow += pushed;
    }
  }
  return flow;
}

}  // namespace plancast
