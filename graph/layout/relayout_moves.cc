#include "graph/layout/relayout_moves.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"
#include "graph/layout/redistribution.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Layout With(Layout layout, const std::vector<int>& axes, Placement placement) {
  for (int a : axes) layout.placements[a] = placement;
  return layout;
}

RelayoutStep Collective(CollectiveKind kind, std::vector<int> axes, int64_t elements,
                        int64_t received, Layout after) {
  RelayoutStep step;
  step.is_collective = true;
  step.kind = kind;
  step.axes = std::move(axes);
  step.elements = elements;
  step.received = received;
  step.after = std::move(after);
  return step;
}

RelayoutStep Local(std::vector<int> axes, Layout after) {
  RelayoutStep step;
  step.axes = std::move(axes);
  step.after = std::move(after);
  return step;
}

Placement WithoutHalo(Placement placement) {
  placement.halo = {};
  return placement;
}

// `one` alone, and `all` if it is more than that.
std::vector<std::vector<int>> OneOrAll(int one, const std::vector<int>& all) {
  std::vector<std::vector<int>> sets = {{one}};
  if (all.size() > 1 && all.front() == one) sets.push_back(all);
  return sets;
}

}  // namespace

RelayoutMoves::RelayoutMoves(const DeviceMesh& mesh, absl::Span<const int64_t> shape,
                             const Layout& target)
    : mesh_(mesh), shape_(shape.begin(), shape.end()), target_(target) {}

std::vector<RelayoutStep> RelayoutMoves::From(const Layout& layout,
                                              const std::vector<int>& axes) const {
  std::vector<RelayoutStep> steps;
  AddSlices(layout, axes, &steps);
  AddHaloDrops(layout, axes, &steps);
  AddGathers(layout, axes, &steps);
  AddReductions(layout, axes, &steps);
  AddAllToAlls(layout, axes, &steps);
  AddRooted(layout, axes, &steps);
  AddExchange(layout, axes, &steps);
  return steps;
}

// Standard collectives run on blocks alone.
void RelayoutMoves::AddHaloDrops(const Layout& layout, const std::vector<int>& axes,
                                 std::vector<RelayoutStep>* steps) const {
  for (size_t dim = 0; dim < shape_.size(); ++dim) {
    if (layout.HaloOf(static_cast<int>(dim)).empty()) continue;
    std::vector<int> cut;
    bool may_change = true;
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      const Placement& p = layout.placements[a];
      if (!p.is_shard() || p.dim != static_cast<int>(dim)) continue;
      cut.push_back(a);
      may_change = may_change && Contains(axes, a);
    }
    if (!may_change) continue;
    Layout after = layout;
    for (int a : cut) after.placements[a].halo = {};
    steps->push_back(Local(cut, std::move(after)));
  }
}

void RelayoutMoves::AddGathers(const Layout& layout, const std::vector<int>& axes,
                               std::vector<RelayoutStep>* steps) const {
  for (size_t dim = 0; dim < shape_.size(); ++dim) {
    // Growing sets of the innermost axes of the dim.
    std::vector<int> gathered;
    for (size_t i = axes.size(); i-- > 0;) {
      const Placement& p = layout.placements[axes[i]];
      if (!p.is_shard() || p.dim != static_cast<int>(dim) || !p.halo.empty()) continue;
      gathered.insert(gathered.begin(), axes[i]);
      if (!AreInnermost(layout, gathered, p.dim)) break;
      Layout after = With(layout, gathered, Placement::Replicate());
      const int64_t total = LocalElements(after);
      // Shards that do not divide are padded, but nobody lacks more than all.
      const int64_t received =
          std::min(total, (mesh_.SizeOf(gathered) - 1) * LocalElements(layout));
      steps->push_back(
          Collective(CollectiveKind::kAllGather, gathered, total, received, std::move(after)));
    }
  }
}

