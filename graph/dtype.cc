#include "graph/dtype.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

struct TypeFacts {
  DType type;
  absl::string_view name;
  double bytes;
  DType storage;
};

// The 8- and 4-bit formats count their block scales: mxfp8 has one 8-bit scale
// per 32 elements, nvfp4 one per 16.
constexpr TypeFacts kFacts[] = {
    {DType::kCompute, "compute", 2, DType::kCompute},
    {DType::kBf16, "bf16", 2, DType::kBf16},
    {DType::kFp16, "fp16", 2, DType::kFp16},
    {DType::kFp32, "fp32", 4, DType::kFp32},
    {DType::kTf32, "tf32", 4, DType::kFp32},
    {DType::kFp8, "fp8", 1, DType::kBf16},
    {DType::kMxfp8, "mxfp8", 1 + 1.0 / 32, DType::kBf16},
    {DType::kNvfp4, "nvfp4", 0.5 + 1.0 / 16, DType::kBf16},
    {DType::kInt64, "int64", 8, DType::kInt64},
    {DType::kUint8, "uint8", 1, DType::kUint8},
};

const TypeFacts& FactsOf(DType type) { return kFacts[static_cast<int>(type)]; }

}  // namespace

double ElementBytes(DType type) { return FactsOf(type).bytes; }
DType StorageType(DType type) { return FactsOf(type).storage; }
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
