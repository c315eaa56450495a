#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_SYMMETRY_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_SYMMETRY_H_

#include <cstdint>
#include <vector>

#include "collectives/synthesis/link_graph.h"

namespace plancast {

using Permutation = std::vector<int32_t>;  // node -> node

// Renamings of nodes that keep every link and its width; at most `most` of them,
// the identity first.
std::vector<Permutation> Automorphisms(const LinkGraph& graph, int32_t most);

// Groups of automorphisms of which none but the identity keeps any node, largest
// first; the last is the identity alone. An algorithm that such a group leaves as
// it is can be searched for on one node of each orbit.
std::vector<std::vector<Permutation>> FreeGroups(const LinkGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_SYMMETRY_H_
