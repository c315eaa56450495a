#include "graph/layout/relayout.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "graph/layout/relayout_moves.h"

namespace plancast {
namespace {

// Bytes come first; among equals fewer collectives, and a collective of a
// standard form before a free exchange. Several of them come before one exchange
// that ends in copies: it would send each copy by itself, where a gather comes last
// and runs over the axis of the copies alone.
constexpr int64_t kElementWeight = 64;
int64_t CostOf(const DeviceMesh& mesh, const Layout& before, const RelayoutStep& step) {
  int64_t cost = step.received * kElementWeight;
  if (!step.is_collective) return cost + 1;
  const bool exchange = step.kind == CollectiveKind::kPermute || step.axes.size() > 1;
  const bool copies = step.kind == CollectiveKind::kAllToAll &&
                      step.after.ShardCount(mesh) < before.ShardCount(mesh);
  return cost + (copies ? 40 : exchange ? 9 : 8);
}

// Layouts as short keys, over the axes that may change.
class LayoutTable {
 public:
  struct Entry {
    Layout layout;
    int64_t cost = 0;
    int previous = -1;
    RelayoutStep step;  // from `previous`
    bool done = false;
  };

  // The index of `layout`, and whether it is new.
  std::pair<int, bool> Find(const Layout& layout) {
    std::string key;
    for (const Placement& p : layout.placements) {
      key.push_back(static_cast<char>(p.kind));
      key.push_back(static_cast<char>(p.dim));
      key.push_back(
          static_cast<char>(static_cast<int>(p.pattern) * 2 + static_cast<int>(p.reduction)));
      if (!p.halo.empty()) absl::StrAppend(&key, "h", p.halo.before, "+", p.halo.after, ";");
      if (p.is_on()) absl::StrAppend(&key, "@", p.at, ";");
    }
    auto [it, added] = index_.emplace(std::move(key), static_cast<int>(entries_.size()));
    if (added) entries_.push_back({layout, 0, -1, {}, false});
    return {it->second, added};
  }
  Entry& operator[](int index) { return entries_[index]; }
  size_t size() const { return entries_.size(); }

 private:
  absl::flat_hash_map<std::string, int> index_;
  std::vector<Entry> entries_;
};

// Layouts looked at before the search is cut short. Meshes of up to six axes
// that all change stay far below.
constexpr size_t kMaxLayouts = 20000;

}  // namespace

absl::StatusOr<Relayout> PlanRelayout(const DeviceMesh& mesh, absl::Span<const int64_t> shape,
                                      const Layout& source, const Layout& target) {
  const int num_dims = static_cast<int>(shape.size());
  RETURN_IF_ERROR(source.Verify(mesh, num_dims)) << "source layout";
  RETURN_IF_ERROR(target.Verify(mesh, num_dims)) << "target layout";
  Relayout plan = {source, target, {}};
  std::vector<int> axes;
  // An axis of size one holds everything whatever it is called.
  Layout start = source, goal = target;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (mesh.size(a) == 1) start.placements[a] = goal.placements[a] = Placement::Replicate();
    if (start.placements[a] != goal.placements[a]) axes.push_back(a);
  }
  if (axes.empty()) return plan;

  const RelayoutMoves moves(mesh, shape, goal);
  if (axes.size() == 1) {
    // No detour beats a single step of one axis.
    const RelayoutStep* best = nullptr;
    std::vector<RelayoutStep> steps = moves.From(start, axes);
    for (const RelayoutStep& step : steps) {
      if (step.after == goal &&
          (best == nullptr || CostOf(mesh, start, step) < CostOf(mesh, start, *best)))
        best = &step;
    }
    if (best != nullptr) {
      plan.steps.push_back(*best);
      return plan;
    }
  }

  // Dijkstra's algorithm over layouts.
  LayoutTable table;
  using Item = std::pair<int64_t, int>;
  std::priority_queue<Item, std::vector<Item>, std::greater<Item>> queue;
  table.Find(start);
  queue.push({0, 0});
  int64_t known = std::numeric_limits<int64_t>::max();  // the cheapest way to the goal so far
  int at = -1;
  while (!queue.empty()) {
    at = queue.top().second;
    queue.pop();
    if (table[at].done) continue;
    table[at].done = true;
    if (table[at].layout == goal) break;
    const Layout layout = table[at].layout;
    const int64_t cost = table[at].cost;
    for (RelayoutStep& step : moves.From(layout, axes)) {
      if (table.size() > kMaxLayouts && step.after != goal) continue;
      const auto [next, added] = table.Find(step.after);
      const int64_t total = cost + CostOf(mesh, layout, step);
      if (total > known) continue;
      if (step.after == goal) known = total;
      if (!added && (table[next].done || table[next].cost <= total)) continue;
      table[next].cost = total;
      table[next].previous = at;
      table[next].step = std::move(step);
      queue.push({total, next});
    }
  }
  PLANCAST_CHECK(at >= 0 && table[at].layout == goal)
      << "no way from " << source.DebugString(mesh) << " to " << target.DebugString(mesh);
  for (; table[at].previous >= 0; at = table[at].previous) {
    plan.steps.push_back(std::move(table[at].step));
  }
  std::reverse(plan.steps.begin(), plan.steps.end());
  return plan;
}

int64_t Relayout::received() const {
  int64_t total = 0;
  for (const RelayoutStep& step : steps) total += step.received;
  return total;
}

std::string Relayout::DebugString(const DeviceMesh& mesh) const {
  std::string text;
  for (const RelayoutStep& step : steps) {
    if (!text.empty()) text.push_back('\n');
    absl::StrAppend(&text, step.is_collective ? kCollectiveKindNames[step.kind] : "local", "(",
                    absl::StrJoin(step.axes, ",",
                                  [&](std::string* out, int a) { out->append(mesh.axis(a).name); }),
                    ")");
    if (step.is_collective) absl::StrAppend(&text, " ", step.elements);
  }
  return text;
}

}  // namespace plancast
