#ifndef PLANCAST_EXECUTOR_WHAT_IF_NAMES_H_
#define PLANCAST_EXECUTOR_WHAT_IF_NAMES_H_

#include <array>

#include "graph/execution_graph.h"
#include "graph/kernel_spec.h"

namespace plancast {

// In the order of KernelFamily, Purpose and CollectiveKind.
inline constexpr std::array<const char*, 4> kFamilyNames = {"gemm", "attention", "memory",
                                                            "optimizer"};
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
