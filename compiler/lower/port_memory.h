#ifndef PLANCAST_COMPILER_LOWER_PORT_MEMORY_H_
#define PLANCAST_COMPILER_LOWER_PORT_MEMORY_H_

#include <cstdint>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/buffer_lives.h"
#include "compiler/lower/buffers.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// What the blocks of a body call its buffers (-1: nothing), and the values that live from the
// forward to the backward one, and from that to the one of weight gradients.
struct BufferTensors {
  const std::vector<int>&saved, &until_weights;
  const std::vector<int>&forward, &backward, &weights;
};

// Fills in the memory of the ports.
void NotePorts(const BodyPlan& plan, const Buffers& buffers, const BytesKept& kept,
               const BufferTensors& tensors, BodyBlocks* blocks);

// Fills in what is kept and has copies (BodyBlocks::kept), but not what is kept in another type.
void NoteKept(const DeviceMesh& mesh, const BodyPlan& plan, const Buffers& buffers,
              const BytesKept& kept, const BufferTensors& tensors, BodyBlocks* blocks);

// Whether a block without tasks hands on more or less than what enters it: the gradients of both
// operands of a sum, a part of a tensor.
bool HandsOnOtherwise(const Buffers& buffers, const std::vector<int>& enters,
                      const std::vector<int>& stays, const std::vector<int>& out_ports);

// Whether something enters a block without tasks that it neither keeps nor hands on: on ranks that
// run nothing of a module.
bool EndsHere(const Buffers& buffers, const std::vector<int>& enters,
              const std::vector<int>& stays);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_PORT_MEMORY_H_
