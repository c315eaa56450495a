#include "cost_models/records/kernel_key.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

constexpr absl::string_view kAccumulates = "+fp32";
// A bias or activation that a product's epilogue reads on the side costs next to nothing.
constexpr double kNotable = 1.05;
constexpr int64_t kLargest = int64_t{1} << 50;

struct Named {
  const char* name;
  int64_t KernelSpec::*size;
};
const std::vector<Named>& ProductSizes() {
  static const auto* sizes = new std::vector<Named>{{"batch", &KernelSpec::batch},
                                                    {"m", &KernelSpec::m},
                                                    {"n", &KernelSpec::n},
                                                    {"k", &KernelSpec::k}};
  return *sizes;
}
// Of images whose width nobody told (records of before 2026-11-28): without it.
std::vector<Named> ConvolutionSizes(bool with_width) {
  std::vector<Named> all = ProductSizes();
  all.push_back({"window", &KernelSpec::window});
  all.push_back({"stride", &KernelSpec::stride});
  if (with_width) all.push_back({"width", &KernelSpec::width});
  return all;
}
const std::vector<Named>& AttentionSizes() {
  static const auto* sizes =
      new std::vector<Named>{{"batch", &KernelSpec::batch},       {"heads", &KernelSpec::heads},
                             {"kv_heads", &KernelSpec::kv_heads}, {"q", &KernelSpec::q_len},
                             {"kv", &KernelSpec::kv_len},         {"dim", &KernelSpec::head_dim},
                             {"dim_v", &KernelSpec::head_dim_v}};
  return *sizes;
}

std::string Sizes(const KernelSpec& kernel, const std::vector<Named>& names) {
  std::string out;
  for (const Named& size : names) {
    absl::StrAppend(&out, out.empty() ? "" : " ", size.name, "=", kernel.*size.size);
  }
  return out;
}

int64_t Whole(double bytes) { return std::llround(bytes); }

// Operands and result of a product, once each; an fp32 sum is read and written.
void SetProductTraffic(KernelSpec* kernel, double operand, double result) {
  const auto batch = static_cast<double>(kernel->batch), m = static_cast<double>(kernel->m),
             n = static_cast<double>(kernel->n), k = static_cast<double>(kernel->k);
  kernel->flops = 2 * batch * m * n * k;
  kernel->read_bytes = batch * (m * k + k * n) * operand;
  kernel->write_bytes = batch * m * n * (kernel->accumulate_fp32 ? 8 : result);
}

void SetAttentionTraffic(KernelSpec* kernel) {
  const auto batch = static_cast<double>(kernel->batch), heads = static_cast<double>(kernel->heads),
             kv_heads = static_cast<double>(kernel->kv_heads),
             q = static_cast<double>(kernel->q_len), kv = static_cast<double>(kernel->kv_len),
             dims = static_cast<double>(kernel->head_dim + kernel->head_dim_v);
  const double pairs = kernel->causal && q == kv ? q * (q + 1) / 2 : q * kv;
  const double element = ElementBytes(StorageType(kernel->dtype));
  // Backward: the scores again, and two products each for them and the output.
  kernel->flops = batch * heads * pairs * dims * (kernel->backward ? 5 : 2);
  kernel->read_bytes =
      batch * element * (q * heads * static_cast<double>(kernel->head_dim) + kv * kv_heads * dims);
  kernel->write_bytes = batch * element * q * heads * static_cast<double>(kernel->head_dim_v);
  if (kernel->backward) {
    const double forward = kernel->read_bytes + kernel->write_bytes;
    kernel->write_bytes = kernel->read_bytes;
    kernel->read_bytes =
        forward + batch * element * q * heads * static_cast<double>(kernel->head_dim_v);
  }
}

DType KeyType(const KernelSpec& kernel) {
  const bool product =
      kernel.family == KernelFamily::kGemm || kernel.family == KernelFamily::kConvolution;
  return product || kernel.dtype == DType::kTf32 ? kernel.dtype : StorageType(kernel.dtype);
}

absl::Status Refuse(const KernelKey& key, absl::string_view what, absl::string_view right) {
  return absl::InvalidArgumentError(
      absl::StrCat("kernel `", key.DebugString(), "`: ", what, "; ", right, "."));
}

