#include "cost_models/caching_model.h"

#include "absl/hash/hash.h"

namespace plancast {

size_t CachingModel::Hash::operator()(const KeyView& key) const {
  return absl::HashOf(key.kernel, key.device);
}

const KernelCost* CachingModel::Find(const KernelSpec& kernel, const DeviceType& device) const {
  KeyView view(kernel, device.name);
  size_t hash = Hash()(view);
  Shard& shard = shards_[hash % shards_.size()];
  const std::optional<KernelCost>* answer = nullptr;
  {
    absl::ReaderMutexLock lock(&shard.mutex);
    auto found = shard.answers.find(view, hash);
    if (found != shard.answers.end()) answer = &found->second;
  }
  if (answer == nullptr) {
    // Outside the lock: the same kernel may be priced twice, to the same answer.
    std::optional<KernelCost> cost = model_->Estimate(kernel, device);
    absl::MutexLock lock(&shard.mutex);
    answer = &shard.answers.try_emplace(Key{kernel, device.name}, std::move(cost)).first->second;
  }
  return answer->has_value() ? &**answer : nullptr;
}

std::optional<KernelCost> CachingModel::Estimate(const KernelSpec& kernel,
                                                 const DeviceType& device) const {
  const KernelCost* cost = Find(kernel, device);
  if (cost == nullptr) return std::nullopt;
  return *cost;
}

size_t CachingModel::size() const {
  size_t total = 0;
  for (const Shard& shard : shards_) {
    absl::ReaderMutexLock lock(&shard.mutex);
    total += shard.answers.size();
  }
  return total;
}

}  // namespace plancast
