#include "compiler/bind/recompute.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "graph/split/rule_part.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
namespace {

// A reason to run an op again: of what others run again for the same one they are one
// group, all of them or neighbours only.
struct Reason {
  std::string name;  // empty: the op is not run again
  bool discards = false, region = false;
  const RecomputeSet* set = nullptr;  // of `name`, if that is one
};

bool IsIn(const std::vector<OpPattern>& patterns, const OpNode& op) {
  return AnyMatches(patterns, op.name, op.rule->name(), op.recompute_group);
}

// What a product sums over is cut: its result is a sum over ranks.
bool IsOwed(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh) {
  for (const Statement& statement : rule.statements()) {
    for (int factor : statement.reduced) {
      if (mesh.SizeOf(split.axes[factor]) > 1) return true;
    }
  }
  return false;
}

class Replays {
 public:
  Replays(const Body& body, const std::vector<FactorSplit>& splits, const DeviceMesh& mesh)
      : body_(body), splits_(splits), mesh_(mesh), replays_(body.ops.size()) {}

  std::vector<OpReplay> Run(const std::vector<Reason>& reasons) && {
    int groups = 0;
    for (size_t o = 0; o < reasons.size(); ++o) {
      const Reason& reason = reasons[o];
      if (reason.name.empty()) continue;
      const auto same = [&](size_t other) { return reasons[other].name == reason.name; };
      int group = -1;
      if (reason.region) {
        for (size_t p = 0; p < o && group < 0; ++p) group = same(p) ? replays_[p].group : -1;
      } else if (o > 0 && same(o - 1)) {
        group = replays_[o - 1].group;
      }
      replays_[o].group = group < 0 ? groups++ : group;
      replays_[o].whole = reason.region && reason.set == nullptr;
      replays_[o].discards = reason.discards;
    }
    KeepResults(reasons);
    return std::move(replays_);
  }

 private:
  // What sets leave out of what they run again.
  void KeepResults(const std::vector<Reason>& reasons) {
    if (std::none_of(reasons.begin(), reasons.end(),
                     [](const Reason& reason) { return reason.set != nullptr; })) {
      return;
    }
    int products = 0;
    for (size_t o = 0; o < reasons.size(); ++o) {
      const OpNode& op = body_.ops[o];
      const std::vector<int> plain = PlainProducts(*op.rule);
      const RecomputeSet* const set = reasons[o].set;
      std::vector<bool> kept(op.outputs.size(), false);
      bool all = set != nullptr, any = false;
      for (size_t i = 0; i < kept.size(); ++i) {
        const bool product =
            std::find(plain.begin(), plain.end(), static_cast<int>(i)) != plain.end();
        if (product) ++products;
        if (set == nullptr) continue;
        kept[i] = (set->keeps_every_other_product && product && products % 2 == 1) ||
                  (set->keeps_reduced && product && IsOwed(*op.rule, splits_[o], mesh_)) ||
                  IsIn(set->keeps, op);
        all = all && kept[i];
        any = any || kept[i];
      }
      if (all) replays_[o].group = -1;
      if (any) replays_[o].keeps = std::move(kept);
    }
  }

  const Body& body_;
  const std::vector<FactorSplit>& splits_;
  const DeviceMesh& mesh_;
  std::vector<OpReplay> replays_;
};

// The first of the sets that an op is in.
absl::StatusOr<Reason> InSets(const Body& body, size_t op, absl::Span<const std::string> words,
                              bool norms_in_products) {
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(const RecomputeSet* set, FindRecomputeSet(word));
    if (!Covers(*set, body, op, norms_in_products)) continue;
    return Reason{word, set->discards, set->region, set};
  }
  return Reason();
}

// The product that alone reads what a norm makes, or the op itself.
size_t ModuleOf(const Body& body, size_t op) {
  const NormsOfProducts& shipped = ShippedNormsOfProducts();
  if (!IsIn(shipped.norms, body.ops[op])) return op;
  const int made = body.ops[op].outputs[0];
  const auto reads = [made](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), made) != list.end();
  };
  if (reads(body.out_ports)) return op;
  size_t reader = op;
  for (size_t other = 0; other < body.ops.size(); ++other) {
    if (!reads(body.ops[other].inputs)) continue;
    if (reader != op) return op;
    reader = other;
  }
  return IsIn(shipped.products, body.ops[reader]) ? reader : op;
}

}  // namespace

bool Covers(const RecomputeSet& set, const Body& body, size_t op, bool norms_in_products) {
  if (!IsIn(set.ops, body.ops[norms_in_products ? ModuleOf(body, op) : op])) return false;
  return set.within.empty() ||
         std::any_of(body.ops.begin(), body.ops.end(),
                     [&](const OpNode& node) { return IsIn(set.within, node); });
}

CoveredOps CoveredBy(const RecomputeSet& set, const ModelGraph& graph, bool norms_in_products) {
  CoveredOps ops;
  for (const Segment& segment : graph.segments) {
    if (graph.HasLists() && !segment.in_list()) continue;
    const Body& body = graph.bodies[segment.body];
    for (size_t op = 0; op < body.ops.size(); ++op) {
      ++ops.all;
      if (Covers(set, body, op, norms_in_products)) ++ops.covered;
    }
  }
  return ops;
}

absl::StatusOr<std::vector<OpReplay>> ReplaysOf(const Body& body, bool in_list,
                                                const std::vector<Resolved>& directives,
                                                const std::vector<FactorSplit>& splits,
                                                const DeviceMesh& mesh,
                                                const std::vector<std::string>& selective,
                                                bool norms_in_products) {
  std::vector<Reason> reasons(body.ops.size());
  for (size_t o = 0; o < body.ops.size(); ++o) {
    const Resolved& said = directives[o];
    const bool root = said.recompute_source.empty();
    if (said.recompute == Recompute::kFull && (in_list || !root)) {
      reasons[o] = {root ? "full" : "full below", false, root};
    } else if (said.recompute == Recompute::kSelective) {
      const std::vector<std::string>& words =
          said.recompute_ops.empty() ? selective : said.recompute_ops;
      ASSIGN_OR_RETURN(reasons[o], InSets(body, o, words, norms_in_products));
      if (!in_list && root && reasons[o].set != nullptr && reasons[o].set->region) reasons[o] = {};
    }
  }
  return Replays(body, splits, mesh).Run(reasons);
}

}  // namespace plancast
