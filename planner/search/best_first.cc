#include "planner/search/best_first.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include "base/check.h"

namespace plancast {

std::vector<int64_t> AlikeTogether(const std::vector<ShortForm>& plans) {
  const auto key = [&](int64_t i) {
    const ShortForm& plan = plans[i];
    // At one global batch, dp * mb says how many micro-batches there are.
    const int64_t samples = plan.dp.value_or(1) * plan.mb.value_or(1);
    const int64_t shards = plan.dp.value_or(1) > 1 ? plan.zero.value_or(0) : 0;
    return std::make_tuple(plan.pp.value_or(1), plan.vpp.value_or(1), samples, shards);
  };
  std::vector<int64_t> order(plans.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return key(a) < key(b); });
  return order;
}

std::vector<int64_t> BodiesTogether(const std::vector<ShortForm>& plans) {
  std::vector<std::pair<std::string, int64_t>> keys;
  keys.reserve(plans.size());
  for (ShortForm plan : plans) {
    // What does not change a layer on its ranks.
    plan.dp = plan.pp = plan.vpp = plan.zero = plan.hsdp = std::nullopt;
    plan.layout.clear();
    keys.emplace_back(PrintShortForm(plan), static_cast<int64_t>(keys.size()));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int64_t> order;
  order.reserve(keys.size());
  for (const auto& [key, plan] : keys) order.push_back(plan);
  return order;
}

std::vector<int64_t> WithoutRecompute(const std::vector<ShortForm>& plans) {
  std::unordered_map<std::string, int64_t> bare;  // by the rest of the plan
  std::vector<std::string> rest;
  rest.reserve(plans.size());
  for (ShortForm plan : plans) {
    const bool none = plan.recompute.value_or("none") == "none";
    plan.ClearRecompute();
    rest.push_back(PrintShortForm(plan));
    if (none) bare.emplace(rest.back(), static_cast<int64_t>(rest.size()) - 1);
  }
  std::vector<int64_t> of;
  of.reserve(plans.size());
  for (const std::string& text : rest) {
    const auto own = static_cast<int64_t>(of.size());
    const auto it = bare.find(text);
    // What is recomputed need not come back from the host.
    const bool known = it != bare.end() && plans[own].offload.empty();
    of.push_back(known ? it->second : own);
  }
  return of;
}

BestFirst::BestFirst(const std::vector<Bound>& bounds, int64_t top,
                     const std::vector<double>& known)
    : top_(top) {
  for (const Bound& bound : bounds) {
    open_.emplace(bound.least, bound.plan);
    if (!bound.own) asleep_.emplace(bound.plan, bound.least);
  }
  for (const double value : known) Found(value);
}

std::vector<int64_t> BestFirst::ToAsk() const {
  std::vector<int64_t> plans;
  int64_t awake = 0;
  for (auto it = open_.begin(); it != open_.end() && awake < kRound && MayBeBest(it->first); ++it) {
    if (asleep_.count(it->second) > 0) {
      plans.push_back(it->second);
    } else {
      ++awake;
    }
  }
  return plans;
}

void BestFirst::Asked(int64_t plan, std::optional<double> least) {
  const auto it = asleep_.find(plan);
  PLANCAST_CHECK(it != asleep_.end()) << plan;
  open_.erase({it->second, plan});
  // Never below what was known: plans that went before it would else have come after it.
  if (least) open_.emplace(std::max(*least, it->second), plan);
  asleep_.erase(it);
}

std::vector<int64_t> BestFirst::NextRound() {
  std::vector<int64_t> round;
  if (!open_.empty()) bound_ = open_.begin()->first;
  while (!open_.empty() && static_cast<int64_t>(round.size()) < kRound &&
         MayBeBest(open_.begin()->first)) {
    const int64_t plan = open_.begin()->second;
    PLANCAST_CHECK(asleep_.count(plan) == 0) << plan;
    round.push_back(plan);
    open_.erase(open_.begin());
  }
  return round;
}

std::vector<int64_t> BestFirst::Ahead(int64_t most) const {
  std::vector<int64_t> plans;
  for (auto it = open_.begin(); it != open_.end() && MayBeBest(it->first); ++it) {
    if (static_cast<int64_t>(plans.size()) >= most) break;
    if (asleep_.count(it->second) == 0) plans.push_back(it->second);
  }
  return plans;
}

void BestFirst::Found(double value) {
  best_.insert(std::upper_bound(best_.begin(), best_.end(), value), value);
  if (static_cast<int64_t>(best_.size()) > top_) best_.pop_back();
}

bool BestFirst::MayBeBest(double least) const {
  return static_cast<int64_t>(best_.size()) < top_ || least <= best_.back();
}

}  // namespace plancast
