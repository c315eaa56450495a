#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_PROVENANCE_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_PROVENANCE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace plancast {

// Symbolic values of chunks: sets of input chunks that were summed, each once. A
// value is a number; equal unions of equal numbers are one.
class Provenance {
 public:
  using Value = int32_t;
  static constexpr Value kNothing = 0;  // memory that was never written

  // One input chunk.
  Value Atom(int32_t rank, int32_t chunk);
  struct Sum {
    Value value = kNothing;
    // Where both hold one input chunk, which one (value is kNothing then).
    int32_t twice_rank = -1, twice_chunk = -1;
  };
  Sum Add(Value a, Value b);
  // Ascending: rank << 32 | chunk.
  absl::Span<const uint64_t> Atoms(Value value) const;
  // Of all values together: a measure of the memory.
  int64_t size() const { return static_cast<int64_t>(atoms_.size()); }

 private:
  std::vector<uint64_t> atoms_;
  std::vector<int64_t> starts_ = {0, 0};
  absl::flat_hash_map<uint64_t, Value> sums_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_PROVENANCE_H_
