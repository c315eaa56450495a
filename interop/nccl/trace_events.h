#ifndef PLANCAST_INTEROP_NCCL_TRACE_EVENTS_H_
#define PLANCAST_INTEROP_NCCL_TRACE_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/timeline/timeline.h"
#include "interop/timeline/trace_json.h"

namespace plancast {

// Who wrote a trace: NCCL 2.12 to 2.22 itself (NCCL_PROXY_PROFILE), or the example
// profiler plugin that came after (NCCL_PROFILE_DUMP_FILE).
enum class NcclTraceDialect : uint8_t { kProxyProfile, kProfilerPlugin };

enum class NcclEventKind : uint8_t {
  kGroupCall,     // ncclGroupStart to ncclGroupEnd
  kCall,          // ncclAllReduce(), ncclSend(), ... on the host
  kLaunch,        // of the kernel
  kGroup,         // what NCCL runs together
  kCollective,    // one collective of one communicator
  kPointToPoint,  // one send or receive
  kCopyEngine,    // a collective by copy engines, and its parts
  kKernel,        // a channel's block on the GPU
  kProxyOp,       // the proxy's share of an operation: one channel and peer
  kStep,          // one chunk that goes through the proxy's buffers
  kWait,          // a state of a step
  kNetwork,       // a verb or socket call of the network plugin
  kProxyThread,   // the proxy thread sleeps, idles, or takes operations
  kOther,
};

enum class NcclDirection : uint8_t { kNone, kSend, kReceive };

// What a step waits for, in NCCL's words: a free buffer; the GPU to fill or drain it;
// the peer to be ready; the network to send; the network to receive; the flush of what was
// received.
enum class NcclWait : uint8_t { kNone, kBuffer, kGpu, kPeer, kSend, kReceive, kFlush };

absl::string_view NcclEventKindName(NcclEventKind kind);  // `collective`, `proxy op`, ...
absl::string_view NcclWaitName(NcclWait wait);            // `buffer`, `gpu`, ...

// What NCCL says of a span of the timeline, beside name and times; -1 and empty where it
// does not. Of the event or of those that enclose it.
struct NcclEvent {
  NcclEventKind kind = NcclEventKind::kOther;
  NcclDirection direction = NcclDirection::kNone;
  NcclWait wait = NcclWait::kNone;
  int64_t rank = -1, channel = -1, peer = -1, step = -1;
  int64_t channels = -1;     // of a collective
  int64_t steps = -1;        // of a proxy op
  int64_t chunk_bytes = -1;  // of a proxy op
  int64_t bytes = -1;        // collective: count times size of the type; proxy op: what it moves
  int64_t count = -1;
  std::string communicator, algorithm, protocol, datatype;
};

struct NcclTrace {
  NcclTraceDialect dialect = NcclTraceDialect::kProfilerPlugin;
  Timeline timeline;
  std::vector<NcclEvent> events;  // one for each span
  TraceProblems problems;
};

// A file of either dialect. Both become collectives > proxy ops > steps > waits, as far
// as they say: the old profile has steps and waits alone, where its `pid` is the channel;
// of the plugin's dump a step is what waits of one id have in common. Files are read as
// they are found, unquoted words and all; what is not understood is in `problems`.
// Errors name `what`: no event, or none of NCCL's.
absl::StatusOr<NcclTrace> ReadNcclTrace(absl::string_view text, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_TRACE_EVENTS_H_
