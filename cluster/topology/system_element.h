#ifndef PLANCAST_CLUSTER_TOPOLOGY_SYSTEM_ELEMENT_H_
#define PLANCAST_CLUSTER_TOPOLOGY_SYSTEM_ELEMENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// One element of NCCL's description of the hosts that a communicator sees, as
// `NCCL_TOPO_DUMP_FILE` writes it: `system` holds `cpu`s (one per NUMA node), those
// hold `pci`s and `nic`s, those `gpu`s and `net`s. Every attribute is kept as it was
// written, so that what one tool knows survives another; topology.h makes sense of
// them.
struct SystemElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<SystemElement> children;
  int line = 0;  // of the file it was read from, 0 if none; never compared

  // The value of an attribute, or nullptr.
  const std::string* Find(absl::string_view key) const;
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }
  // Overwrites the attribute, or adds it behind the others.
  void Set(absl::string_view key, absl::string_view value);
  SystemElement& Add(absl::string_view child_name);

  // "<gpu> of line 12", or "<gpu>".
  std::string Place() const;

  // Attributes that have to be there; those with a `fallback` need not.
  absl::StatusOr<std::string> Text(absl::string_view key) const;
  absl::StatusOr<int64_t> Integer(absl::string_view key) const;
  absl::StatusOr<int64_t> Integer(absl::string_view key, int64_t fallback) const;
  absl::StatusOr<double> Number(absl::string_view key, double fallback) const;
};

// Names, attributes (in any order) and children (in order).
bool operator==(const SystemElement& a, const SystemElement& b);
inline bool operator!=(const SystemElement& a, const SystemElement& b) { return !(a == b); }

// Calls `visit(element)` for `root` and all below it, parents first. Works on const
// and other elements.
template <typename Element, typename Visit>
void ForEachElement(Element& root, const Visit& visit) {
  visit(root);
  for (auto& child : root.children) ForEachElement(child, visit);
}

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_SYSTEM_ELEMENT_H_
