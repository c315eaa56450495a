#include "planner/search/best_first.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

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

BestFirst::BestFirst(std::vector<std::pair<int64_t, double>> bounds, int64_t top,
                     const std::vector<double>& known)
    : order_(std::move(bounds)), top_(top) {
  std::stable_sort(order_.begin(), order_.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const double value : known) Found(value);
}

std::vector<int64_t> BestFirst::NextRound() {
  std::vector<int64_t> round;
  if (left() > 0) bound_ = order_[tried_].second;
  while (left() > 0 && static_cast<int64_t>(round.size()) < kRound && MayBeBest(tried_)) {
    round.push_back(order_[tried_++].first);
  }
  return round;
}

std::vector<int64_t> BestFirst::Ahead(int64_t most) const {
  std::vector<int64_t> plans;
  for (int64_t at = tried_; at < static_cast<int64_t>(order_.size()) && MayBeBest(at); ++at) {
    if (static_cast<int64_t>(plans.size()) >= most) break;
    plans.push_back(order_[at].first);
  }
  return plans;
}

void BestFirst::Found(double value) {
  best_.insert(std::upper_bound(best_.begin(), best_.end(), value), value);
  if (static_cast<int64_t>(best_.size()) > top_) best_.pop_back();
}

bool BestFirst::MayBeBest(int64_t at) const {
  return static_cast<int64_t>(best_.size()) < top_ || order_[at].second <= best_.back();
}

}  // namespace plancast
