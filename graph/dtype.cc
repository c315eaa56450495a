#include "graph/dtype.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/enum_names.h"

namespace plancast {
namespace {

struct TypeFacts {
  DType type;
  absl::string_view name;
  int bits;
  DType storage;
  int block = 0, scale_bytes = 0;  // elements that share a scale; 0: none, or all
  int wire_block = 0;              // 0: as stored
};

// Scales of blocks:
//   mxfp8   8 bits for 32 elements (OCP Microscaling Formats 1.0)
//   nvfp4   8 bits for 16 elements (NVIDIA Transformer Engine, NVFP4)
//   fp8-block  fp32 for 128 elements (DeepSeek-V3, section 3.3.2)
//   int8    fp32 for 256 elements (bitsandbytes, optim/optimizer.py: absmax)
//   int4    fp32 for 128 elements (torchao, optim/subclass_4bit.py)
// On the wire ZeRO++ has integers in groups of up to 8000, 4096 for tensors of a
// power of two (DeepSpeed, runtime/zero/partition_parameters.py, CUDAQuantizer).
constexpr TypeFacts kFacts[] = {
    {DType::kCompute, "compute", 16, DType::kCompute},
    {DType::kBf16, "bf16", 16, DType::kBf16},
    {DType::kFp16, "fp16", 16, DType::kFp16},
    {DType::kFp32, "fp32", 32, DType::kFp32},
    {DType::kTf32, "tf32", 32, DType::kFp32},
    {DType::kFp8, "fp8", 8, DType::kBf16},
    {DType::kMxfp8, "mxfp8", 8, DType::kBf16, 32, 1},
    {DType::kNvfp4, "nvfp4", 4, DType::kBf16, 16, 1},
    {DType::kInt64, "int64", 64, DType::kInt64},
    {DType::kUint8, "uint8", 8, DType::kUint8},
    {DType::kFp8Row, "fp8-row", 8, DType::kBf16},
    {DType::kFp8Block, "fp8-block", 8, DType::kBf16, 128, 4},
    {DType::kInt16, "int16", 16, DType::kInt16},
    {DType::kInt8, "int8", 8, DType::kInt8, 256, 4, 4096},
    {DType::kInt4, "int4", 4, DType::kInt4, 128, 4, 4096},
};
static_assert(kHasValues<DType, std::size(kFacts)>);

const TypeFacts& FactsOf(DType type) { return kFacts[static_cast<int>(type)]; }

double BytesWithBlocks(const TypeFacts& facts, int block) {
  return facts.bits / 8.0 + (block > 0 ? static_cast<double>(facts.scale_bytes) / block : 0);
}

}  // namespace

double ElementBytes(DType type) { return BytesWithBlocks(FactsOf(type), FactsOf(type).block); }

double WireBytes(DType type) {
  const TypeFacts& facts = FactsOf(type);
  return BytesWithBlocks(facts, facts.wire_block > 0 ? facts.wire_block : facts.block);
}

int64_t StoredBytes(DType type, int64_t n) {
  const TypeFacts& facts = FactsOf(type);
  const int64_t blocks = facts.block > 0 ? (n + facts.block - 1) / facts.block : 0;
  return (n * facts.bits + 7) / 8 + blocks * facts.scale_bytes;
}

DType StorageType(DType type) { return FactsOf(type).storage; }
bool IsQuantized(DType type) { return IsFp8(type) || type == DType::kNvfp4; }
bool IsFp8(DType type) {
  return type == DType::kFp8 || type == DType::kFp8Row || type == DType::kFp8Block ||
         type == DType::kMxfp8;
}
int ScaleBlock(DType type) { return FactsOf(type).block; }
bool HasOrderedScales(DType type) { return type == DType::kMxfp8 || type == DType::kNvfp4; }
absl::string_view DTypeName(DType type) { return FactsOf(type).name; }

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  std::vector<std::string> known;
  for (const TypeFacts& facts : kFacts) {
    if (facts.type == DType::kCompute) continue;
    if (facts.name == name) return facts.type;
    known.push_back(absl::StrCat("`", facts.name, "`"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no element type `", name, "`; known: ", absl::StrJoin(known, ", "), "."));
}

}  // namespace plancast
