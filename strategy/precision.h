#ifndef PLANCAST_STRATEGY_PRECISION_H_
#define PLANCAST_STRATEGY_PRECISION_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "graph/dtype.h"
#include "strategy/profile/optimizer_type.h"

namespace plancast {

// Types of storage and wire, and of the optimizer that they are for, that one forecast asks for in
// place of the software profile's; absent: as the profile says. proto/software_profile.proto
// documents each.
struct Precision {
  std::optional<DType> grad, main_grad, reduce, gather, param;
  std::optional<DType> attention;  // of fused attention: 16 bits, fp8 or mxfp8
  std::optional<bool> keeps_master;
  std::optional<DType> master;
  std::optional<OptimizerType> optimizer;
  std::optional<DType> state;         // of both moments, unless
  std::optional<DType> second_state;  // the second has another

  bool empty() const { return DebugString().empty(); }
  // ` grad fp32 state int8`; empty where nothing is asked for.
  std::string DebugString() const;

  friend bool operator==(const Precision& a, const Precision& b) {
    return a.DebugString() == b.DebugString();
  }
};

// From words by option: `grad_dtype`, `main_grad_dtype`, `reduce_dtype`, `gather_dtype`,
// `param_dtype`, `attention_dtype` are types; `state_dtype` is one or FIRST+SECOND (`fp8+fp16`),
// `master` is `on`, `off` or a type, `optimizer_type` one of kOptimizerTypeNames or `adamw`. Errors
// name the option and what it may be.
absl::StatusOr<Precision> ParsePrecision(const std::map<std::string, std::string>& options);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PRECISION_H_
