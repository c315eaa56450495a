#include "executor/sharing/level_tree.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Sets of resources that are connected so far.
class DisjointSets {
 public:
  explicit DisjointSets(int32_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int32_t Find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Unite(int32_t a, int32_t b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace

LevelTree::LevelTree(const ActivityKinds& kinds, const std::vector<Level>& levels,
                     const std::vector<bool>& contended) {
  Connect(kinds, levels, contended);
  Number();
  SortKinds(kinds.size());
  FindCrossed(kinds);
}

// Level by level, innermost first.
void LevelTree::Connect(const ActivityKinds& kinds, const std::vector<Level>& levels,
                        const std::vector<bool>& contended) {
  domain_of_resource_.assign(kinds.num_resources(), -1);
  home_of_kind_.assign(kinds.size(), -1);
  // The contended resources of kinds, and the kinds of each level.
  std::vector<std::vector<int32_t>> kinds_at(static_cast<size_t>(Level::kCluster) + 1);
  for (int32_t k = 0; k < kinds.size(); ++k) {
    int level = -1;
    for (const ActivityKinds::Use& use : kinds.UsesOf(k)) {
      if (contended[use.resource]) level = std::max(level, static_cast<int>(levels[use.resource]));
    }
    if (level >= 0) kinds_at[level].push_back(k);
  }
  DisjointSets sets(kinds.num_resources());
  std::vector<int32_t> some_resource;  // per domain
  std::vector<int32_t> outermost;      // domains without one around them yet
  std::vector<int32_t> domain_of_set(kinds.num_resources(), -1);  // new at this level
  for (size_t level = 0; level < kinds_at.size(); ++level) {
    for (int32_t k : kinds_at[level]) {
      int32_t first = -1;
      for (const ActivityKinds::Use& use : kinds.UsesOf(k)) {
        if (!contended[use.resource]) continue;
        if (first >= 0) sets.Unite(first, use.resource);
        first = use.resource;
      }
    }
    std::fill(domain_of_set.begin(), domain_of_set.end(), -1);
    const auto first_new = static_cast<int32_t>(domains_.size());
    for (int32_t k : kinds_at[level]) {
      for (const ActivityKinds::Use& use : kinds.UsesOf(k)) {
        if (!contended[use.resource]) continue;
        int32_t& domain = domain_of_set[sets.Find(use.resource)];
        if (domain < 0) {
          domain = static_cast<int32_t>(domains_.size());
          domains_.emplace_back();
          domains_.back().level = static_cast<Level>(level);
          some_resource.push_back(use.resource);
        }
        if (domain_of_resource_[use.resource] < 0) domain_of_resource_[use.resource] = domain;
        home_of_kind_[k] = domain;
      }
    }
    size_t kept = 0;
    for (int32_t inner : outermost) {
      domains_[inner].parent = domain_of_set[sets.Find(some_resource[inner])];
      if (domains_[inner].parent < 0) outermost[kept++] = inner;
    }
    outermost.resize(kept);
    for (auto d = first_new; d < static_cast<int32_t>(domains_.size()); ++d) outermost.push_back(d);
  }
  if (domains_.empty()) domains_.emplace_back();
}

// Domains were found innermost first; numbers by depth-first order.
void LevelTree::Number() {
  const auto n = static_cast<int32_t>(domains_.size());
  std::vector<int32_t> size(n, 1), number(n), next_inside(n);
  for (int32_t d = 0; d < n; ++d) {
    if (domains_[d].parent >= 0) size[domains_[d].parent] += size[d];
  }
  int32_t next = 0;
  for (int32_t d = n - 1; d >= 0; --d) {
    int32_t& place = domains_[d].parent < 0 ? next : next_inside[domains_[d].parent];
    number[d] = place;
    place += size[d];
    next_inside[d] = number[d] + 1;
  }
  std::vector<Domain> numbered(n);
  for (int32_t d = 0; d < n; ++d) {
    Domain& domain = numbered[number[d]];
    domain.level = domains_[d].level;
    domain.parent = domains_[d].parent < 0 ? -1 : number[domains_[d].parent];
    domain.end = number[d] + size[d];
  }
  domains_ = std::move(numbered);
  for (int32_t& domain : domain_of_resource_) domain = domain < 0 ? -1 : number[domain];
  for (int32_t& domain : home_of_kind_) domain = domain < 0 ? 0 : number[domain];
}

void LevelTree::SortKinds(int32_t num_kinds) {
  std::vector<int32_t> begin(domains_.size() + 1);
  for (int32_t home : home_of_kind_) ++begin[home + 1];
  for (size_t d = 0; d < domains_.size(); ++d) begin[d + 1] += begin[d];
  for (size_t d = 0; d < domains_.size(); ++d) {
    domains_[d].kind_begin = begin[d];
    domains_[d].kind_end = begin[domains_[d].end];
  }
  kinds_.resize(num_kinds);
  place_of_kind_.resize(num_kinds);
  for (int32_t k = 0; k < num_kinds; ++k) {
    place_of_kind_[k] = begin[home_of_kind_[k]]++;
    kinds_[place_of_kind_[k]] = k;
  }
}

void LevelTree::FindCrossed(const ActivityKinds& kinds) {
  std::vector<int32_t> crossed_by(domains_.size(), -1);  // the last kind that does
  for (int32_t k = 0; k < kinds.size(); ++k) {
    crossed_begin_.push_back(static_cast<int32_t>(crossed_.size()));
    for (const ActivityKinds::Use& use : kinds.UsesOf(k)) {
      int32_t d = domain_of_resource_[use.resource];
      for (; d >= 0 && d != home_of_kind_[k] && crossed_by[d] != k; d = domains_[d].parent) {
        crossed_by[d] = k;
        crossed_.push_back(d);
      }
    }
  }
  crossed_begin_.push_back(static_cast<int32_t>(crossed_.size()));
}

std::string LevelTree::DebugString() const {
  std::string text;
  for (size_t d = 0; d < domains_.size(); ++d) {
    int depth = 0;
    for (int32_t up = domains_[d].parent; up >= 0; up = domains_[up].parent) ++depth;
    absl::StrAppend(&text, std::string(2 * depth, ' '), kLevelNames[domains_[d].level], ":");
    for (size_t r = 0; r < domain_of_resource_.size(); ++r) {
      if (domain_of_resource_[r] == static_cast<int32_t>(d)) absl::StrAppend(&text, " r", r);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace plancast
