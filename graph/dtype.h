#ifndef PLANCAST_GRAPH_DTYPE_H_
#define PLANCAST_GRAPH_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Element types. kCompute stands for "the model's matmul/activation type" in
// op rules and is resolved when a graph is bound.
enum class DType : uint8_t {
  kCompute,
  kBf16,
  kFp16,
  kFp32,
  kTf32,
  kFp8,
  kMxfp8,
  kNvfp4,
  kInt64,
  kUint8
};

// Bytes of one stored element (activations of fp8/fp4 models are stored in
// bf16: see StorageType).
double ElementBytes(DType type);
// The type activations and weights are kept in when matmuls run in `type`.
DType StorageType(DType type);
absl::string_view DTypeName(DType type);
// `bf16`, `fp16`, ...; the error lists the known names.
absl::StatusOr<DType> ParseDType(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_DTYPE_H_
