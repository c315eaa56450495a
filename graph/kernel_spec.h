#ifndef PLANCAST_GRAPH_KERNEL_SPEC_H_
#define PLANCAST_GRAPH_KERNEL_SPEC_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/enum_names.h"
#include "graph/dtype.h"

namespace plancast {

enum class KernelFamily : uint8_t {
  kGemm,         // batch x (m x k)(k x n)
  kAttention,    // fused attention
  kMemory,       // everything bound by memory: norms, activations, adds, casts
  kOptimizer,    // parameter update, memory bound over flat state
  kConvolution,  // a product whose rows are windows of an operand
};
inline constexpr auto kKernelFamilyNames =
    NamesOf<KernelFamily>("gemm", "attention", "memory", "optimizer", "convolution");

// Which of the three GEMMs of a linear layer: y = x w, dx = dy w, dw = dy' x.
enum class GemmPass : uint8_t { kForward, kDgrad, kWgrad };
inline constexpr auto kGemmPassNames = NamesOf<GemmPass>("forward", "dgrad", "wgrad");

// Everything about one kernel on one device that its time depends on. Sizes
// are those of the shard. Two equal specs cost the same; they are hash-consed.
struct KernelSpec {
  KernelFamily family = KernelFamily::kMemory;
  std::string label;           // rule or fusion name, for provenance: `linear`, `rms_norm.bwd`
  DType dtype = DType::kBf16;  // matmul precision
  // kGemm
  int64_t batch = 1, m = 1, n = 1, k = 1;
  // Of a batch: the largest power of two, up to 8, that rows of both operands are multiples of, in
  // elements.
  int64_t row_multiple = 8;
  GemmPass pass = GemmPass::kForward;
  bool accumulate_fp32 = false;  // wgrad added into an fp32 gradient buffer
  // In 8 or 4 bits: the activation (forward) or gradient (backward) comes quantised.
  bool quantized_operand = false;
  // One of so many alike that several streams run in turn: its blocks begin on the SMs that the
  // last ones of another leave.
  int64_t alike = 1;
  // kConvolution: the product above (batch: groups), and
  int64_t window = 1;          // points of a window
  int64_t stride = 1;          // largest step from one window to the next
  int64_t width = 0;           // of the images that result, which tiles cut; 0: not told
  bool channels_last = false;  // as tensor cores read images; else copied on the way in and out
  // kAttention, sizes per device
  int64_t heads = 0, kv_heads = 0, q_len = 0, kv_len = 0, head_dim = 0, head_dim_v = 0;
  bool causal = false, backward = false;
  // All families
  double flops = 0;                        // multiply and add count 2; causal already halved
  double read_bytes = 0, write_bytes = 0;  // at the kernel's border
  double random_numbers = 0;               // drawn, as dropout does
  double window_points = 0;                // multiplied and added, as depthwise convolutions do
  // Of read_bytes, those of rows that are summed up and gone over again (norms, softmax), and the
  // bytes of one row: where rows do not stay on the chip in between they are read once more.
  double reread_bytes = 0, row_bytes = 0;
  int launches = 1;  // GPU kernels launched by the host
  // Host time of the call before them (Python, autograd), in launches; negative: so many of the
  // launches are a CUDA graph's, which takes the host none.
  int calls = 0;
  // Its rows are those of the mean load; devices have more or fewer (Skew).
  bool routed = false;
  // Ranks that its parameters are gathered from while it waits (zero=3): all of them wait for the
  // slowest (RuntimeParams::gather_skew).
  int64_t gathered_over = 1;
  // kAttention: whose kernel (cost_models/attention_kernels.h); empty: the device's best.
  std::string library;

  // What it takes of the host's time, in launches.
  int host_launches() const { return launches == 0 ? 0 : std::max(launches + calls, 0); }

  friend bool operator==(const KernelSpec& a, const KernelSpec& b);
  template <typename H>
  friend H AbslHashValue(H h, const KernelSpec& s) {
    return H::combine(
        std::move(h), s.family, s.label, s.dtype, s.batch, s.m, s.n, s.k, s.row_multiple, s.pass,
        s.accumulate_fp32, s.quantized_operand, s.alike, s.window, s.stride, s.width,
        s.channels_last, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.head_dim_v, s.causal,
        s.backward, s.flops, s.read_bytes, s.write_bytes, s.random_numbers, s.window_points,
        s.reread_bytes, s.row_bytes, s.launches, s.calls, s.routed, s.gathered_over, s.library);
  }
  std::string DebugString() const;  // `gemm bf16 2048x12288x6144 wgrad`
};

// The kernel where `load` times as many rows come: of a product rows, in a weight
// gradient what is summed; weights are read and written as before.
KernelSpec UnderLoad(KernelSpec kernel, double load);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_KERNEL_SPEC_H_
