#include "executor/cluster/competition.h"

#include <algorithm>
#include <map>
#include <set>

namespace plancast {

std::vector<std::vector<int32_t>> Competition::Sets(std::vector<int32_t> jobs) {
  std::sort(jobs.begin(), jobs.end());
  ++stamp_;
  for (int32_t j : jobs) {
    const Loop& loop = loop_of_(j);
    for (const Fluid::Use& use : loop.uses) {
      OnLink& link = links_[use.resource];
      if (link.stamp != stamp_) link = {stamp_, -1, 0};
      link.demand += int128{use.coefficient_q20} * loop.AloneQ16();
    }
  }
  std::map<int32_t, int32_t> parent;
  for (int32_t j : jobs) parent[j] = j;
  const auto root = [&](int32_t j) {
    while (parent[j] != j) j = parent[j] = parent[parent[j]];
    return j;
  };
  for (int32_t j : jobs) {
    for (const Fluid::Use& use : loop_of_(j).uses) {
      if (!IsTooNarrow(use.resource)) continue;
      OnLink& link = links_[use.resource];
      if (link.first < 0) {
        link.first = j;
        continue;
      }
      const int32_t a = root(link.first), b = root(j);
      if (a != b) parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<int32_t, std::vector<int32_t>> sets;
  for (int32_t j : jobs) sets[root(j)].push_back(j);
  std::vector<std::vector<int32_t>> found;
  for (auto& [first, members] : sets) found.push_back(std::move(members));
  return found;
}

std::vector<std::pair<int32_t, int32_t>> Competition::Pairs(absl::Span<const int32_t> order) const {
  std::map<int32_t, std::vector<int32_t>> users;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Fluid::Use& use : loop_of_(order[i]).uses) {
      if (IsTooNarrow(use.resource)) users[use.resource].push_back(static_cast<int32_t>(i));
    }
  }
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const auto& [link, of] : users) {
    for (size_t a = 0; a < of.size(); ++a) {
      for (size_t b = a + 1; b < of.size(); ++b) pairs.emplace(of[a], of[b]);
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace plancast
