#ifndef PLANCAST_COMPILER_PROGRAM_PIPELINE_TRANSFER_H_
#define PLANCAST_COMPILER_PROGRAM_PIPELINE_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/lower/lower_block.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/program_inputs.h"
#include "graph/execution/execution_graph.h"
#include "strategy/plan_options.h"

namespace plancast {

// The tensors that cross a stage border, as one device sends them.
struct PipelineTransfer {
  std::vector<int64_t> port_bytes;  // what the device holds of each; 0: does not cross
  int64_t wire_bytes = 0;           // what it sends; less if the receivers gather
  std::vector<int> gather_axes;     // empty: nothing to gather
  int pp_axis = 0;
  int peer_offset = 0;  // stages from sender to receiver
  int reshard = -1;     // into ExecutionGraph::reshards: between unlike meshes
  // The host waits for every batch of transfers. A batch is a send and the
  // next receive; waiting for the receive stands for both, since waiting for
  // the send before the receive is posted would deadlock a ring of stages.
  bool host_sync = false;

  int ports() const { return static_cast<int>(port_bytes.size()); }
  int64_t buffer_bytes() const;
};

// Whether the border behind a virtual stage has anything to hand on in a phase: forward, or
// gradients back.
bool CrossesIn(const ProgramInputs& inputs, Phase phase, int64_t border);
// What crosses it, to the stage `offset` further on.
PipelineTransfer TransferOver(const ProgramInputs& inputs, const CompiledBody& body, Phase phase,
                              int64_t offset);

// The same between stages with meshes of their own; `before`: as the stage before the border
// holds it.
PipelineTransfer TransferOverBorder(const ProgramInputs& inputs, const BorderCrossing& border,
                                    Phase phase, bool before);

// Whether stages can exchange batch n with their neighbours' batches n - 1 and n + 1 in
// lockstep. That holds while every stage has all its warm-up passes; with no more
// micro-batches than stages some have fewer, and the ring would lock up (Megatron runs that
// case without pairs).
bool CanBlock(const PlanOptions& options);

// Sends and frees the buffers; waits for its in-ports.
BlockTemplate SendBlock(const PipelineTransfer& transfer, StreamKind stream);
// Allocates, receives and gathers; one out-port per tensor.
BlockTemplate ReceiveBlock(const DeviceMesh& mesh, const PipelineTransfer& transfer,
                           StreamKind stream);
// All that tells the blocks of transfers apart, in bytes.
std::string TransferKey(const PipelineTransfer& transfer, StreamKind stream);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PIPELINE_TRANSFER_H_
