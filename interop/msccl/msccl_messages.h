#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_MESSAGES_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interop/msccl/msccl_xml.h"

namespace plancast {

struct MscclStepPlace {
  int32_t rank = -1, block = -1, step = -1;
};

// The k-th send of a connection (source, destination, channel) and its k-th receive.
struct MscclMessage {
  MscclStepPlace from, to;
};

// Every message of the algorithm. InvalidArgument unless one thread block holds
// each end of a connection and both ends have as many messages.
absl::StatusOr<std::vector<MscclMessage>> PairMessages(const MscclAlgorithm& algorithm);

// Both ends of a message name one `cnt`, and what each says of the other is so:
// where a sent chunk is put, and where a received one was. Spans that start at -1
// say nothing.
absl::Status ValidateMessages(const MscclAlgorithm& algorithm);

// Writes into each end of a message what the other does, for programs that were
// not read.
absl::Status TellPeers(MscclAlgorithm& algorithm);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_MESSAGES_H_
