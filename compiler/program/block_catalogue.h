#ifndef PLANCAST_COMPILER_PROGRAM_BLOCK_CATALOGUE_H_
#define PLANCAST_COMPILER_PROGRAM_BLOCK_CATALOGUE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// What tells the blocks of one plan apart: what a block is for, and numbers whose
// meaning is up to whoever asks for it.
struct BlockKey {
  enum Kind : uint8_t {
    kForward,
    kBackward,
    kWeights,
    kCrossing,
    kZeroGradients,
    kReduction,
    kGather,
    kPartialSum,
    kTied,
    kOptimizer,
    kNorm,           // from stage to stage
    kCopyOutBeside,  // layers with copies to and from the host alongside them
    kCopyInBeside,
    kCopyOut,
    kCopyIn,
    kKeptParts,  // layers that keep parts of what they have in common with other ranks
    kPark,       // what waits for its backward pass on another stage's devices
    kGradientsToHost,
    kFreshGradients,  // backward blocks that make gradients, or add to them
    kAddedGradients,
    kPair  // of a forward and a backward block
  };
  Kind kind = kForward;
  int64_t first = 0, second = 0;

  friend bool operator==(const BlockKey& a, const BlockKey& b) {
    return a.kind == b.kind && a.first == b.first && a.second == b.second;
  }
  template <typename H>
  friend H AbslHashValue(H h, const BlockKey& key) {
    return H::combine(std::move(h), key.kind, key.first, key.second);
  }
};

// Blocks outside of bodies that plans have in common: of plans with one mesh and one way
// to reduce gradients and to update. Of what is not in their keys hang times only.
class SharedBlocks {
 public:
  template <typename Make>
  const BlockTemplate& Of(const BlockKey& key, Make&& make) {
    return Of(&by_key_[key], std::forward<Make>(make));
  }
  template <typename Make>
  const BlockTemplate& Of(const std::string& text, Make&& make) {
    return Of(&by_text_[text], std::forward<Make>(make));
  }
  static bool Shares(BlockKey::Kind kind) {
    return kind == BlockKey::kZeroGradients || kind == BlockKey::kReduction ||
           kind == BlockKey::kGather || kind == BlockKey::kPartialSum || kind == BlockKey::kTied ||
           kind == BlockKey::kOptimizer || kind == BlockKey::kGradientsToHost;
  }

 private:
  template <typename Make>
  const BlockTemplate& Of(std::unique_ptr<const BlockTemplate>* known, Make&& make) {
    if (*known == nullptr) *known = std::make_unique<const BlockTemplate>(make());
    return **known;
  }

  absl::flat_hash_map<BlockKey, std::unique_ptr<const BlockTemplate>> by_key_;
  absl::flat_hash_map<std::string, std::unique_ptr<const BlockTemplate>> by_text_;
};

// The blocks of one plan before they join its graph, numbered as they are first
// asked for.
class BlockCatalogue {
 public:
  // Of another plan. What `shared` shares is taken from there, if that is not null; it must
  // outlive its use.
  void Begin(SharedBlocks* shared) {
    Clear();
    shared_ = shared;
  }
  // The block under `key`, made by `make()` if it is new. A reference that `make`
  // returns must outlive the catalogue.
  template <typename Make>
  int32_t Number(const BlockKey& key, Make&& make) {
    const auto [it, inserted] = numbers_.try_emplace(key, 0);
    if (!inserted) return it->second;
    if constexpr (!std::is_lvalue_reference_v<decltype(make())>) {
      if (shared_ != nullptr && SharedBlocks::Shares(key.kind)) {
        return it->second = Add(shared_->Of(key, std::forward<Make>(make)));
      }
    }
    return it->second = Add(std::forward<Make>(make));
  }
  // Likewise by a text that says all of it, where several keys stand for one block.
  template <typename Make>
  int32_t NumberOfText(const std::string& text, Make&& make) {
    const auto [it, inserted] = texts_.try_emplace(text, 0);
    if (inserted) it->second = Add(std::forward<Make>(make));
    return it->second;
  }
  // Where the text says all that bodies have to do with it.
  template <typename Make>
  int32_t NumberOfSharedText(const std::string& text, Make&& make) {
    if (shared_ == nullptr) return NumberOfText(text, std::forward<Make>(make));
    const auto [it, inserted] = texts_.try_emplace(text, 0);
    if (inserted) it->second = Add(shared_->Of(text, std::forward<Make>(make)));
    return it->second;
  }
  // The block under `key`, or -1; `Know` makes it a known one.
  int32_t Find(const BlockKey& key) const {
    const auto it = numbers_.find(key);
    return it == numbers_.end() ? -1 : it->second;
  }
  void Know(const BlockKey& key, int32_t number) { numbers_.emplace(key, number); }

  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  const BlockTemplate& operator[](int32_t number) const { return *blocks_[number]; }
  // Whether the block is there when the catalogue is cleared.
  bool Outlives(int32_t number) const { return !is_own_[number]; }

  void Clear() {
    numbers_.clear();
    texts_.clear();
    blocks_.clear();
    is_own_.clear();
    own_.clear();
  }

 private:
  template <typename Make, typename = decltype(std::declval<Make>()())>
  int32_t Add(Make&& make) {
    if constexpr (std::is_lvalue_reference_v<decltype(make())>) {
      return Add(make());
    } else {
      const int32_t number = Add(own_.emplace_back(make()));
      is_own_[number] = true;
      return number;
    }
  }
  int32_t Add(const BlockTemplate& block) {
    blocks_.push_back(&block);
    is_own_.push_back(false);
    return size() - 1;
  }

  absl::flat_hash_map<BlockKey, int32_t> numbers_;
  absl::flat_hash_map<std::string, int32_t> texts_;
  SharedBlocks* shared_ = nullptr;
  std::vector<const BlockTemplate*> blocks_;
  std::vector<bool> is_own_;  // per block: in `own_`
  std::deque<BlockTemplate> own_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_BLOCK_CATALOGUE_H_
