#ifndef PLANCAST_COMPILER_BIND_AXIS_CUTS_H_
#define PLANCAST_COMPILER_BIND_AXIS_CUTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/device_mesh.h"

namespace plancast {

// Where the axes of a mesh are cut into sub-axes: all that ask for cuts ask here, and the mesh
// has the common refinement of what they want.
class AxisCuts {
 public:
  // Blocks of `ranks` consecutive ranks of `axis` stay together. `by` says in errors who asks.
  void Add(absl::string_view axis, int64_t ranks, absl::string_view by);

  // The mesh with every axis that was asked about cut into sub-axes, `tp.0` the outermost. An axis
  // asked for as a whole alone has an outer part of one rank. Errors: blocks of one axis of which
  // neither size divides the other.
  absl::StatusOr<DeviceMesh> Cut(DeviceMesh mesh) const;

 private:
  std::map<std::string, std::map<int64_t, std::string>> cuts_;  // by axis and ranks, who asked
};

// Of `axes` (outermost first, as DeviceMesh::AxesOf gives them) those that tell `parts` blocks of
// `ranks` ranks apart: where both were asked for, their product is `parts`.
std::vector<int> AxesBetween(const DeviceMesh& mesh, const std::vector<int>& axes, int64_t ranks,
                             int64_t parts);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_AXIS_CUTS_H_
