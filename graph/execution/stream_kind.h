#ifndef PLANCAST_GRAPH_EXECUTION_STREAM_KIND_H_
#define PLANCAST_GRAPH_EXECUTION_STREAM_KIND_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// In-order queues of one device.
enum class StreamKind : uint8_t {
  kCompute,
  kModelComm,   // tensor/sequence-parallel collectives
  kExpertComm,  // exchanges between the ranks of experts: a communicator of their own
  kGradComm,    // gradient and parameter collectives of data parallelism
  kSendNext,    // pipeline point-to-point, one queue per neighbour, direction and phase: what
  kRecvPrev,    // goes forward through the model on to the next stage,
  kSendPrev,    // and back to the one before
  kRecvNext,
  kReplicaComm,  // sums over the replicas of sharded data parallelism
  kCopyOut,      // device memory to host memory
  kCopyIn,
  kPeerOut,  // to devices of another stage that keep activations for this one, and back
  kPeerIn,
  kForwardToPrev,  // where layers go on at the stage before (stage_placement.h): the other way
                   // round
  kForwardFromNext,
  kBackwardToNext,
  kBackwardFromPrev,
  kAllStages,  // collectives of all stages that no compute of this step waits for
};
// As Python sees them.
inline constexpr auto kStreamNames = NamesOf<StreamKind>(
    "compute", "model_comm", "expert_comm", "grad_comm", "send_next", "recv_prev", "send_prev",
    "recv_next", "replica_comm", "copy_out", "copy_in", "peer_out", "peer_in", "forward_to_prev",
    "forward_from_next", "backward_to_next", "backward_from_prev", "all_stages");
inline constexpr int kNumStreams = kStreamNames.size();
// Of the two programs of a transfer, the one whose stream this is gives.
constexpr bool Sends(StreamKind stream) {
  return stream == StreamKind::kSendNext || stream == StreamKind::kSendPrev ||
         stream == StreamKind::kPeerOut || stream == StreamKind::kForwardToPrev ||
         stream == StreamKind::kBackwardToNext;
}
// The queue of what crosses from stage to stage going forward through the model, or back, where
// its layers go `onward` to a later stage, or else to one before.
constexpr StreamKind PipelineStream(bool forward, bool onward, bool sends) {
  if (forward && onward) return sends ? StreamKind::kSendNext : StreamKind::kRecvPrev;
  if (forward) return sends ? StreamKind::kForwardToPrev : StreamKind::kForwardFromNext;
  if (onward) return sends ? StreamKind::kSendPrev : StreamKind::kRecvNext;
  return sends ? StreamKind::kBackwardToNext : StreamKind::kBackwardFromPrev;
}
using StreamMask = uint32_t;  // a set of them: bit 1 << stream
static_assert(kNumStreams <= 32);
constexpr StreamMask MaskOf(int stream) { return static_cast<StreamMask>(1u << stream); }
constexpr StreamMask MaskOf(StreamKind stream) { return MaskOf(static_cast<int>(stream)); }

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_STREAM_KIND_H_
