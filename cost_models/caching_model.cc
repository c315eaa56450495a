#include "cost_models/caching_model.h"

#include <cstring>
#include <mutex>

namespace plancast {
namespace {

uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

// Of the fields that tell kernels of one model apart; hashing all of them, the
// strings foremost, would take longer than the rest of a lookup.
size_t CachingModel::Hash::operator()(const KeyView& key) const {
  const KernelSpec& k = key.kernel;
  uint64_t hash = key.device.size();
  auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  mix(static_cast<uint64_t>(k.family) | static_cast<uint64_t>(k.dtype) << 8 |
      static_cast<uint64_t>(k.pass) << 16 | static_cast<uint64_t>(k.accumulate_fp32) << 24 |
      static_cast<uint64_t>(k.causal) << 25 | static_cast<uint64_t>(k.backward) << 26 |
      static_cast<uint64_t>(k.label.size()) << 32);
  mix(static_cast<uint64_t>(k.m) << 32 ^ static_cast<uint64_t>(k.n));
  mix(static_cast<uint64_t>(k.k) << 32 ^ static_cast<uint64_t>(k.batch));
  mix(static_cast<uint64_t>(k.q_len) << 32 ^ static_cast<uint64_t>(k.kv_len));
  mix(static_cast<uint64_t>(k.heads) << 32 ^ static_cast<uint64_t>(k.head_dim));
  mix(Bits(k.read_bytes));
  mix(Bits(k.write_bytes));
  mix(key.device.empty() ? 0 : static_cast<uint64_t>(key.device.back()));
  return hash;
}

const KernelCost* CachingModel::Find(const KernelSpec& kernel, const DeviceType& device) const {
  KeyView view(kernel, device.name);
  size_t hash = Hash()(view);
  Shard& shard = shards_[hash % shards_.size()];
  const std::optional<KernelCost>* answer = nullptr;
  {
    std::shared_lock lock(shard.mutex);
    auto found = shard.answers.find(view, hash);
    if (found != shard.answers.end()) answer = &found->second;
  }
  if (answer == nullptr) {
    // Outside the lock: the same kernel may be priced twice, to the same answer.
    std::optional<KernelCost> cost = model_->Estimate(kernel, device);
    std::unique_lock lock(shard.mutex);
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
    std::shared_lock lock(shard.mutex);
    total += shard.answers.size();
  }
  return total;
}

}  // namespace plancast
