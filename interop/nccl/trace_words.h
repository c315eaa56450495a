#ifndef PLANCAST_INTEROP_NCCL_TRACE_WORDS_H_
#define PLANCAST_INTEROP_NCCL_TRACE_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "interop/nccl/trace_events.h"

namespace plancast {

// A category of NCCL's profiler and where its events stand: those of a lower level
// enclose those of a higher one in the file.
struct NcclCategory {
  absl::string_view name;
  NcclEventKind kind;
  int level;
};

inline constexpr int kNcclStepLevel = 5;
inline constexpr int kNcclWaitLevel = 6;

// nullptr: not NCCL's.
const NcclCategory* FindNcclCategory(absl::string_view name);

// `Send-3-12`, a step of the old proxy profile. False: no such name.
bool ParseProxyStep(absl::string_view name, bool& send, int64_t& peer, int64_t& step);

// `SendGpuWait`, `RecvFlushWait` of the plugin; `GPUWait`, `FlushWait` of the old profile:
// what is waited for, and the direction where the name says it. False: no such name.
bool ParseWait(absl::string_view name, NcclWait& wait, NcclDirection& direction);

// Bytes of an element; 0 if the type is not known. `ncclFloat32`, `ncclBfloat16`, ...
int64_t NcclTypeBytes(absl::string_view datatype);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_TRACE_WORDS_H_
