#include "graph/kernel_spec.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace plancast {

bool operator==(const KernelSpec& a, const KernelSpec& b) {
  auto key = [](const KernelSpec& s) {
    return std::tie(s.family, s.label, s.dtype, s.batch, s.m, s.n, s.k, s.row_multiple, s.pass,
                    s.accumulate_fp32, s.quantized_operand, s.alike, s.window, s.stride, s.width,
                    s.channels_last, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim,
                    s.head_dim_v, s.causal, s.backward, s.flops, s.read_bytes, s.write_bytes,
                    s.random_numbers, s.window_points, s.reread_bytes, s.row_bytes, s.launches,
                    s.calls, s.routed, s.gathered_over, s.library);
  };
  return key(a) == key(b);
}

KernelSpec UnderLoad(KernelSpec kernel, double load) {
  const auto scaled = [load](double value) { return std::round(value * load); };
  const auto rows = [load](int64_t count) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(count) * load));
  };
  kernel.flops *= load;
  kernel.reread_bytes = scaled(kernel.reread_bytes);
  kernel.random_numbers = scaled(kernel.random_numbers);
  kernel.window_points *= load;
  if (kernel.family != KernelFamily::kGemm) {
    kernel.read_bytes = scaled(kernel.read_bytes);
    kernel.write_bytes = scaled(kernel.write_bytes);
  } else if (kernel.pass == GemmPass::kWgrad) {
    kernel.k = rows(kernel.k);
    kernel.read_bytes = scaled(kernel.read_bytes);
  } else {
    const double weights =
        std::min(kernel.read_bytes, static_cast<double>(kernel.batch * kernel.n * kernel.k) *
                                        ElementBytes(StorageType(kernel.dtype)));
    kernel.m = rows(kernel.m);
    kernel.read_bytes = weights + scaled(kernel.read_bytes - weights);
    kernel.write_bytes = scaled(kernel.write_bytes);
  }
  return kernel;
}

std::string KernelSpec::DebugString() const {
  const absl::string_view name = kKernelFamilyNames[family], type = DTypeName(dtype);
  switch (family) {
    case KernelFamily::kGemm:
    case KernelFamily::kConvolution: {
      const std::string count = batch > 1 ? absl::StrCat(batch, "x") : "";
      const std::string product =
          absl::StrCat(name, " ", type, " ", count, m, "x", n, "x", k, " ", kGemmPassNames[pass],
                       accumulate_fp32 ? " accumulate" : "",
                       alike > 1 ? absl::StrCat(" of ", alike, " on streams") : "");
      if (family == KernelFamily::kGemm) return product;
      return absl::StrCat(product, " window=", window, " stride=", stride,
                          width > 0 ? absl::StrCat(" width=", width) : "",
                          channels_last ? " channels_last" : "");
    }
    case KernelFamily::kAttention:
      return absl::StrCat(name, " ", type, " batch=", batch, " heads=", heads, "/", kv_heads,
                          " len=", q_len, "x", kv_len, " dim=", head_dim, "/", head_dim_v,
                          causal ? " causal" : "", backward ? " backward" : "",
                          library.empty() ? "" : absl::StrCat(" by ", library));
    case KernelFamily::kMemory:
    case KernelFamily::kOptimizer:
      break;
  }
  return absl::StrCat(name, " ", label, " read=", read_bytes, " write=", write_bytes,
                      random_numbers > 0 ? absl::StrCat(" random=", random_numbers) : "",
                      window_points > 0 ? absl::StrCat(" windows=", window_points) : "");
}

}  // namespace plancast
