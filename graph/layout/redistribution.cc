#include "graph/layout/redistribution.h"

#include <algorithm>

namespace plancast {
namespace {

// Past this many different coordinates the overlap of old and new parts is
// taken as none, which the largest meshes come close to.
constexpr int64_t kMaxCoordinates = 1 << 16;

IndexSet PartOf(const DeviceMesh& mesh, const DimCut& cut, int64_t extent, int64_t device) {
  return cut.Indices(extent, cut.PartOf(mesh, device));
}

bool SameCut(const DimCut& a, const DimCut& b) {
  return a.axes == b.axes && (a.parts == 1 || (a.pattern == b.pattern && a.halo == b.halo));
}

// How many outer axes both cuts begin with, so that old and new parts lie inside the
// same blocks of these: nothing moves along them.
size_t NestedPrefix(const DimCut& a, const DimCut& b, int64_t extent) {
  const bool blocks = a.pattern == ShardPattern::kBlock && b.pattern == ShardPattern::kBlock &&
                      a.halo.empty() && b.halo.empty();
  if (!blocks || extent % a.parts != 0 || extent % b.parts != 0) return 0;
  const auto end = std::mismatch(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end());
  return end.first - a.axes.begin();
}

}  // namespace

int64_t DimCut::PartOf(const DeviceMesh& mesh, int64_t device) const {
  int64_t part = 0;
  for (int a : axes) part = part * mesh.size(a) + mesh.Coordinate(device, a);
  return part;
}

IndexSet DimCut::Indices(int64_t extent, int64_t part) const {
  return Widened(ShardIndices(extent, parts, part, pattern), halo, extent);
}

std::vector<DimCut> CutsOf(const DeviceMesh& mesh, const Layout& layout, size_t num_dims) {
  std::vector<DimCut> cuts(num_dims);
  for (int a = 0; a < mesh.num_axes(); ++a) {
    const Placement& p = layout.placements[a];
    if (!p.is_shard()) continue;
    cuts[p.dim].parts *= mesh.size(a);
    cuts[p.dim].axes.push_back(a);
    cuts[p.dim].pattern = p.pattern;
    cuts[p.dim].halo = p.halo;
  }
  return cuts;
}

std::vector<IndexSet> LocalIndices(const DeviceMesh& mesh, absl::Span<const int64_t> shape,
                                   const Layout& layout, int64_t device) {
  std::vector<IndexSet> sets;
  if (!layout.IsOn(mesh, device)) {
    sets.resize(shape.size());
    return sets;
  }
  const std::vector<DimCut> cuts = CutsOf(mesh, layout, shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    sets.push_back(PartOf(mesh, cuts[d], shape[d], device));
  }
  return sets;
}

Exchange PlanExchange(const DeviceMesh& mesh, absl::Span<const int64_t> shape, const Layout& source,
                      const Layout& target) {
  const std::vector<DimCut> before = CutsOf(mesh, source, shape.size());
  const std::vector<DimCut> after = CutsOf(mesh, target, shape.size());
  const std::vector<int64_t> largest = source.LocalShape(mesh, shape);
  Exchange exchange;
  std::vector<bool> involved(mesh.num_axes());
  std::vector<size_t> changed;
  int64_t unchanged_elements = 1;
  exchange.permutation = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (SameCut(before[d], after[d])) {
      unchanged_elements *= largest[d];
      continue;
    }
    changed.push_back(d);
    const size_t inside = NestedPrefix(before[d], after[d], shape[d]);
    for (const DimCut* cut : {&before[d], &after[d]}) {
      for (size_t i = inside; i < cut->axes.size(); ++i) involved[cut->axes[i]] = true;
    }
    // Blocks that only get another halo get it from their neighbours.
    const bool moved = before[d].parts == after[d].parts && before[d].pattern == after[d].pattern &&
                       before[d].halo.empty() && after[d].halo.empty();
    const bool widened = before[d].axes == after[d].axes && before[d].pattern == after[d].pattern;
    exchange.permutation = exchange.permutation && (moved || widened);
  }
  int64_t coordinates = 1;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (!involved[a]) continue;
    exchange.axes.push_back(a);
    coordinates *= mesh.size(a);
  }
  const bool enumerate = coordinates <= kMaxCoordinates;
  for (int64_t i = 0; i < (enumerate ? coordinates : 1); ++i) {
    int64_t device = 0, rest = i;
    for (size_t k = exchange.axes.size(); k-- > 0;) {
      const int a = exchange.axes[k];
      device += rest % mesh.size(a) * mesh.stride(a);
      rest /= mesh.size(a);
    }
    int64_t wanted = unchanged_elements, held = unchanged_elements;
    for (size_t d : changed) {
      const IndexSet to = PartOf(mesh, after[d], shape[d], device);
      wanted *= CountOf(to);
      held *= enumerate ? CountCommon(PartOf(mesh, before[d], shape[d], device), to) : 0;
    }
    exchange.received = std::max(exchange.received, wanted - held);
  }
  return exchange;
}

}  // namespace plancast
