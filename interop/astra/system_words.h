#ifndef PLANCAST_INTEROP_ASTRA_SYSTEM_WORDS_H_
#define PLANCAST_INTEROP_ASTRA_SYSTEM_WORDS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/astra/simulator/astra_network.h"
#include "interop/astra/simulator/astra_system.h"

// The words of ASTRA-sim's files. Errors name the word and those that would do,
// without a place.

namespace plancast {

// `Ring`, `FullyConnected`, `Switch`.
absl::StatusOr<AstraWiring> AstraWiringFrom(absl::string_view word);

// `ring`, `direct`, `direct4`, `halvingDoubling`, `doubleBinaryTree`, and `oneRing`,
// `oneDirect`, `oneHalvingDoubling`.
absl::StatusOr<AstraAlgorithm> AstraAlgorithmFrom(absl::string_view word);

// `LIFO`, `FIFO`, `EXPLICIT`.
absl::StatusOr<AstraSystem::Order> AstraOrderFrom(absl::string_view word);

// `baseline`, `localBWAware`: whether it is the latter.
absl::StatusOr<bool> AstraOptimizationFrom(absl::string_view word);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SYSTEM_WORDS_H_
