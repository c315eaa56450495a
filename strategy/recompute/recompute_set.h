#ifndef PLANCAST_STRATEGY_RECOMPUTE_SET_H_
#define PLANCAST_STRATEGY_RECOMPUTE_SET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plancast {

// Which ops: all that is said must hold; proto/recompute_set.proto documents the fields.
struct OpPattern {
  std::string name, rule, group;

  // Of an op of this name in its layer, rule and recompute group.
  bool Matches(absl::string_view name, absl::string_view rule, absl::string_view group) const;
};
bool AnyMatches(absl::Span<const OpPattern> patterns, absl::string_view name,
                absl::string_view rule, absl::string_view group);

// Ops of a layer that the backward pass runs again, under a framework's word.
struct RecomputeSet {
  std::string word, description;
  std::vector<OpPattern> ops, keeps, within;
  bool discards = false, region = false;
  bool keeps_every_other_product = false, keeps_reduced = false;
};

// Norms, and products whose modules they may be part of; proto/recompute_set.proto.
struct NormsOfProducts {
  std::vector<OpPattern> norms, products;
};

// The shipped sets (strategy/recompute/sets.textproto), in their order.
const std::vector<RecomputeSet>& RecomputeSets();
const NormsOfProducts& ShippedNormsOfProducts();
// Unknown: the list and a suggestion. The result lives for ever.
absl::StatusOr<const RecomputeSet*> FindRecomputeSet(absl::string_view word);

// `*` in `pattern` stands for any letters, `?` for one.
bool GlobMatches(absl::string_view pattern, absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_RECOMPUTE_SET_H_
