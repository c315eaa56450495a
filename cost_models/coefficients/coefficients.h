#ifndef PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_H_
#define PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/kernel_spec.h"

namespace plancast {

// The coefficients of the cost models; proto/kernel_cost.proto explains each.

struct GemmCoefficients {
  struct Tile {
    int64_t m = 0, n = 0;
    double slowdown = 0;  // sqrt(largest area / area) - 1, times small_tile_cost

    // Compared with 256x128, the largest.
    static Tile Of(int64_t m, int64_t n);
  };
  std::vector<Tile> tiles;
  std::vector<int> splits;
  double mma_fraction = 0, tile_overhead_k = 0, wave_quantization = 0, memory_fraction = 0,
         small_tile_cost = 0, floor_s = 0, sustained_loss = 0, quantize_bytes = 0,
         saturating_sms = 0, split_floors = 0;
  double forward_factor = 1, dgrad_factor = 1, wgrad_factor = 1;
  double promotion_factor = 1, accumulation_bytes = 0;

  absl::Status Verify() const;
};

// Time of a convolution over that of the product that it is.
struct ConvolutionCoefficients {
  // What windows are like: one point, or 3 x 3; steps of one, or longer ones.
  enum class Shape : uint8_t { kPointwise, kStridedPointwise, kWindow3, kOther };
  static constexpr int kShapes = 4, kPasses = 3;
  std::array<std::array<double, kPasses>, kShapes> factors = {};

  double Factor(Shape shape, GemmPass pass) const {
    return factors[static_cast<int>(shape)][static_cast<int>(pass)];
  }

  absl::Status Verify() const;
};

struct AttentionCoefficients {
  double mma_fraction = 0, softmax_dim = 0, tail = 0, floor_s = 0, causal_loss = 0,
         backward_factor = 0, backward_floor_s = 0, memory_fraction = 0;
  double latent_backward_factor = 1;  // where values have another dim than queries
  bool backward_measured = false;     // else taken from other GPUs
  std::string kernel;                 // whose the figures are (attention_kernels.h); empty: unknown
  std::string architecture;           // the chip's, if it has kernels of its own
  // Errors of the backward figures; CoefficientEntry holds those of forward.
  double backward_factor_sigma = 0, backward_sigma = 0;

  absl::Status Verify() const;
};

struct MemoryCoefficients {
  double memory_fraction = 0, floor_s = 0;

  absl::Status Verify() const;
};

struct RooflineCoefficients {
  double compute_fraction = 0, memory_fraction = 0, floor_s = 0;

  absl::Status Verify() const;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_H_
