#include "interop/astra/simulator/phases.h"

#include <algorithm>

#include "base/check.h"

namespace plancast::astra {
namespace {

using Kind = AstraAlgorithm::Kind;

int64_t FirstMessage(const Phase& phase, int64_t n) {
  if (phase.algorithm.kind == Kind::kDoubleBinaryTree || phase.kind == AstraCollective::kAllGather)
    return phase.bytes;
  return phase.bytes / (phase.algorithm.kind == Kind::kHalvingDoubling ? 2 : n);
}

}  // namespace

Circle::Circle(const AstraGroup& group)
    : size_(static_cast<int64_t>(group.ranks.size())), members_(group.ranks) {
  place_of_.assign(*std::max_element(members_.begin(), members_.end()) + 1, -1);
  for (int64_t i = 0; i < size_; ++i) place_of_[members_[i]] = static_cast<int32_t>(i);
}

int64_t Circle::PlaceOf(int64_t rank) const {
  return local() ? place_of_[rank] : rank / stride_ % size_;
}

int64_t Circle::At(int64_t any_member, int64_t place) const {
  if (local()) return members_[place];
  return any_member + (place - PlaceOf(any_member)) * stride_;
}

int64_t Circle::After(int64_t rank, int64_t steps) const {
  const int64_t place = (PlaceOf(rank) + steps) % size_;
  return At(rank, place < 0 ? place + size_ : place);
}

int64_t BytesAfter(const Phase& phase, int64_t circle_size) {
  if (phase.algorithm.kind == Kind::kDoubleBinaryTree) return phase.bytes;
  switch (phase.kind) {
    case AstraCollective::kAllGather:
      return phase.bytes * circle_size;
    case AstraCollective::kReduceScatter:
      return phase.bytes / circle_size;
    default:
      return phase.bytes;
  }
}

Circles::Circles(const AstraNetwork& network, const AstraSystem& system,
                 const std::vector<AstraGroup>& groups)
    : dims_(static_cast<int32_t>(network.dims.size())),
      queues_(network.queues_per_dim),
      local_bw_aware_(system.local_bw_aware) {
  int64_t stride = 1;
  for (const AstraNetwork::Dim& dim : network.dims) {
    all_.emplace_back(dim.npus, stride);
    stride *= dim.npus;
  }
  const auto whole_cluster = static_cast<int32_t>(all_.size());
  all_.emplace_back(network.npus(), 1);
  for (int c = 0; c < 4; ++c) {
    const auto& algorithms = system.AlgorithmsOf(static_cast<AstraCollective>(c));
    for (int32_t d = 0; d < static_cast<int32_t>(algorithms.size()); ++d) {
      world_[c].algorithms.push_back(algorithms[d]);
      world_[c].circles.push_back(algorithms[d].one ? whole_cluster : d);
      if (algorithms[d].one) break;
    }
  }
  for (const AstraGroup& group : groups) {
    whole_.push_back(group.ranks.size() == static_cast<size_t>(network.npus()));
    const auto circle = static_cast<int32_t>(all_.size());
    all_.emplace_back(group);
    for (int c = 0; c < 4; ++c) {
      const auto& algorithms = system.AlgorithmsOf(static_cast<AstraCollective>(c));
      const bool ring = algorithms.size() != 1;  // several dimensions lose their meaning
      groups_.push_back(whole_.back() ? world_[c]
                                      : Route{{circle}, {ring ? AstraAlgorithm{} : algorithms[0]}});
    }
  }
}

const Route& Circles::RouteOf(AstraCollective collective, int32_t group) const {
  const int c = static_cast<int>(collective);
  return group < 0 ? world_[c] : groups_[group * 4 + c];
}

Turns Circles::NewTurns() const {
  Turns turns;
  turns.queues.assign(dims_, {0, 0, queues_ / 2});
  turns.trees.assign(4 * dims_, 0);
  return turns;
}

Phase Circles::Cross(AstraCollective kind, const Route& route, int32_t dim, int64_t bytes,
                     Half half, int32_t trees_of, Turns& turns) const {
  Phase phase;
  phase.kind = kind;
  phase.algorithm = route.algorithms[dim];
  phase.circle = route.circles[dim];
  phase.bytes = bytes;
  phase.message = FirstMessage(phase, all_[phase.circle].size());
  Turns::Queues& queues = turns.queues[dim];
  int32_t queue = 0;
  switch (half) {
    case Half::kAny:
      queue = queues.next;
      phase.backwards = queues_ > 1 && queue >= queues_ / 2;
      queues.next = (queue + 1) % queues_;
      break;
    case Half::kFirst:
      queue = queues.first_half;
      queues.first_half = queue + 1 >= queues_ / 2 ? 0 : queue + 1;
      break;
    case Half::kSecond:
      queue = queues.second_half;
      phase.backwards = true;
      queues.second_half = queue + 1 == queues_ ? queues_ / 2 : queue + 1;
      break;
  }
  phase.queue = dim * queues_ + queue;
  if (phase.algorithm.kind == Kind::kDoubleBinaryTree) {
    phase.min_root = turns.trees[trees_of * dims_ + dim]++ % 2 == 1;
  }
  return phase;
}

std::vector<Phase> Circles::PhasesOf(AstraCollective collective, int32_t group, int64_t bytes,
                                     const std::vector<bool>* involved, Turns& turns) const {
  const Route& route = RouteOf(collective, group);
  const bool all_dims = involved == nullptr || group >= 0;
  std::vector<int32_t> dims;
  for (int32_t d = 0; d < static_cast<int32_t>(route.circles.size()); ++d) {
    const bool asked = all_dims || (d < static_cast<int32_t>(involved->size()) && (*involved)[d]);
    if (asked && all_[route.circles[d]].size() > 1) dims.push_back(d);
  }
  std::vector<Phase> phases;
  const int32_t trees_of = static_cast<int32_t>(collective);
  const auto cross = [&](AstraCollective kind, int32_t dim, Half half) {
    phases.push_back(Cross(kind, route, dim, bytes, half, trees_of, turns));
    bytes = BytesAfter(phases.back(), all_[phases.back().circle].size());
  };
  if (dims.empty()) return phases;
  if (collective != AstraCollective::kAllReduce || !local_bw_aware_) {
    if (collective == AstraCollective::kAllGather) std::reverse(dims.begin(), dims.end());
    for (const int32_t dim : dims) cross(collective, dim, Half::kAny);
    return phases;
  }
  // Down through the dimensions, an all-reduce in the last, and back up, in
  // queues of its own, since both directions would wait for each other in one.
  const int32_t last = dims.back();
  dims.pop_back();
  for (const int32_t dim : dims) cross(AstraCollective::kReduceScatter, dim, Half::kFirst);
  cross(AstraCollective::kAllReduce, last, Half::kFirst);
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    cross(AstraCollective::kAllGather, *dim, Half::kSecond);
  }
  return phases;
}

}  // namespace plancast::astra
