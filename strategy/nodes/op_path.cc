#include "strategy/nodes/op_path.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

ModulePath PathOf(const Segment& segment, const OpNode& op, int64_t layer, int64_t layers,
                  std::string* text) {
  *text = absl::StrCat(ModelGraph::PathOf(segment), ".", op.name);
  ModulePath path = ModulePath::Of(*text);
  path.list = -1;
  if (!segment.in_list()) return path;
  path.list = static_cast<int>(std::count(segment.path.begin(), segment.path.end(), '.')) + 1;
  path.index = layer;
  path.count = layers;
  return path;
}

ModelPaths PathsOf(const ModelGraph& graph) {
  ModelPaths paths;
  for (const Segment& segment : graph.segments) {
    const std::string prefix = absl::StrCat(ModelGraph::PathOf(segment), ".");
    for (const OpNode& op : graph.bodies[segment.body].ops) paths.ops.push_back(prefix + op.name);
    if (!segment.in_list()) continue;
    if (paths.lists.empty() || paths.lists.back().path != segment.path) {
      paths.lists.push_back({segment.path, 0});
    }
    paths.lists.back().layers += segment.repeat;
  }
  return paths;
}

}  // namespace plancast
