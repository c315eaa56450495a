#include "cost_models/coefficients/coefficients.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

absl::Status InRange(absl::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`", field, "` is ", value, ". It must be from ", low, " to ", high, "."));
}

// A share of a peak: positive, at most 1.
absl::Status IsFraction(absl::string_view field, double value) {
  return InRange(field, value, 1e-3, 1.0);
}

absl::Status IsSeconds(absl::string_view field, double value) {
  return InRange(field, value, 0.0, 1.0);
}

}  // namespace

GemmCoefficients::Tile GemmCoefficients::Tile::Of(int64_t m, int64_t n) {
  constexpr double kLargest = 256 * 128;
  const double area = static_cast<double>(m) * static_cast<double>(n);
  return {m, n, area > 0 ? std::sqrt(kLargest / area) - 1 : 0.0};
}

absl::Status GemmCoefficients::Verify() const {
  if (tiles.empty()) return absl::InvalidArgumentError("no `tile`; at least one is needed.");
  for (const Tile& tile : tiles) {
    RETURN_IF_ERROR(InRange("tile.m", static_cast<double>(tile.m), 1, 1024));
    RETURN_IF_ERROR(InRange("tile.n", static_cast<double>(tile.n), 1, 1024));
    if (tile.slowdown < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tile ", tile.m, "x", tile.n, " is larger than 256x128, the reference."));
    }
  }
  if (std::find(splits.begin(), splits.end(), 1) == splits.end()) {
    return absl::InvalidArgumentError("`split_k` lacks 1, a GEMM whose k is not split.");
  }
  for (int parts : splits) RETURN_IF_ERROR(InRange("split_k", parts, 1, 1024));
  RETURN_IF_ERROR(IsFraction("mma_fraction", mma_fraction));
  RETURN_IF_ERROR(InRange("tile_overhead_k", tile_overhead_k, 0, 1e5));
  RETURN_IF_ERROR(InRange("wave_quantization", wave_quantization, 0, 1));
  RETURN_IF_ERROR(IsFraction("memory_fraction", memory_fraction));
  RETURN_IF_ERROR(InRange("small_tile_cost", small_tile_cost, 0, 10));
  RETURN_IF_ERROR(IsSeconds("floor_s", floor_s));
  RETURN_IF_ERROR(InRange("sustained_loss", sustained_loss, 0, 10));
  RETURN_IF_ERROR(InRange("quantize_bytes", quantize_bytes, 0, 100));
  RETURN_IF_ERROR(InRange("saturating_sms", saturating_sms, 0, 1));
  RETURN_IF_ERROR(InRange("split_floors", split_floors, 0, 10));
  RETURN_IF_ERROR(InRange("forward_factor", forward_factor, 1e-2, 100));
  RETURN_IF_ERROR(InRange("dgrad_factor", dgrad_factor, 1e-2, 100));
  RETURN_IF_ERROR(InRange("wgrad_factor", wgrad_factor, 1e-2, 100));
  RETURN_IF_ERROR(InRange("accumulation_bytes", accumulation_bytes, 0, 8));
  return InRange("promotion_factor", promotion_factor, 1, 100);
}

absl::Status ConvolutionCoefficients::Verify() const {
  constexpr absl::string_view kNames[] = {"pointwise", "strided_pointwise", "window3", "other"};
  for (int shape = 0; shape < kShapes; ++shape) {
    for (double factor : factors[shape]) {
      RETURN_IF_ERROR(InRange(kNames[shape], factor, 0.05, 100));
    }
  }
  return absl::OkStatus();
}

absl::Status AttentionCoefficients::Verify() const {
  RETURN_IF_ERROR(IsFraction("mma_fraction", mma_fraction));
  RETURN_IF_ERROR(InRange("softmax_dim", softmax_dim, 0, 1e4));
  RETURN_IF_ERROR(InRange("tail", tail, 0, 1));
  RETURN_IF_ERROR(IsSeconds("floor_s", floor_s));
  RETURN_IF_ERROR(InRange("causal_loss", causal_loss, 0, 10));
  RETURN_IF_ERROR(InRange("backward_factor", backward_factor, 1e-2, 100));
  RETURN_IF_ERROR(InRange("latent_backward_factor", latent_backward_factor, 1e-2, 100));
  RETURN_IF_ERROR(IsSeconds("backward_floor_s", backward_floor_s));
  return IsFraction("memory_fraction", memory_fraction);
}

absl::Status MemoryCoefficients::Verify() const {
  RETURN_IF_ERROR(IsFraction("memory_fraction", memory_fraction));
  return IsSeconds("floor_s", floor_s);
}

absl::Status RooflineCoefficients::Verify() const {
  RETURN_IF_ERROR(IsFraction("compute_fraction", compute_fraction));
  RETURN_IF_ERROR(IsFraction("memory_fraction", memory_fraction));
  return IsSeconds("floor_s", floor_s);
}

}  // namespace plancast
