#ifndef PLANCAST_COST_MODELS_CACHING_MODEL_H_
#define PLANCAST_COST_MODELS_CACHING_MODEL_H_

#include <array>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// Remembers the answers of another model by kernel and device name: devices of
// one name must be equal for as long as the cache lives. Thread-safe.
class CachingModel : public KernelCostModel {
 public:
  explicit CachingModel(std::shared_ptr<const KernelCostModel> model) : model_(std::move(model)) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;
  // The same without a copy. Valid as long as the cache; nullptr for nullopt.
  const KernelCost* Find(const KernelSpec& kernel, const DeviceType& device) const;
  // Answers kept.
  size_t size() const;

 private:
  struct Key {
    KernelSpec kernel;
    std::string device;
  };
  // Looks keys up without making one.
  struct KeyView {
    const KernelSpec& kernel;
    absl::string_view device;
    KeyView(const KernelSpec& k, absl::string_view d) : kernel(k), device(d) {}
    KeyView(const Key& key) : kernel(key.kernel), device(key.device) {}  // NOLINT
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const KeyView& key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const {
      return a.device == b.device && a.kernel == b.kernel;
    }
  };
  using Answers = absl::node_hash_map<Key, std::optional<KernelCost>, Hash, Equal>;
  struct Shard {
    // Of the standard library: ThreadSanitizer knows nothing of a mutex in an Abseil
    // that was built without it, and would call every use a race.
    mutable std::shared_mutex mutex;
    Answers answers;  // under mutex
  };

  std::shared_ptr<const KernelCostModel> model_;
  mutable std::array<Shard, 16> shards_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_CACHING_MODEL_H_