void RelayoutMoves::AddReductions(const Layout& layout, const std::vector<int>& axes,
                                  std::vector<RelayoutStep>* steps) const {
  const int64_t elements = LocalElements(layout);
  for (int axis : axes) {
    const Placement partial = layout.placements[axis];
    if (!partial.is_partial()) continue;
    std::vector<int> alike;  // the axes that owe the same reduction and want the same in the end
    for (int a : axes) {
      if (layout.placements[a] == partial && target_.placements[a] == target_.placements[axis]) {
        alike.push_back(a);
      }
    }
    for (const std::vector<int>& set : OneOrAll(axis, alike)) {
      const int64_t n = mesh_.SizeOf(set);
      const int64_t share = (n - 1) * CeilDiv(elements, n);
      steps->push_back(Collective(CollectiveKind::kAllReduce, set, elements, 2 * share,
                                  With(layout, set, Placement::Replicate())));
      steps->back().reduction = partial.reduction;
      for (size_t dim = 0; dim < shape_.size(); ++dim) {
        Placement shard = Placement::Shard(static_cast<int>(dim));
        const Placement wanted = WithoutHalo(target_.placements[axis]);
        if (wanted.is_shard() && wanted.dim == shard.dim) shard = wanted;
        if (!CanCut(layout, set, shard)) continue;
        Layout after = With(layout, set, shard);
        // A detour through another dim only where it comes out even.
        if (shard != wanted && LocalElements(after) * n != elements) continue;
        const int64_t received = (n - 1) * LocalElements(after);
        steps->push_back(
            Collective(CollectiveKind::kReduceScatter, set, elements, received, std::move(after)));
        steps->back().reduction = partial.reduction;
      }
    }
  }
}

void RelayoutMoves::AddSlices(const Layout& layout, const std::vector<int>& axes,
                              std::vector<RelayoutStep>* steps) const {
  std::vector<int> cut;  // all axes that can be cut for good, in one step
  Layout after = layout;
  for (int axis : axes) {
    const Placement& now = layout.placements[axis];
    const Placement& wanted = target_.placements[axis];
    if (now == wanted) continue;
    // Beside axes that cut the dim without a halo, this one does so too.
    const bool with_halo = wanted.halo == after.HaloOf(wanted.dim) || CanCut(after, {axis}, wanted);
    const Placement slice = with_halo ? wanted : WithoutHalo(wanted);
    if (now.is_replicate() && wanted.is_shard() && CanCut(after, {axis}, slice)) {
      cut.push_back(axis);
      after.placements[axis] = slice;
      // An outer axis may have to wait for this one, so each is offered alone too.
      if (CanCut(layout, {axis}, slice)) {
        steps->push_back(Local({axis}, With(layout, {axis}, slice)));
      }
    }
    // A whole value counts once as a sum, or as often as one likes as a
    // maximum; a part of a sum is zero elsewhere.
    if (wanted.is_partial() && (now.is_replicate() || (now.is_shard() && now.halo.empty() &&
                                                       wanted.reduction == Reduction::kSum &&
                                                       AreInnermost(layout, {axis}, now.dim)))) {
      steps->push_back(Local({axis}, With(layout, {axis}, wanted)));
    }
  }
  if (cut.size() > 1) steps->push_back(Local(cut, std::move(after)));
}

void RelayoutMoves::AddAllToAlls(const Layout& layout, const std::vector<int>& axes,
                                 std::vector<RelayoutStep>* steps) const {
  const int64_t elements = LocalElements(layout);
  for (int axis : axes) {
    const Placement& now = layout.placements[axis];
    const Placement wanted = WithoutHalo(target_.placements[axis]);
    if (!now.is_shard() || !wanted.is_shard() || now.dim == wanted.dim) continue;
    if (!now.halo.empty()) continue;
    std::vector<int> alike;
    for (int a : axes) {
      if (layout.placements[a] == now && WithoutHalo(target_.placements[a]) == wanted) {
        alike.push_back(a);
      }
    }
    for (const std::vector<int>& set : OneOrAll(axis, alike)) {
      if (!AreInnermost(layout, set, now.dim) || !CanCut(layout, set, wanted)) continue;
      Layout after = With(layout, set, wanted);
      // What one pair exchanges is cut in both dims.
      std::vector<int64_t> block = layout.LocalShape(mesh_, shape_);
      block[wanted.dim] = after.LocalShape(mesh_, shape_)[wanted.dim];
      int64_t received = mesh_.SizeOf(set) - 1;
      for (int64_t size : block) received *= size;
      steps->push_back(
          Collective(CollectiveKind::kAllToAll, set, elements, received, std::move(after)));
    }
  }
}

