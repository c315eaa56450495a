#ifndef PLANCAST_STRATEGY_PROFILE_UPDATE_BYTES_H_
#define PLANCAST_STRATEGY_PROFILE_UPDATE_BYTES_H_

#include "graph/dtype.h"
#include "strategy/software_profile.h"

namespace plancast {

// What an update of one weight touches in memory, bytes.
struct UpdateBytes {
  double weight = 0;             // as the optimizer keeps it: read and written
  double rest = 0;               // of remainders (`master int16`): the parameter is read with them
  double copy = 0;               // the parameter, if it is another than what the optimizer keeps
  double first = 0, second = 0;  // moments
};
UpdateBytes UpdateBytesOf(const SoftwareProfile& profile, DType dtype);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_UPDATE_BYTES_H_
