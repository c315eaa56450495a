#include "executor/cluster/free_gpus.h"

#include <algorithm>

namespace plancast {

FreeGpus::FreeGpus(const Fabric& fabric)
    : fabric_(fabric), per_host_(fabric.spec().gpus_per_host), free_(fabric.num_gpus()) {
  user_of_.assign(free_, kNobody);
  free_of_host_.assign(fabric.spec().hosts, per_host_);
  for (size_t t = 0; t < fabric.spec().tiers.size(); ++t) {
    std::vector<int64_t>& free_of =
        free_of_node_.emplace_back(fabric.NumNodes(static_cast<int>(t)));
    for (int64_t h = 0; h < fabric.spec().hosts; ++h) {
      free_of[fabric.NodeOf(static_cast<int>(t), h)] += per_host_;
    }
  }
}

std::vector<int64_t> FreeGpus::Find(int64_t gpus, GpuPlacement how) const {
  if (gpus > free_) return {};
  return how == GpuPlacement::kSpread ? Spread(gpus) : Packed(gpus);
}

std::vector<int64_t> FreeGpus::Packed(int64_t gpus) const {
  const int64_t hosts = fabric_.spec().hosts;
  int64_t best = -1;
  for (int64_t h = 0; h < hosts; ++h) {
    if (free_of_host_[h] >= gpus && (best < 0 || free_of_host_[h] < free_of_host_[best])) best = h;
  }
  if (best >= 0) return From({best}, gpus);
  std::vector<int64_t> candidates;
  for (size_t t = 0; t < free_of_node_.size() && candidates.empty(); ++t) {
    const std::vector<int64_t>& free_of = free_of_node_[t];
    int64_t node = -1;
    for (int64_t n = 0; n < static_cast<int64_t>(free_of.size()); ++n) {
      if (free_of[n] >= gpus && (node < 0 || free_of[n] < free_of[node])) node = n;
    }
    if (node < 0) continue;
    for (int64_t h = 0; h < hosts; ++h) {
      if (fabric_.NodeOf(static_cast<int>(t), h) == node) candidates.push_back(h);
    }
  }
  if (candidates.empty()) {
    for (int64_t h = 0; h < hosts; ++h) candidates.push_back(h);
  }
  // Emptiest inner nodes first, so that few of them are crossed; then emptiest hosts.
  const auto room = [&](int64_t host) {
    std::vector<int64_t> key;
    for (size_t t = free_of_node_.size(); t-- > 0;) {
      const int32_t node = fabric_.NodeOf(static_cast<int>(t), host);
      key.push_back(-free_of_node_[t][node]);
      key.push_back(node);
    }
    key.push_back(-free_of_host_[host]);
    key.push_back(host);
    return key;
  };
  std::vector<std::pair<std::vector<int64_t>, int64_t>> order;
  for (int64_t h : candidates) {
    if (free_of_host_[h] > 0) order.emplace_back(room(h), h);
  }
  std::sort(order.begin(), order.end());
  std::vector<int64_t> sorted;
  for (const auto& [key, host] : order) sorted.push_back(host);
  return From(sorted, gpus);
}

std::vector<int64_t> FreeGpus::Spread(int64_t gpus) const {
  const int64_t hosts = fabric_.spec().hosts;
  const size_t leaves = free_of_node_.empty() ? 1 : free_of_node_[0].size();
  std::vector<std::vector<int64_t>> of_leaf(leaves);
  for (int64_t h = 0; h < hosts; ++h) {
    if (free_of_host_[h] > 0) {
      of_leaf[free_of_node_.empty() ? 0 : fabric_.NodeOf(0, h)].push_back(h);
    }
  }
  for (std::vector<int64_t>& of : of_leaf) {
    std::stable_sort(of.begin(), of.end(),
                     [&](int64_t a, int64_t b) { return free_of_host_[a] > free_of_host_[b]; });
  }
  // Of each turn the emptiest hosts first.
  std::vector<int64_t> order;
  for (size_t turn = 0; static_cast<int64_t>(order.size()) < hosts; ++turn) {
    std::vector<int64_t> row;
    for (const std::vector<int64_t>& of : of_leaf) {
      if (turn < of.size()) row.push_back(of[turn]);
    }
    if (row.empty()) break;
    std::stable_sort(row.begin(), row.end(),
                     [&](int64_t a, int64_t b) { return free_of_host_[a] > free_of_host_[b]; });
    order.insert(order.end(), row.begin(), row.end());
  }
  return From(order, gpus);
}

std::vector<int64_t> FreeGpus::From(const std::vector<int64_t>& hosts, int64_t gpus) const {
  std::vector<int64_t> found;
  for (int64_t host : hosts) {
    for (int64_t g = host * per_host_;
         g < (host + 1) * per_host_ && static_cast<int64_t>(found.size()) < gpus; ++g) {
      if (user_of_[g] == kNobody) found.push_back(g);
    }
  }
  if (static_cast<int64_t>(found.size()) < gpus) return {};
  std::sort(found.begin(), found.end());
  return found;
}

void FreeGpus::Take(absl::Span<const int64_t> gpus, int32_t user) {
  const int64_t by = user == kNobody ? 1 : -1;
  for (int64_t gpu : gpus) {
    user_of_[gpu] = user;
    const int64_t host = gpu / per_host_;
    free_of_host_[host] += by;
    for (size_t t = 0; t < free_of_node_.size(); ++t) {
      free_of_node_[t][fabric_.NodeOf(static_cast<int>(t), host)] += by;
    }
  }
  free_ += by * static_cast<int64_t>(gpus.size());
}

void FreeGpus::Release(absl::Span<const int64_t> gpus) { Take(gpus, kNobody); }

}  // namespace plancast
