#include "collectives/programs/check/provenance.h"

#include <algorithm>
#include <utility>

namespace plancast {

Provenance::Value Provenance::Atom(int32_t rank, int32_t chunk) {
  atoms_.push_back(uint64_t{static_cast<uint32_t>(rank)} << 32 | static_cast<uint32_t>(chunk));
  starts_.push_back(size());
  return static_cast<Value>(starts_.size()) - 2;
}

Provenance::Sum Provenance::Add(Value a, Value b) {
  if (a > b) std::swap(a, b);
  const uint64_t key = uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
  if (const auto found = sums_.find(key); found != sums_.end()) return {found->second};
  const int64_t a_end = starts_[a + 1], b_end = starts_[b + 1];
  int64_t i = starts_[a], j = starts_[b];
  const size_t before = atoms_.size();
  while (i < a_end || j < b_end) {
    if (i < a_end && j < b_end && atoms_[i] == atoms_[j]) {
      const uint64_t atom = atoms_[i];
      atoms_.resize(before);
      return {kNothing, static_cast<int32_t>(atom >> 32), static_cast<int32_t>(atom & 0xffffffff)};
    }
    const bool take_a = j == b_end || (i < a_end && atoms_[i] < atoms_[j]);
    const uint64_t atom = take_a ? atoms_[i++] : atoms_[j++];
    atoms_.push_back(atom);
  }
  starts_.push_back(size());
  const auto value = static_cast<Value>(starts_.size()) - 2;
  sums_.emplace(key, value);
  return {value};
}

absl::Span<const uint64_t> Provenance::Atoms(Value value) const {
  return absl::MakeConstSpan(atoms_).subspan(starts_[value], starts_[value + 1] - starts_[value]);
}

}  // namespace plancast
