#ifndef PLANCAST_INTEROP_CHAKRA_VERIFY_TRACES_H_
#define PLANCAST_INTEROP_CHAKRA_VERIFY_TRACES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "interop/chakra/chakra_trace.h"

namespace plancast {

// The ranks of every process group, in the order of the file; group 0, all ranks,
// is not in it.
using CommGroups = std::map<int64_t, std::vector<int64_t>>;

// Whether the traces of ranks 0, 1, ... can run together: peers and groups are
// there, all members of a group issue the same collectives in the same order (by
// id, as ASTRA-sim does among nodes that are free), and to every send there is one
// receive of its tag and size, k-th to k-th. Errors name ranks and nodes.
absl::Status VerifyTraces(const std::vector<const ChakraTrace*>& traces, const CommGroups& groups);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_VERIFY_TRACES_H_
