#ifndef PLANCAST_STRATEGY_PROFILE_OP_PROFILE_H_
#define PLANCAST_STRATEGY_PROFILE_OP_PROFILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "base/memo_key.h"
#include "graph/dtype.h"

namespace plancast {

// What a software profile (software_profile.h) says of single ops, by rule.

// Kernels beside an op's own; proto ExtraKernels documents them.
struct ExtraKernels {
  int forward_passes = 0, backward_passes = 0;
  bool fp32 = false;
  int forward_casts = 0, backward_casts = 0;
  int metrics = 0;
  int forward_small = 0, backward_small = 0;
  std::optional<int> forward_calls, backward_calls;
  PLANCAST_KEY_FIELDS(ExtraKernels, forward_passes, backward_passes, fp32, forward_casts,
                      backward_casts, metrics, forward_small, backward_small, forward_calls,
                      backward_calls)
};

// Tensors of an op beside those of its rule; proto OpMemory documents them.
struct ExtraTensor {
  std::string name, like;
  double element_bytes = 0;
  std::string transposes;
  bool shared = false, early = false, gathered = false;
  std::vector<std::string> over;
  std::string cut = {};
  PLANCAST_KEY_FIELDS(ExtraTensor, name, like, element_bytes, transposes, shared, early, gathered,
                      over, cut)
};
struct OpMemory {
  std::vector<ExtraTensor> saved, forward, backward, persistent;
  std::set<std::string> not_saved, pinned_inputs;
  bool gradients_over_inputs = false;
  PLANCAST_KEY_FIELDS(OpMemory, saved, forward, backward, persistent, not_saved, pinned_inputs,
                      gradients_over_inputs)
};

// Whose scales of blocks come out of quantisation in the order that products read them in: both
// operands', those of activations and gradients but not weights, or neither's.
enum class OrderedScales : uint8_t { kBoth, kActivations, kNone };
inline constexpr auto kOrderedScalesNames = NamesOf<OrderedScales>("both", "activations", "none");

// Quantising one operand of a product in 8 or 4 bits.
struct Quantization {
  int launches = 0;
  OrderedScales ordered = OrderedScales::kBoth;
  PLANCAST_KEY_FIELDS(Quantization, launches, ordered)
};

// What the host does for ops beside launching kernels, in launches.
struct HostCallsOfOps {
  int forward = 0, backward = 0;           // of an op that `extra` says nothing of
  std::map<DType, Quantization> quantize;  // by type of product
  std::set<std::string> waits;             // rules behind whose forward kernels it waits
  bool blocking = false;                   // it waits for everything that it launches
  std::map<std::string, std::vector<std::string>> scopes;  // ops of CUDA graphs of layers
  std::set<std::string> captured;                          // scopes that are
  PLANCAST_KEY_FIELDS(HostCallsOfOps, forward, backward, quantize, waits, blocking, scopes,
                      captured)

  // Whether a CUDA graph holds the op; `begins`: it is the first that is named there.
  bool Captures(absl::string_view op, bool* begins) const;
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_OP_PROFILE_H_
