#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_XML_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_XML_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/programs/chunk_program.h"

// Collective algorithms in the XML of MSCCL and RCCL (github.com/microsoft/msccl,
// src/graph/topo.cc; github.com/ROCm/rccl, src/misc/msccl).

namespace plancast {

// What the XML says of a step beside the step itself.
struct MscclStepNote {
  int32_t line = 0;        // of the file, from 1
  bool published = false;  // hasdep: some step waits for this one
  bool residual = false;   // spelled `ra` (adds whatever the reduction) instead of `re`
};

struct MscclAlgorithm {
  ChunkProgram program;
  // What a chunk program has no use for; absent where the file says nothing.
  std::string collective;  // as spelled there, such as `allreduce`
  std::string reduction;   // redop
  std::optional<int64_t> out_of_place, threads, min_bytes, max_bytes;
  // Of program.ranks[r].blocks[b].steps[s]; empty where nothing was read.
  std::vector<std::vector<std::vector<MscclStepNote>>> notes;
  // What MSCCL would refuse and RCCL or a larger build would take.
  std::vector<std::string> warnings;

  // " (line 12)" of a step that was read, else "".
  std::string LineOf(int32_t rank, int32_t block, int32_t step) const;
};

// Reads and validates: every attribute, thread blocks and steps numbered from 0,
// spans inside their buffers, dependencies on steps that are there and publish,
// every send met by one receive of equal count, both telling the same of it. What
// it computes is not checked here. `what` names the text in errors, which name gpu, thread block,
// step and line.
absl::StatusOr<MscclAlgorithm> ReadMscclAlgorithm(absl::string_view text, absl::string_view what);

// One element per line, attributes in MSCCL's order. InvalidArgument where the
// program exceeds what MSCCL and RCCL execute (kMsccl... below).
absl::StatusOr<std::string> WriteMscclAlgorithm(const MscclAlgorithm& algorithm);
std::string MscclWord(ChunkOp op);  // `rcs`, ...

// Limits of both runtimes.
inline constexpr int32_t kMscclSteps = 256;            // of a thread block
inline constexpr int32_t kMscclBlocksPerChannel = 32;  // that send, or receive, of a GPU
inline constexpr int32_t kMscclCount = 71;             // chunks moved by one step
// MSCCL's own; RCCL takes 32 blocks for each of its channels, of which it has 128.
inline constexpr int32_t kMscclBlocks = 216;
inline constexpr int32_t kMscclChannels = 32;
inline constexpr int32_t kRcclChannels = 128;
// Of this reader.
inline constexpr int32_t kMscclRanks = 4096;
inline constexpr int32_t kMscclChunks = 1 << 20;  // of a buffer

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_XML_H_
