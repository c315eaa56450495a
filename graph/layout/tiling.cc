#include "graph/layout/tiling.h"

#include <algorithm>

#include "base/int128.h"
#include "graph/layout/redistribution.h"

namespace plancast {
namespace {

// The elements of `set` at the positions [begin, end) of its ascending order.
IndexSet Positions(const IndexSet& set, int64_t begin, int64_t end) {
  IndexSet slice;
  int64_t before = 0;  // elements of the ranges passed
  for (const IndexRange& range : set) {
    const int64_t from = std::max(begin - before, int64_t{0});
    const int64_t to = std::min(end - before, range.size());
    if (from < to) slice.push_back({range.begin + from, range.begin + to});
    before += range.size();
  }
  return slice;
}

}  // namespace

Tiling Tiling::Of(const DeviceMesh& mesh, absl::Span<const int64_t> shape, const Layout& layout) {
  const std::vector<DimCut> cuts = CutsOf(mesh, layout, shape.size());
  Tiling tiling;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<IndexSet>& parts = tiling.parts.emplace_back();
    for (int64_t p = 0; p < cuts[d].parts; ++p) parts.push_back(cuts[d].Indices(shape[d], p));
  }
  std::vector<int> part(shape.size());
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    for (size_t d = 0; d < shape.size(); ++d) {
      part[d] = static_cast<int>(cuts[d].PartOf(mesh, device));
    }
    tiling.tile_of.push_back(static_cast<int32_t>(tiling.TileAt(part)));
  }
  tiling.ListDevices();
  return tiling;
}

Tiling Tiling::Sliced(const DeviceMesh& mesh, absl::Span<const int> axes,
                      absl::Span<const int64_t> counts) const {
  Tiling sliced;
  for (int d = 0; d < num_dims(); ++d) {
    std::vector<IndexSet>& slices = sliced.parts.emplace_back();
    for (const IndexSet& part : parts[d]) {
      const int64_t size = CeilDiv(CountOf(part), counts[d]);
      for (int64_t i = 0; i < counts[d]; ++i) {
        slices.push_back(Positions(part, i * size, (i + 1) * size));
      }
    }
  }
  for (size_t device = 0; device < tile_of.size(); ++device) {
    int64_t slice = 0;
    for (int a : axes) slice = slice * mesh.size(a) + mesh.Coordinate(device, a);
    std::vector<int> part = PartsOf(tile_of[device]);
    for (int d = num_dims(); d-- > 0; slice /= counts[d]) {
      part[d] = static_cast<int>(part[d] * counts[d] + slice % counts[d]);
    }
    sliced.tile_of.push_back(static_cast<int32_t>(sliced.TileAt(part)));
  }
  sliced.ListDevices();
  return sliced;
}

std::vector<int> Tiling::PartsOf(int64_t tile) const {
  std::vector<int> part(parts.size());
  for (int d = num_dims(); d-- > 0;) {
    const int64_t count = static_cast<int64_t>(parts[d].size());
    part[d] = static_cast<int>(tile % count);
    tile /= count;
  }
  return part;
}

int64_t Tiling::TileAt(absl::Span<const int> part) const {
  int64_t tile = 0;
  for (int d = 0; d < num_dims(); ++d) {
    tile = tile * static_cast<int64_t>(parts[d].size()) + part[d];
  }
  return tile;
}

int64_t Tiling::Elements(int64_t tile) const {
  const std::vector<int> part = PartsOf(tile);
  int64_t elements = 1;
  for (int d = 0; d < num_dims(); ++d) elements *= CountOf(parts[d][part[d]]);
  return elements;
}

void Tiling::ListDevices() {
  int64_t tiles = 1;
  for (const std::vector<IndexSet>& dim : parts) tiles *= static_cast<int64_t>(dim.size());
  copies = static_cast<int64_t>(tile_of.size()) / tiles;
  devices.resize(tile_of.size());
  std::vector<int32_t> listed(tiles);
  for (size_t device = 0; device < tile_of.size(); ++device) {
    const int32_t tile = tile_of[device];
    devices[tile * copies + listed[tile]++] = static_cast<int32_t>(device);
  }
}

}  // namespace plancast
