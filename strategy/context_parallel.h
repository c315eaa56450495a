#ifndef PLANCAST_STRATEGY_CONTEXT_PARALLEL_H_
#define PLANCAST_STRATEGY_CONTEXT_PARALLEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "base/memo_key.h"

namespace plancast {

// How attention sees the parts of the sequence that other ranks of `cp` have
// (docs/context_parallel.md).
enum class CpType : uint8_t {
  kRing,        // parts of keys and values go round; each rank has one block of the sequence
  kRingZigzag,  // the same, and each rank has a piece of both halves of the sequence
  kAllGather,   // keys and values of all are gathered
  kUlysses,     // heads are cut in place of the sequence while attention runs
  kHybrid,      // heads over neighbouring ranks, a ring over groups of these
};
inline constexpr auto kCpTypeNames =
    NamesOf<CpType>("ring", "ring_zigzag", "allgather", "ulysses", "hybrid");

// `ring_zigzag`, `hybrid:4`: heads are cut over four neighbouring ranks.
struct ContextParallel {
  CpType type = CpType::kRingZigzag;
  int64_t head_ranks = 0;  // of kHybrid

  static absl::StatusOr<ContextParallel> Parse(absl::string_view text);
  std::string DebugString() const;
  bool turns() const { return type != CpType::kAllGather && type != CpType::kUlysses; }
  // Over how many of `cp` ranks heads are cut.
  int64_t HeadRanks(int64_t cp) const {
    return type == CpType::kUlysses ? cp : type == CpType::kHybrid ? head_ranks : 1;
  }
  // Ranks have a piece from both ends of the sequence.
  bool mirrored() const { return type != CpType::kRing && type != CpType::kUlysses; }
  // What axis `cp` cuts, as SplitDirective::Parse takes it.
  std::vector<std::string> Cuts() const;
};

// What software does in the steps of a ring over cp beside the kernels of attention; proto
// ContextSteps documents the fields.
struct ContextSteps {
  bool gathers = false, waits = false, repeats_kv = false, fp32_sums = false, returns_sums = false;
  int merge_passes = 1, packs = 0, sum_packs = 0;
  PLANCAST_KEY_FIELDS(ContextSteps, gathers, waits, repeats_kv, fp32_sums, returns_sums,
                      merge_passes, packs, sum_packs)
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_CONTEXT_PARALLEL_H_
