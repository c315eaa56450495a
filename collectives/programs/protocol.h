#ifndef PLANCAST_COLLECTIVES_PROGRAMS_PROTOCOL_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_PROTOCOL_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// How NCCL, and libraries made from it, hand over a message: with a flag in every 8 or 128
// bytes that the receiver watches, or in chunks that a counter announces.
enum class Protocol : uint8_t { kLl, kLl128, kSimple };
inline constexpr auto kProtocolNames = NamesOf<Protocol>("LL", "LL128", "Simple");
inline constexpr int kNumProtocols = kProtocolNames.size();

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_PROTOCOL_H_
