#ifndef PLANCAST_CLUSTER_NAMED_LINKS_H_
#define PLANCAST_CLUSTER_NAMED_LINKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/machine.h"

namespace plancast {

// Links as users name them: `nic 12`. The sections of a mixed machine have classes of the
// same names; their links are counted on from one to the next.

// Names of link classes, each once, in the order of the machine's classes.
std::vector<std::string> LinkNames(const Machine& machine);

// The classes of a name, in order; none if there is no such link.
std::vector<int> LinkClassesNamed(const Machine& machine, absl::string_view name);

int64_t NumLinksNamed(const Machine& machine, absl::string_view name);

// The link of that number; `number` < NumLinksNamed().
struct LinkPlace {
  int link_class = 0;
  int64_t instance = 0;
};
LinkPlace FindLink(const Machine& machine, absl::string_view name, int64_t number);

// The number of a link.
int64_t LinkNumber(const Machine& machine, int link_class, int64_t instance);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_NAMED_LINKS_H_
