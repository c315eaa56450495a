#ifndef PLANCAST_BASE_IDS_H_
#define PLANCAST_BASE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace plancast {

// An index of its own type, so that a device never indexes a table of links:
//   using DeviceId = Id<struct DeviceTag>;
// A default-constructed id is invalid and equals only itself.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>
  constexpr explicit Id(Int value) : value_(static_cast<int32_t>(value)) {}

  constexpr int32_t value() const { return value_; }
  constexpr bool valid() const { return value_ >= 0; }
  // For indexing containers other than IdVector.
  constexpr size_t index() const { return static_cast<size_t>(value_); }

  constexpr Id& operator++() { return ++value_, *this; }
  friend constexpr bool operator==(Id a, Id b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Id a, Id b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(Id a, Id b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(Id a, Id b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(Id a, Id b) { return a.value_ >= b.value_; }

  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& os, Id id) { return os << id.value_; }

 private:
  int32_t value_ = -1;
};

// The ids [0, size), for range-for.
template <typename IdT>
class IdRange {
 public:
  class iterator {
   public:
    constexpr explicit iterator(IdT id) : id_(id) {}
    constexpr IdT operator*() const { return id_; }
    constexpr iterator& operator++() { return ++id_, *this; }
    friend constexpr bool operator!=(iterator a, iterator b) { return a.id_ != b.id_; }
    friend constexpr bool operator==(iterator a, iterator b) { return a.id_ == b.id_; }

   private:
    IdT id_;
  };

  constexpr explicit IdRange(size_t size) : size_(size) {}
  constexpr iterator begin() const { return iterator(IdT(0)); }
  constexpr iterator end() const { return iterator(IdT(size_)); }
  constexpr size_t size() const { return size_; }

 private:
  size_t size_;
};

// A vector that only its own kind of id indexes.
template <typename IdT, typename T>
class IdVector {
 public:
  using value_type = T;
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;

  IdVector() = default;
  explicit IdVector(size_t size, const T& value = T()) : items_(size, value) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  reference operator[](IdT id) {
    PLANCAST_DCHECK(Contains(id)) << id << " of " << size();
    return items_[id.index()];
  }
  const_reference operator[](IdT id) const {
    PLANCAST_DCHECK(Contains(id)) << id << " of " << size();
    return items_[id.index()];
  }

  bool Contains(IdT id) const { return id.valid() && id.index() < items_.size(); }
  IdT next_id() const { return IdT(items_.size()); }

  // Both return the id of the new item.
  IdT push_back(T item) {
    items_.push_back(std::move(item));
    return IdT(items_.size() - 1);
  }
  template <typename... Args>
  IdT emplace_back(Args&&... args) {
    items_.emplace_back(std::forward<Args>(args)...);
    return IdT(items_.size() - 1);
  }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(size_t n) { items_.reserve(n); }
  void resize(size_t n) { items_.resize(n); }
  void resize(size_t n, const T& value) { items_.resize(n, value); }
  void assign(size_t n, const T& value) { items_.assign(n, value); }
  void clear() { items_.clear(); }

  IdRange<IdT> ids() const { return IdRange<IdT>(items_.size()); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  reference front() { return items_.front(); }
  const_reference front() const { return items_.front(); }
  reference back() { return items_.back(); }
  const_reference back() const { return items_.back(); }

  std::vector<T>& raw() { return items_; }
  const std::vector<T>& raw() const { return items_; }

  friend bool operator==(const IdVector& a, const IdVector& b) { return a.items_ == b.items_; }
  friend bool operator!=(const IdVector& a, const IdVector& b) { return a.items_ != b.items_; }

 private:
  std::vector<T> items_;
};

}  // namespace plancast

#endif  // PLANCAST_BASE_IDS_H_
