#include "cluster/topology/path_type.h"

#include "base/enum_names.h"

namespace plancast {
namespace {

constexpr auto kNames = NamesOf<PathType>("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN",
                                          "PHB", "SYS", "NET", "DIS");

}  // namespace

absl::string_view PathTypeName(PathType type) { return kNames[type]; }

bool ParsePathType(absl::string_view name, PathType* type) {
  const auto found = kNames.Find(name);
  if (found) *type = *found;
  return found.has_value();
}

}  // namespace plancast
