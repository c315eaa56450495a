#ifndef PLANCAST_GRAPH_DTYPE_H_
#define PLANCAST_GRAPH_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Element types, of products, of storage and on the wire. kCompute stands for "the
// model's matmul/activation type" in op rules and is resolved when a graph is bound.
// kFp8 has a scale per tensor, kFp8Row one per row, kFp8Block one per 128 elements of
// an activation (and per 128 x 128 of a weight, which is not counted).
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
  kUint8,
  kFp8Row,
  kFp8Block,
  kInt16,
  kInt8,
  kInt4
};

// Bytes of one stored element with its share of the scales of its block, on average
// (activations of fp8/fp4 models are stored in bf16: see StorageType).
double ElementBytes(DType type);
// Bytes of `n` stored elements: whole bytes and whole blocks' scales. A scale of the
// whole tensor is not counted (4 bytes).
int64_t StoredBytes(DType type, int64_t n);
// Bytes of one element in a collective: ElementBytes, but that blocks of integers are
// larger there (ZeRO++).
double WireBytes(DType type);
// The type activations and weights are kept in when matmuls run in `type`.
DType StorageType(DType type);
// Whether products in this type quantise their operands: 8 and 4 bits.
bool IsQuantized(DType type);
// Of the formats of 8 bits: products of these types run on the same units.
bool IsFp8(DType type);
// Elements that share a scale; 0: none do, or all.
int ScaleBlock(DType type);
// Whether tensor cores read the scales of its blocks in an order of their own (OCP's and NVIDIA's
// formats on Blackwell; cuBLAS, *1D Block Scaling Factors Layout*).
bool HasOrderedScales(DType type);
absl::string_view DTypeName(DType type);
// `bf16`, `fp16`, ...; the error lists the known names.
absl::StatusOr<DType> ParseDType(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_DTYPE_H_
