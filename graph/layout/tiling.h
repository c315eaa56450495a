#ifndef PLANCAST_GRAPH_LAYOUT_TILING_H_
#define PLANCAST_GRAPH_LAYOUT_TILING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/layout/domain.h"
#include "graph/layout/layout.h"

namespace plancast {

// A tensor as a grid of tiles, the products of the parts of its dims. Each device of
// a mesh holds one tile, each tile is held by `copies` devices.
struct Tiling {
  std::vector<std::vector<IndexSet>> parts;  // of each dim, as index sets of it
  std::vector<int32_t> tile_of;              // by device; row-major in the parts
  int64_t copies = 1;
  std::vector<int32_t> devices;  // by tile: its copies, ascending

  // The tiles that `layout` gives the devices; axes with partial values count as copies.
  static Tiling Of(const DeviceMesh& mesh, absl::Span<const int64_t> shape, const Layout& layout);

  // Every tile cut into slices, one for each place along `axes`, which hold copies of it:
  // dim d into counts[d] pieces of the rounded-up size, the last ones may be short. The product
  // of the counts is that of the axes' sizes; slices are row-major over the axes.
  Tiling Sliced(const DeviceMesh& mesh, absl::Span<const int> axes,
                absl::Span<const int64_t> counts) const;

  int num_dims() const { return static_cast<int>(parts.size()); }
  int64_t num_tiles() const { return static_cast<int64_t>(devices.size()) / copies; }
  int64_t DeviceOf(int64_t tile, int64_t copy) const { return devices[tile * copies + copy]; }
  // Which part of each dim a tile is, and the reverse.
  std::vector<int> PartsOf(int64_t tile) const;
  int64_t TileAt(absl::Span<const int> part) const;
  int64_t Elements(int64_t tile) const;

 private:
  void ListDevices();
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_TILING_H_
