#ifndef PLANCAST_EXECUTOR_SHARING_LINK_SHARING_H_
#define PLANCAST_EXECUTOR_SHARING_LINK_SHARING_H_

#include <cstdint>

namespace plancast {

// How communications share links that are too narrow for all of them.
enum class LinkSharing : uint8_t {
  // Everyone's rate rises alike until a link of theirs is full (RDMA, TCP).
  kMaxMin,
  // Urgent ones first: a class of lower number takes what it can use, max-min
  // among itself; the others share what it leaves (ByteScheduler, P3).
  kPriority,
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_LINK_SHARING_H_
