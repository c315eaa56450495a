#ifndef PLANCAST_STRATEGY_NODES_SPLIT_DIRECTIVE_H_
#define PLANCAST_STRATEGY_NODES_SPLIT_DIRECTIVE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// What some of an axis' ranks do: they cut the first of these dims that an op has. A dim is a
// model dim (`ffn`, `seq`, `vocab`, `kv_heads`), a compound one (`heads` = kv_heads x
// heads_per_kv: the axis is spread over both, outer first), or a factor name of the op's rule
// after a dot (`.k`). `!seq` ends the search where the op has that dim: such an op is not cut by
// what follows. An empty list: they cut nothing.
struct SplitLevel {
  std::vector<std::string> dims;
  int64_t parts = 0;  // how many ranks; 0: those that the other levels leave

  std::string DebugString() const;  // `heads|ffn/4`

  friend bool operator==(const SplitLevel& a, const SplitLevel& b) {
    return a.dims == b.dims && a.parts == b.parts;
  }
};

// What a mesh axis does to the ops below a node. Either all of it is one level, or it is a
// hierarchy of levels, the outermost (ranks that are furthest apart) first, whose product is its
// size: `heads/4, seq/2` of 8 ranks.
struct SplitDirective {
  std::string axis;
  std::vector<SplitLevel> levels;  // one at least

  SplitDirective() = default;
  // The whole axis.
  SplitDirective(std::string axis_name, std::vector<std::string> dims)
      : axis(std::move(axis_name)), levels({{std::move(dims), 0}}) {}
  // Of what a strategy lists: dims in order of preference, or, if some entry has a number behind a
  // slash, levels, of which one may leave its number out. `a|b` are dims of one entry in order of
  // preference, `/2` a level that cuts nothing. Errors: numbers that are none, two levels without.
  static absl::StatusOr<SplitDirective> Parse(absl::string_view axis,
                                              const std::vector<std::string>& entries);
  // As Parse takes them.
  std::vector<std::string> Entries() const;

  bool is_hierarchy() const { return levels.size() > 1 || levels[0].parts > 0; }
  bool cuts_nothing() const;
  // Ranks of each level on an axis of `ranks`. Errors: a product that is not `ranks`.
  absl::StatusOr<std::vector<int64_t>> Sizes(int64_t ranks) const;

  std::string DebugString() const;  // `heads | ffn`, `heads|ffn/4, seq/2`, `-`

  friend bool operator==(const SplitDirective& a, const SplitDirective& b) {
    return a.axis == b.axis && a.levels == b.levels;
  }
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_SPLIT_DIRECTIVE_H_
