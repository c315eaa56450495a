#include "cluster/device_mesh.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"

namespace plancast {
namespace {

void AppendAxis(std::string* out, const MeshAxis& axis) {
  absl::StrAppend(out, axis.name, "=", axis.size);
}

}  // namespace

DeviceMesh::DeviceMesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  strides_.resize(axes_.size());
  for (size_t i = axes_.size(); i-- > 0;) {
    strides_[i] = num_devices_;
    num_devices_ *= axes_[i].size;
  }
}

absl::StatusOr<DeviceMesh> DeviceMesh::Create(std::vector<MeshAxis> axes) {
  absl::flat_hash_set<std::string> names;
  int64_t devices = 1;
  for (const MeshAxis& axis : axes) {
    if (axis.name.empty()) return absl::InvalidArgumentError("a mesh axis needs a name.");
    if (!names.insert(axis.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh axis `", axis.name, "` is there twice; names must be unique."));
    }
    if (axis.size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh axis `", axis.name, "` has size ", axis.size, "; sizes start at 1."));
    }
    // Ids and element counts are multiplied by the device count later on.
    if (axis.size > std::numeric_limits<int32_t>::max() / devices) {
      return absl::InvalidArgumentError(absl::StrCat("mesh ", absl::StrJoin(axes, " ", AppendAxis),
                                                     " has more than 2^31 devices."));
    }
    devices *= axis.size;
  }
  return DeviceMesh(std::move(axes));
}

absl::StatusOr<int> DeviceMesh::FindAxis(absl::string_view name) const {
  for (int a = 0; a < num_axes(); ++a) {
    if (axes_[a].name == name) return a;
  }
  std::vector<std::string> names, sized;
  for (const MeshAxis& axis : axes_) {
    names.push_back(axis.name);
    sized.push_back(absl::StrCat("`", axis.name, "` (", axis.size, ")"));
  }
  return absl::NotFoundError(absl::StrCat("no mesh axis `", name, "`; the mesh has ",
                                          sized.empty() ? "none" : absl::StrJoin(sized, ", "), ".",
                                          DidYouMean(name, names)));
}

void DeviceMesh::AddView(absl::string_view view, std::vector<int> axes) {
  views_.emplace_back(view, std::move(axes));
}

std::vector<int> DeviceMesh::AxesOf(absl::string_view name) const {
  for (const auto& [view, axes] : views_) {
    if (view == name) return axes;
  }
  std::vector<int> axes;
  for (int a = 0; a < num_axes(); ++a) {
    if (axes_[a].name == name || root(a) == name) axes.push_back(a);
  }
  return axes;
}

absl::StatusOr<DeviceMesh> DeviceMesh::Subdivide(int axis, absl::Span<const int64_t> sizes) const {
  if (axis < 0 || axis >= num_axes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no mesh axis ", axis, "; the mesh has ", num_axes(), " axes."));
  }
  int64_t rest = axes_[axis].size;
  bool divides = !sizes.empty();
  for (int64_t size : sizes) {
    divides = divides && size >= 1 && rest % size == 0;
    if (divides) rest /= size;
  }
  if (!divides || rest != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot cut axis `", axes_[axis].name, "` of size ", axes_[axis].size,
                     " into ", absl::StrJoin(sizes, " x "), "; the product must be the size."));
  }
  std::vector<MeshAxis> axes(axes_.begin(), axes_.begin() + axis);
  for (size_t i = 0; i < sizes.size(); ++i) {
    axes.push_back({absl::StrCat(axes_[axis].name, ".", i), sizes[i]});
  }
  axes.insert(axes.end(), axes_.begin() + axis + 1, axes_.end());
  return Create(std::move(axes));
}

std::string DeviceMesh::DebugString() const { return absl::StrJoin(axes_, " ", AppendAxis); }

}  // namespace plancast
