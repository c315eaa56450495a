#include "cluster/topology/path_type.h"

namespace plancast {
namespace {

constexpr absl::string_view kNames[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                        "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

}  // namespace

absl::string_view PathTypeName(PathType type) { return kNames[static_cast<int>(type)]; }

bool ParsePathType(absl::string_view name, PathType* type) {
  for (int i = 0; i < static_cast<int>(sizeof(kNames) / sizeof(kNames[0])); ++i) {
    if (kNames[i] != name) continue;
    *type = static_cast<PathType>(i);
    return true;
  }
  return false;
}

}  // namespace plancast
