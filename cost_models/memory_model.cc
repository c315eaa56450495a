#include "cost_models/memory_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Random numbers of kernels that drop out come from Philox 4x32-10 (Salmon et al.,
// SC'11): for four of them ten rounds of two wide products, at half rate, and of two
// exclusive ors and two additions, so 20 instructions each; to compare, to scale and to
// change types takes eight more.
constexpr double kInstructionsPerRandomNumber = 28;
// Integer lanes of an SM, Volta to Hopper.
constexpr double kIntegerLanes = 64;

double DrawingSeconds(const KernelSpec& kernel, const DeviceType& device) {
  const double rate = device.sms * kIntegerLanes * device.boost_mhz * 1e6;
  return rate > 0 ? kernel.random_numbers * kInstructionsPerRandomNumber / rate : 0;
}

// Points of windows that an SM multiplies and adds a clock in depthwise convolutions, their forward
// and two backward passes together, tensors of two and of four bytes. No kernels alone are
// published: what whole steps of EfficientNet take beyond everything else (docs/cost_models.md).
constexpr double kNarrowPoints = 3.4, kWidePoints = 1.5;

double WindowSeconds(const KernelSpec& kernel, const DeviceType& device) {
  const bool narrow = ElementBytes(StorageType(kernel.dtype)) < ElementBytes(DType::kFp32);
  const double rate = device.sms * device.boost_mhz * 1e6 * (narrow ? kNarrowPoints : kWidePoints);
  return rate > 0 ? kernel.window_points / rate : 0;
}

// Bytes that an SM's loads and stores move a clock: what it has in flight over how long memory
// takes to answer (Little). A100's and H100's memory bring it 13, of which kernels use nearly all;
// Blackwell's 25. There kernels of 25 to 300 MB move: an inference stack's quantisation 14 (B200,
// B300 and GB200), cudnn's norms 14.5 backward and 19 forward (GB200; elementwise.csv: aic,
// cudnn-fe), Transformer Engine's quantisation to mxfp8 18 to 20 (B200; ROCm/TransformerEngine pull
// request 598). The mean of these kinds. SimuMax 1.2 gives kernels of B200's training steps 18.
constexpr double kBytesPerSmClock = 16.5;
// Kernels of more bytes come nearer the memory's rate, 0.82 of it at 1.6 GB (the same rows).
constexpr double kPassingBytes = 3e8, kPassingGain = 0.14;

double PassingSeconds(double bytes, const KernelSpec& kernel, const DeviceType& device) {
  const double each = bytes / std::max(kernel.launches, 1);
  const double gain = each > kPassingBytes ? std::pow(each / kPassingBytes, kPassingGain) : 1;
  const double rate = device.sms * kBytesPerSmClock * device.boost_mhz * 1e6 * gain;
  return rate > 0 ? bytes / rate : 0;
}

// Rows that an SM works on at a time: blocks of 128 threads, 1024 to 2048 threads an SM. The
// middle of 8 and 16 is an assumption; the two shares below were fitted with it (2026-11-22).
constexpr double kRowsPerSm = 12;
// Rows in flight that fill these shares of the L2 cache are all found there again, and none.
// Between them, linear. From layer norms of 1,024 to 16,384 fp32 columns on A100, T4, P4 and L4
// (elementwise.csv, neusight): 0.82 of bandwidth at 0.27 of A100's cache, 0.58 at 1.06.
constexpr double kAllKept = 0.35, kNoneKept = 0.9;

double LostShare(const KernelSpec& kernel, const DeviceType& device) {
  if (device.l2_bytes <= 0) return 0;
  const double filled = kernel.row_bytes * kRowsPerSm * device.sms / device.l2_bytes;
  return std::clamp((filled - kAllKept) / (kNoneKept - kAllKept), 0.0, 1.0);
}

}  // namespace

double TrafficOf(const KernelSpec& kernel, const DeviceType& device) {
  double bytes = kernel.read_bytes + kernel.write_bytes;
  if (kernel.reread_bytes > 0) bytes += kernel.reread_bytes * LostShare(kernel, device);
  return bytes;
}

double TimeOfMemory(const KernelSpec& kernel, const MemoryCoefficients& c,
                    const DeviceType& device) {
  const double bytes = TrafficOf(kernel, device);
  const double moving = std::max(bytes / (device.memory_bytes_per_s * c.memory_fraction),
                                 PassingSeconds(bytes, kernel, device));
  const double drawing = DrawingSeconds(kernel, device);
  const double busy = std::max(std::cbrt(moving * moving * moving + drawing * drawing * drawing),
                               WindowSeconds(kernel, device));
  const double seconds = c.floor_s * std::max(kernel.launches, 1) + busy;
  // Matters only for kernels that were mistaken for memory bound.
  return device.fp32_flops > 0 ? std::max(seconds, kernel.flops / device.fp32_flops) : seconds;
}

std::optional<KernelCost> MemoryModel::Estimate(const KernelSpec& kernel,
                                                const DeviceType& device) const {
  bool is_memory_bound =
      kernel.family == KernelFamily::kMemory || kernel.family == KernelFamily::kOptimizer;
  if (!is_memory_bound || device.memory_bytes_per_s <= 0) return std::nullopt;
  const auto* entry = tables_.FindMemory(device);
  if (entry == nullptr) return std::nullopt;

  KernelCost cost;
  cost.hbm_bytes = TrafficOf(kernel, device);
  cost.seconds_alone = TimeOfMemory(kernel, entry->coefficients, device);
  cost.provenance = entry->provenance;
  cost.factor = absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/memory");
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
