#ifndef PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_BLOCKS_H_
#define PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_BLOCKS_H_

#include <vector>

#include "compiler/lower/lower_block.h"
#include "graph/execution/kept_tensors.h"

namespace plancast {

// Blocks of layers whose kept tensors live in host memory between the forward and the
// backward pass, as Transformer Engine's CPU offloading has them: a layer's tensors are
// copied out while the next layer runs, and given up at its end, which waits for the
// copies (two layers' tensors are on the device at once); in the backward pass they are
// copied in while the layer behind runs.

// The out-port that says of the copies alongside a layer that they are over, where `block` is
// the layer's without them: in line with the in-port, behind those of the block.
int CopiesPort(const Block& block);

// The forward block of a layer alongside the copies of what the layer before keeps, which
// begin with the layer; both are over before the next. One in-port and one out-port more,
// last: the copies alongside the layer before, and these, are over. Of its ports the first
// `data_ports` bring the layer's inputs. Collectives of data parallelism wait for nothing
// of this.
BlockTemplate WithCopiesOut(const BlockTemplate& forward, const std::vector<KeptTensor>& before,
                            int data_ports);

// The backward block of a layer. `below`: what is copied in alongside it, for the layer that
// runs next; an out-port more says that it is there. `waits`: an in-port more says that
// this layer's own tensors are there.
BlockTemplate WithCopiesIn(const BlockTemplate& backward, const std::vector<KeptTensor>& below,
                           bool waits, int data_ports);

// The copies by themselves, where no layer runs alongside them; no ports.
BlockTemplate CopiesOut(const std::vector<KeptTensor>& tensors);
BlockTemplate CopiesIn(const std::vector<KeptTensor>& tensors);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_OFFLOAD_BLOCKS_H_
