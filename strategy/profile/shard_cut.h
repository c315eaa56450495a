#ifndef PLANCAST_STRATEGY_PROFILE_SHARD_CUT_H_
#define PLANCAST_STRATEGY_PROFILE_SHARD_CUT_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// How parameters are cut into shards: each flat; the same, and each is joined of the ranks' parts
// behind its gather (DeepSpeed); all of a unit flat in one (FSDP1); or each by rows (FSDP2).
enum class ShardCut : uint8_t { kParameter, kJoined, kUnit, kRows };
inline constexpr auto kShardCutNames = NamesOf<ShardCut>("parameter", "joined", "unit", "rows");

// Whether what is gathered and reduced is allocated on streams of its own: FSDP's.
inline bool HasOwnStreams(ShardCut cut) { return cut == ShardCut::kUnit || cut == ShardCut::kRows; }

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_SHARD_CUT_H_