// Reads `a=1 b=2` into sizes; `bytes` takes the two of memory kernels and the one of
// convolutions.
absl::Status ReadSizes(const KernelKey& key, std::vector<std::pair<std::string, int64_t*>> into) {
  const std::vector<std::string> words = absl::StrSplit(key.shape, ' ', absl::SkipEmpty());
  std::string expected;
  for (const auto& [name, size] : into)
    absl::StrAppend(&expected, expected.empty() ? "" : " ", name, "=");
  if (words.size() != into.size()) {
    return Refuse(key, absl::StrCat("its shape is `", key.shape, "`"),
                  absl::StrCat("give `", expected, "`"));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const int64_t least = into[i].first == "read" || into[i].first == "write" ? 0 : 1;
    if (parts.first != into[i].first || !absl::SimpleAtoi(parts.second, into[i].second)) {
      return Refuse(key, absl::StrCat("its shape has `", words[i], "`"),
                    absl::StrCat("give `", expected, "`"));
    }
    if (*into[i].second < least || *into[i].second > kLargest) {
      return Refuse(key, absl::StrCat("`", into[i].first, "` is ", *into[i].second),
                    absl::StrCat("sizes are from ", least, " to 2^50"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::pair<std::string, int64_t*>> Into(KernelSpec* kernel,
                                                   const std::vector<Named>& names) {
  std::vector<std::pair<std::string, int64_t*>> into;
  for (const Named& size : names) into.emplace_back(size.name, &(kernel->*size.size));
  return into;
}

absl::Status ReadPass(const KernelKey& key, absl::string_view word, KernelSpec* kernel) {
  if (const auto pass = kGemmPassNames.Find(word)) {
    kernel->pass = *pass;
    return absl::OkStatus();
  }
  return Refuse(key, absl::StrCat("its layout is `", key.layout, "`"),
                "passes are `forward`, `dgrad` and `wgrad`");
}

absl::Status ReadProduct(const KernelKey& key, KernelSpec* kernel) {
  kernel->family = KernelFamily::kGemm;
  absl::string_view pass = key.layout;
  kernel->accumulate_fp32 = absl::ConsumeSuffix(&pass, kAccumulates);
  RETURN_IF_ERROR(ReadPass(key, pass, kernel));
  RETURN_IF_ERROR(ReadSizes(key, Into(kernel, ProductSizes())));
  SetProductTraffic(kernel, ElementBytes(kernel->dtype), ElementBytes(StorageType(kernel->dtype)));
  return absl::OkStatus();
}

absl::Status ReadConvolution(const KernelKey& key, KernelSpec* kernel) {
  kernel->family = KernelFamily::kConvolution;
  const std::vector<absl::string_view> words = absl::StrSplit(key.layout, ' ');
  if (words.size() != 2 || (words[1] != "nhwc" && words[1] != "nchw")) {
    return Refuse(key, absl::StrCat("its layout is `", key.layout, "`"),
                  "give pass and images, as in `forward nhwc` or `dgrad nchw`");
  }
  RETURN_IF_ERROR(ReadPass(key, words[0], kernel));
  kernel->channels_last = words[1] == "nhwc";
  int64_t read = 0, write = 0;
  auto into = Into(kernel, ConvolutionSizes(absl::StrContains(key.shape, " width=")));
  into.emplace_back("read", &read);
  into.emplace_back("write", &write);
  RETURN_IF_ERROR(ReadSizes(key, into));
  SetProductTraffic(kernel, 0, 0);
  kernel->read_bytes = static_cast<double>(read);
  kernel->write_bytes = static_cast<double>(write);
  return absl::OkStatus();
}

absl::Status ReadAttention(const KernelKey& key, KernelSpec* kernel) {
  kernel->family = KernelFamily::kAttention;
  for (absl::string_view word : absl::StrSplit(key.layout, ' ', absl::SkipEmpty())) {
    if (word == "causal") {
      kernel->causal = true;
    } else if (word == "backward") {
      kernel->backward = true;
    } else {
      return Refuse(key, absl::StrCat("its layout has `", word, "`"),
                    "words are `causal` and `backward`");
    }
  }
  RETURN_IF_ERROR(ReadSizes(key, Into(kernel, AttentionSizes())));
  SetAttentionTraffic(kernel);
  return absl::OkStatus();
}

absl::Status ReadMemory(const KernelKey& key, KernelFamily family, absl::string_view rule,
                        KernelSpec* kernel) {
  kernel->family = family;
  kernel->label = std::string(rule);
  int64_t read = 0, write = 0, launches = 0;
  RETURN_IF_ERROR(ReadSizes(key, {{"read", &read}, {"write", &write}, {"launches", &launches}}));
  if (rule.empty() || !key.layout.empty()) {
    return Refuse(
        key, rule.empty() ? "it names no rule" : absl::StrCat("its layout is `", key.layout, "`"),
        "give `memory/RULE` or `optimizer/RULE` and no layout");
  }
  kernel->read_bytes = static_cast<double>(read);
  kernel->write_bytes = static_cast<double>(write);
  kernel->launches = static_cast<int>(std::min<int64_t>(launches, 1 << 20));
  return absl::OkStatus();
}

}  // namespace

std::string KernelKey::DebugString() const {
  std::string out = absl::StrCat(op, " ", dtype, " ", shape);
  if (!layout.empty()) absl::StrAppend(&out, " ", layout);
  if (!gpu.empty()) absl::StrAppend(&out, " on ", gpu);
  if (!library.empty()) absl::StrAppend(&out, " by ", library, version.empty() ? "" : " ", version);
  return out;
}

KernelKey KeyOf(const KernelSpec& kernel) {
  KernelKey key;
  key.dtype = std::string(DTypeName(KeyType(kernel)));
  key.op = std::string(kKernelFamilyNames[kernel.family]);
  const absl::string_view pass = kGemmPassNames[kernel.pass];
  switch (kernel.family) {
    case KernelFamily::kGemm:
      key.shape = Sizes(kernel, ProductSizes());
      key.layout = absl::StrCat(pass, kernel.accumulate_fp32 ? kAccumulates : "");
      break;
    case KernelFamily::kConvolution:
      key.shape =
          absl::StrCat(Sizes(kernel, ConvolutionSizes(kernel.width > 0)),
                       " read=", Whole(kernel.read_bytes), " write=", Whole(kernel.write_bytes));
      key.layout = absl::StrCat(pass, kernel.channels_last ? " nhwc" : " nchw");
      break;
    case KernelFamily::kAttention: {
      KernelSpec whole = kernel;
      if (whole.kv_heads < 1) whole.kv_heads = whole.heads;
      if (whole.head_dim_v < 1) whole.head_dim_v = whole.head_dim;
      key.shape = Sizes(whole, AttentionSizes());
      key.layout =
          absl::StrCat(kernel.causal ? "causal" : "", kernel.causal && kernel.backward ? " " : "",
                       kernel.backward ? "backward" : "");
      break;
    }
    case KernelFamily::kMemory:
    case KernelFamily::kOptimizer:
      absl::StrAppend(&key.op, "/", kernel.label);
      key.shape =
          absl::StrCat("read=", Whole(kernel.read_bytes), " write=", Whole(kernel.write_bytes),
                       " launches=", std::max(kernel.launches, 1));
      break;
  }
  return key;
}

absl::StatusOr<KernelSpec> SpecOf(const KernelKey& key) {
  KernelSpec kernel;
  ASSIGN_OR_RETURN(kernel.dtype, ParseDType(key.dtype));
  const std::pair<absl::string_view, absl::string_view> op =
      absl::StrSplit(key.op, absl::MaxSplits('/', 1));
  const auto family = kKernelFamilyNames.Find(op.first);
  const bool names_rule = family == KernelFamily::kMemory || family == KernelFamily::kOptimizer;
  if (!family || (!names_rule && op.first != key.op)) {
    return Refuse(key, absl::StrCat("its op is `", key.op, "`"),
                  "ops are `gemm`, `convolution`, `attention`, `memory/RULE` and `optimizer/RULE`");
  }
  switch (*family) {
    case KernelFamily::kGemm:
      RETURN_IF_ERROR(ReadProduct(key, &kernel));
      break;
    case KernelFamily::kConvolution:
      RETURN_IF_ERROR(ReadConvolution(key, &kernel));
      break;
    case KernelFamily::kAttention:
      RETURN_IF_ERROR(ReadAttention(key, &kernel));
      break;
    case KernelFamily::kMemory:
    case KernelFamily::kOptimizer:
      RETURN_IF_ERROR(ReadMemory(key, *family, op.second, &kernel));
      break;
  }
  return kernel;
}

bool MovesMore(const KernelSpec& kernel) {
  if (kernel.family != KernelFamily::kGemm) return false;
  KernelSpec alone = kernel;
  const double element = ElementBytes(StorageType(kernel.dtype));
  SetProductTraffic(&alone, element, element);
  return kernel.read_bytes + kernel.write_bytes > kNotable * (alone.read_bytes + alone.write_bytes);
}

}  // namespace plancast
