#ifndef PLANCAST_EXECUTOR_WHAT_IF_NAMES_H_
#define PLANCAST_EXECUTOR_WHAT_IF_NAMES_H_

#include <array>
#include <cstddef>

#include "graph/execution/execution_graph.h"
#include "graph/kernel_spec.h"

namespace plancast {

// A switch, so that a family that is added is asked for (-Wswitch).
constexpr const char* FamilyName(KernelFamily family) {
  switch (family) {
    case KernelFamily::kGemm:
      return "gemm";
    case KernelFamily::kAttention:
      return "attention";
    case KernelFamily::kMemory:
      return "memory";
    case KernelFamily::kOptimizer:
      return "optimizer";
    case KernelFamily::kConvolution:
      return "convolution";
  }
  return "";
}

// In the order of KernelFamily, Purpose and CollectiveKind.
inline constexpr std::array kFamilyNames = {
    FamilyName(KernelFamily::kGemm), FamilyName(KernelFamily::kAttention),
    FamilyName(KernelFamily::kMemory), FamilyName(KernelFamily::kOptimizer),
    FamilyName(KernelFamily::kConvolution)};
static_assert(kFamilyNames.size() == static_cast<size_t>(KernelFamily::kConvolution) + 1);
inline constexpr std::array<const char*, kNumPurposes> kPurposeNames = {
    "forward", "backward", "recompute", "tp",        "dp",   "pp",
    "cp",      "ep",       "offload",   "optimizer", "other"};
inline constexpr std::array<CollectiveKind, 10> kCollectives = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather,  CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kPermute,    CollectiveKind::kSendRecv,
    CollectiveKind::kBroadcast, CollectiveKind::kCopyToHost, CollectiveKind::kCopyToDevice,
    CollectiveKind::kHostUpdate};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_WHAT_IF_NAMES_H_
