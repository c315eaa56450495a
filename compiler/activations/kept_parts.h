#ifndef PLANCAST_COMPILER_ACTIVATIONS_KEPT_PARTS_H_
#define PLANCAST_COMPILER_ACTIVATIONS_KEPT_PARTS_H_

#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Layers that keep a part of what they have in common with other ranks (ZeRO-R's partitioned
// activations, Rajbhandari et al. 2020; Megatron's --distribute-saved-activations): behind the
// forward pass a rank copies its part and gives up the rest, and before the backward pass the
// ranks gather it.

// Of what a body keeps, the tensors with copies on ranks of `axes`, and those axes of theirs.
std::vector<KeptCopies> KeptOver(const BodyBlocks& body, const std::vector<int>& axes);

// The forward and the backward block of a layer with that. Ports stay as they are.
BlockTemplate KeepingParts(const BlockTemplate& forward, const std::vector<KeptCopies>& kept,
                           const DeviceMesh& mesh);
BlockTemplate GatheringParts(const BlockTemplate& backward, const std::vector<KeptCopies>& kept,
                             const DeviceMesh& mesh);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_KEPT_PARTS_H_
