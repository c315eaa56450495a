#include "graph/split/split_kinds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

// Sizes that tell kinds apart: windows are small beside what they move over, and
// mapped dims as large as their map reaches.
std::vector<int64_t> TypicalExtents(const OpRule& rule, int parts) {
  std::vector<int64_t> extents(rule.factors().size(), 64);
  std::vector<bool> given(extents.size());
  for (const Statement& s : rule.statements()) {
    for (const Condition& c : s.where) {
      if (!c.is_map()) continue;
      for (const AffineTerm& term : c.terms) {
        if (term.factor < 0 || term.factor == c.tied() || c.is_radix()) continue;
        extents[term.factor] = 3;
        given[term.factor] = true;
      }
    }
  }
  for (const Statement& s : rule.statements()) {
    for (const Condition& c : s.where) {
      if (c.is_map() && !c.is_radix() && c.tied() >= 0) {
        for (const AffineTerm& term : c.terms) {
          if (term.factor != c.tied() || given[c.left]) continue;
          extents[c.left] = std::max<int64_t>(1, term.Coefficient(extents)) * extents[c.tied()];
          given[c.left] = true;
        }
      }
      if (!c.is_radix() || c.terms.size() < 2) continue;
      int64_t points = 1;
      for (const AffineTerm& term : c.terms) {
        if (!given[term.factor]) extents[term.factor] = 2 * parts;
        points *= extents[term.factor];
      }
      extents[c.left] = points;
      given[c.left] = true;
    }
  }
  return extents;
}

// `2 * (size(k) - 1) + size(u) - 1`: how much further than its own length a block
// reaches along a map.
std::string ReachOf(const OpRule& rule, const Condition& map) {
  std::vector<std::string> parts;
  for (const AffineTerm& term : map.terms) {
    if (term.factor < 0 || term.factor == map.tied()) continue;
    const std::string width = absl::StrCat("size(", rule.factors()[term.factor], ") - 1");
    const int64_t number = std::abs(term.number);
    parts.push_back(number == 1 && term.sizes.empty() ? width
                                                      : absl::StrCat(number, " * (", width, ")"));
  }
  if (parts.empty()) return map.offset == 0 ? "" : absl::StrCat(std::abs(map.offset));
  return absl::StrJoin(parts, " + ");
}

}  // namespace

std::vector<SplitKind> SplitKindsOf(const OpRule& rule) {
  constexpr int kParts = 2;
  const DeviceMesh mesh = *DeviceMesh::Create({{"parts", kParts}});
  const std::vector<int64_t> extents = TypicalExtents(rule, kParts);
  std::vector<SplitKind> kinds;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.ties()[f] != static_cast<int>(f)) continue;
    SplitKind kind;
    for (size_t g = f; g < rule.factors().size(); ++g) {
      if (rule.ties()[g] == static_cast<int>(f)) kind.factors.push_back(static_cast<int>(g));
    }
    if (!rule.may_cut(static_cast<int>(f))) {
      kind.whole = true;
      kinds.push_back(std::move(kind));
      continue;
    }
    FactorSplit split = FactorSplit::None(rule);
    split.axes[f] = {0};
    const absl::StatusOr<OpPartition> partition = PartitionOp(rule, split, mesh, extents);
    PLANCAST_CHECK_OK(partition) << rule.DebugString();
    for (int output : rule.outputs()) {
      const Placement& p = partition->tensors[output].placements[0];
      if (p.is_shard()) kind.concat.push_back(output);
      if (p.is_partial()) kind.reduce.push_back(output);
    }
    for (const InnerReduction& reduction : partition->reductions) {
      const bool scan = reduction.combiner == InnerReduction::Combiner::kScan;
      std::vector<int>& list = scan ? kind.states : kind.inner;
      list.insert(list.end(), reduction.tensors.begin(), reduction.tensors.end());
    }
    for (int input : rule.inputs()) {
      // The map between what the statement owns and the input's dim.
      const Halo halo = partition->tensors[input].placements[0].halo;
      if (halo.empty()) continue;
      for (const Statement& s : rule.statements()) {
        const std::vector<int> read = TensorsOf(s.value);
        if (std::find(read.begin(), read.end(), input) == read.end()) continue;
        for (const Condition& c : s.where) {
          if (!c.is_map() || rule.ties()[c.left] != static_cast<int>(f)) continue;
          const std::string reach = ReachOf(rule, c);
          const bool known =
              std::any_of(kind.halos.begin(), kind.halos.end(), [&](const SplitKind::Reach& other) {
                return other.tensor == input && other.positions == reach;
              });
          if (!reach.empty() && !known) kind.halos.push_back({input, reach});
        }
      }
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::string SplitKindsText(const OpRule& rule) {
  auto factors = [&](std::string* out, int f) { out->append(rule.factors()[f]); };
  auto tensors = [&](std::string* out, int t) { out->append(rule.tensors()[t].name); };
  std::string text;
  for (const SplitKind& kind : SplitKindsOf(rule)) {
    std::vector<std::string> parts;
    if (!kind.concat.empty()) {
      parts.push_back(absl::StrCat("concat ", absl::StrJoin(kind.concat, ", ", tensors)));
    }
    if (!kind.reduce.empty()) {
      parts.push_back(absl::StrCat("reduce ", absl::StrJoin(kind.reduce, ", ", tensors)));
    }
    if (!kind.inner.empty()) {
      parts.push_back(absl::StrCat("reduce inside ", absl::StrJoin(kind.inner, ", ", tensors)));
    }
    if (!kind.states.empty()) {
      parts.push_back(absl::StrCat("pass on ", absl::StrJoin(kind.states, ", ", tensors)));
    }
    if (kind.whole) parts.push_back("whole");
    for (const SplitKind::Reach& reach : kind.halos) {
      parts.push_back(
          absl::StrCat("halo of ", rule.tensors()[reach.tensor].name, ": ", reach.positions));
    }
    absl::StrAppend(&text, "  ", absl::StrJoin(kind.factors, ", ", factors), ": ",
                    parts.empty() ? "copies" : absl::StrJoin(parts, "; "), "\n");
  }
  return text;
}

}  // namespace plancast
