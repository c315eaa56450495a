#ifndef PLANCAST_CLUSTER_DEVICE_MESH_H_
#define PLANCAST_CLUSTER_DEVICE_MESH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plancast {

// One named axis of a mesh. Axes are listed outermost first; the last axis
// varies fastest over consecutive devices.
struct MeshAxis {
  std::string name;
  int64_t size = 1;

  friend bool operator==(const MeshAxis& a, const MeshAxis& b) {
    return a.name == b.name && a.size == b.size;
  }
};

// A logical grid over the first `num_devices()` devices of a machine.
//
// Invariants:
//  - axis names are unique and non-empty, sizes are >= 1;
//  - device id = sum over axes of coordinate * stride, the last axis has
//    stride 1.
// An axis may be cut into sub-axes (`Subdivide`), named `tp.0`, `tp.1`, ...,
// outermost first; `root(axis)` gives the name before the dot. A view is another
// name for some of the axes (`ep`, the expert-parallel ones).
class DeviceMesh {
 public:
  static absl::StatusOr<DeviceMesh> Create(std::vector<MeshAxis> axes);

  DeviceMesh() = default;

  int num_axes() const { return static_cast<int>(axes_.size()); }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  const MeshAxis& axis(int index) const { return axes_[index]; }
  int64_t size(int index) const { return axes_[index].size; }
  // Devices along several axes: the product of their sizes.
  int64_t SizeOf(absl::Span<const int> axes) const {
    int64_t size = 1;
    for (int axis : axes) size *= axes_[axis].size;
    return size;
  }
  // The axis' name before the dot: `tp` of `tp.1`.
  absl::string_view root(int index) const {
    const absl::string_view name = axes_[index].name;
    size_t end = 0;
    while (end < name.size() && name[end] != '.') ++end;
    return name.substr(0, end);
  }
  int64_t stride(int index) const { return strides_[index]; }
  int64_t num_devices() const { return num_devices_; }

  // Index of the axis called `name`; the error lists the axes and suggests.
  absl::StatusOr<int> FindAxis(absl::string_view name) const;

  // All axes whose root is `name` (one unless subdivided), or those of the view of
  // that name; outermost first.
  std::vector<int> AxesOf(absl::string_view name) const;

  // Calls `axes` by the name `view` as well. Subdivide forgets views.
  void AddView(absl::string_view view, std::vector<int> axes);

  // The axis cut into sub-axes of these sizes (their product is its size).
  absl::StatusOr<DeviceMesh> Subdivide(int axis, absl::Span<const int64_t> sizes) const;

  int64_t Coordinate(int64_t device, int axis) const {
    return device / strides_[axis] % axes_[axis].size;
  }

  // `pp=4 dp=2 tp=8`, outermost first.
  std::string DebugString() const;

  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b) { return a.axes_ == b.axes_; }

 private:
  explicit DeviceMesh(std::vector<MeshAxis> axes);

  std::vector<MeshAxis> axes_;
  std::vector<int64_t> strides_;
  std::vector<std::pair<std::string, std::vector<int>>> views_;
  int64_t num_devices_ = 1;
};

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_DEVICE_MESH_H_
