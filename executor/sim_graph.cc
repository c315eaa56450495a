#include "executor/sim_graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

std::string SimGraph::DebugString() const {
  std::string text;
  for (size_t e = 0; e < entities.size(); ++e) {
    const Entity& entity = entities[e];
    absl::StrAppend(&text, "entity ", e, ": program ", entity.program, ", ", entity.devices,
                    " devices from ", entity.representative, ", speed ", entity.price_row, "\n");
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    absl::StrAppend(&text, "group ", g, ": use ", group.use, ", ", group.groups, " of {",
                    absl::StrJoin(MembersOf(group), " "), "}, realised ", group.realised);
    for (const Fluid::Use& load : LoadsOf(group)) {
      absl::StrAppend(&text, " r", load.resource, "*", load.coefficient_q20);
    }
    absl::StrAppend(&text, "\n");
  }
  for (size_t r = 0; r < resources.size(); ++r) {
    absl::StrAppend(&text, "resource ", r, ": ", resources[r].links, " links of class ",
                    resources[r].link_class, " at ", resources[r].capacity_bytes_per_s, " B/s\n");
  }
  return text;
}

}  // namespace plancast
