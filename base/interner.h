#ifndef PLANCAST_BASE_INTERNER_H_
#define PLANCAST_BASE_INTERNER_H_

#include <deque>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "base/ids.h"

namespace plancast {

// Hash-consing: equal values get the same id, in order of first appearance, so
// that comparing ids compares values. `T` needs operator== and AbslHashValue.
// Holds each value once; references stay valid while the interner lives. Not
// thread-safe.
template <typename IdT, typename T>
class Interner {
 public:
  Interner() : ids_(0, Hash{&values_}, Equal{&values_}) {}
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  IdT Intern(T value) {
    if (const auto found = ids_.find(value); found != ids_.end()) return *found;
    values_.push_back(std::move(value));
    const IdT id(values_.size() - 1);
    ids_.insert(id);
    return id;
  }

  std::optional<IdT> Find(const T& value) const {
    const auto found = ids_.find(value);
    return found == ids_.end() ? std::nullopt : std::optional<IdT>(*found);
  }

  const T& operator[](IdT id) const {
    PLANCAST_DCHECK(id.valid() && id.index() < values_.size()) << id;
    return values_[id.index()];
  }

  size_t size() const { return values_.size(); }
  IdRange<IdT> ids() const { return IdRange<IdT>(values_.size()); }

 private:
  using Values = std::deque<T>;

  // The set holds ids only and looks up by the values they stand for.
  struct Hash {
    using is_transparent = void;
    const Values* values;
    size_t operator()(IdT id) const { return absl::HashOf((*values)[id.index()]); }
    size_t operator()(const T& value) const { return absl::HashOf(value); }
  };
  struct Equal {
    using is_transparent = void;
    const Values* values;
    bool operator()(IdT a, IdT b) const { return a == b; }
    bool operator()(IdT a, const T& b) const { return (*values)[a.index()] == b; }
    bool operator()(const T& a, IdT b) const { return a == (*values)[b.index()]; }
  };

  Values values_;
  absl::flat_hash_set<IdT, Hash, Equal> ids_;
};

}  // namespace plancast

#endif  // PLANCAST_BASE_INTERNER_H_