void RelayoutMoves::AddRooted(const Layout& layout, const std::vector<int>& axes,
                              std::vector<RelayoutStep>* steps) const {
  const int64_t elements = LocalElements(layout);
  for (int axis : axes) {
    const Placement &now = layout.placements[axis], &wanted = target_.placements[axis];
    const int64_t others = mesh_.size(axis) - 1;
    const auto add = [&](CollectiveKind kind, int64_t whole, int64_t moved, Placement to) {
      steps->push_back(Collective(kind, {axis}, whole, moved, With(layout, {axis}, to)));
    };
    if (now.is_on()) {
      add(CollectiveKind::kBroadcast, elements, elements, Placement::Replicate());
      if (wanted.is_on()) add(CollectiveKind::kPermute, elements, elements, wanted);
      if (wanted.is_partial() && wanted.reduction == Reduction::kSum) {
        steps->push_back(Local({axis}, With(layout, {axis}, wanted)));
      }
      if (wanted.is_shard() && CanCut(layout, {axis}, wanted)) {
        const Layout after = With(layout, {axis}, wanted);
        add(CollectiveKind::kScatter, elements, std::min(elements, others * LocalElements(after)),
            wanted);
      }
      continue;
    }
    if (!wanted.is_on()) continue;
    if (now.is_replicate()) steps->push_back(Local({axis}, With(layout, {axis}, wanted)));
    if (now.is_partial()) {
      add(CollectiveKind::kReduce, elements, elements, wanted);
      steps->back().reduction = now.reduction;
    }
    if (now.is_shard() && now.halo.empty() && AreInnermost(layout, {axis}, now.dim)) {
      const int64_t whole = LocalElements(With(layout, {axis}, wanted));
      add(CollectiveKind::kGather, whole, std::min(whole, others * elements), wanted);
    }
  }
}

void RelayoutMoves::AddExchange(const Layout& layout, const std::vector<int>& axes,
                                std::vector<RelayoutStep>* steps) const {
  // Partial axes stay, and those that one coordinate holds. What shall become partial either
  // stays too or is gathered on the way, and so is what shall be on one coordinate.
  Layout after = layout, gathered;
  for (int a : axes) {
    const Placement &from = layout.placements[a], &to = target_.placements[a];
    const bool fixed = from.is_partial() || to.is_partial() || from.is_on() || to.is_on();
    if (!fixed) after.placements[a] = to;
  }
  gathered = after;
  for (int a : axes) {
    const Placement& to = target_.placements[a];
    if ((to.is_partial() || to.is_on()) && layout.placements[a].is_shard()) {
      gathered.placements[a] = Placement::Replicate();
    }
  }
  AddExchangeTo(layout, after, steps);
  if (gathered != after) AddExchangeTo(layout, gathered, steps);
}

void RelayoutMoves::AddExchangeTo(const Layout& layout, const Layout& after,
                                  std::vector<RelayoutStep>* steps) const {
  if (after == layout || !after.Verify(mesh_, static_cast<int>(shape_.size())).ok()) return;
  const Exchange exchange = PlanExchange(mesh_, shape_, layout, after);
  if (exchange.received == 0) {
    steps->push_back(Local(exchange.axes, after));
    return;
  }
  const int64_t n = mesh_.SizeOf(exchange.axes);
  // Sized so that (n - 1) / n of it is what arrives.
  const int64_t elements =
      exchange.permutation ? exchange.received : MulDivCeil(exchange.received, n, n - 1);
  steps->push_back(
      Collective(exchange.permutation ? CollectiveKind::kPermute : CollectiveKind::kAllToAll,
                 exchange.axes, elements, exchange.received, after));
}

bool RelayoutMoves::CanCut(const Layout& layout, const std::vector<int>& axes,
                           Placement shard) const {
  for (int a = 0; a < mesh_.num_axes(); ++a) {
    const Placement& p = layout.placements[a];
    if (!p.is_shard() || p.dim != shard.dim || Contains(axes, a)) continue;
    if (a > axes.front() || p.pattern != shard.pattern || !(p.halo == shard.halo)) return false;
  }
  return true;
}

bool RelayoutMoves::AreInnermost(const Layout& layout, const std::vector<int>& axes,
                                 int dim) const {
  for (int a = axes.front(); a < mesh_.num_axes(); ++a) {
    const Placement& p = layout.placements[a];
    if (p.is_shard() && p.dim == dim && !Contains(axes, a)) return false;
  }
  return true;
}

int64_t RelayoutMoves::LocalElements(const Layout& layout) const {
  return static_cast<int64_t>(layout.LocalElements(mesh_, shape_));
}

}  // namespace plancast
