#ifndef PLANCAST_STRATEGY_PROFILE_OPTIMIZER_TYPE_H_
#define PLANCAST_STRATEGY_PROFILE_OPTIMIZER_TYPE_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// What the optimizer does with a gradient; each is a rule of graph/rule/rules/optimizer.rules as
// well. Adam is AdamW, too: decay costs nothing where all is one kernel. Muon orthogonalises the
// momentum of matrices of products and updates all else as Adam does.
enum class OptimizerType : uint8_t {
  kAdam,
  kSgd,
  kSgdMomentum,
  kAdagrad,
  kRmsprop,
  kLion,
  kLamb,
  kMuon
};
inline constexpr auto kOptimizerTypeNames = NamesOf<OptimizerType>(
    "adam", "sgd", "sgd-momentum", "adagrad", "rmsprop", "lion", "lamb", "muon");

// How many numbers it keeps of each weight from step to step, the weight aside: 0 to 2. `matrix`:
// of weights in matrices that Muon updates.
constexpr int Moments(OptimizerType type, bool matrix = false) {
  switch (type) {
    case OptimizerType::kSgd:
      return 0;
    case OptimizerType::kAdam:
    case OptimizerType::kLamb:
      return 2;
    case OptimizerType::kMuon:
      return matrix ? 1 : 2;
    default:
      return 1;
  }
}

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_OPTIMIZER_TYPE_H_
