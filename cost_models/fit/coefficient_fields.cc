#include "cost_models/fit/coefficient_fields.h"

namespace plancast {

absl::Span<const CoefficientField<GemmCoefficients>> GemmFields() {
  using C = GemmCoefficients;
  static constexpr CoefficientField<C> kFields[] = {
      {"mma_fraction", &C::mma_fraction, 0.85, {0.2, 0.99}},
      {"tile_overhead_k", &C::tile_overhead_k, 150, {0, 1000}},
      {"wave_quantization", &C::wave_quantization, 0.5, {0, 1}},
      {"memory_fraction", &C::memory_fraction, 0.8, {0.3, 0.98}},
      {"small_tile_cost", &C::small_tile_cost, 0.4, {0, 2}},
      {"floor_s", &C::floor_s, 2e-6, {2e-7, 2e-5}},
      {"sustained_loss", &C::sustained_loss, 0.08, {0, 0.3}},
      {"saturating_sms", &C::saturating_sms, 0.3, {0, 1}},
      {"split_floors", &C::split_floors, 0.5, {0, 3}},
      {"quantize_bytes", &C::quantize_bytes, 0, {0, 30}},
      {"forward_factor", &C::forward_factor, 1, {0.5, 4}},
      {"dgrad_factor", &C::dgrad_factor, 1, {0.5, 4}},
      {"wgrad_factor", &C::wgrad_factor, 1, {0.5, 4}},
  };
  return kFields;
}

absl::Span<const CoefficientField<AttentionCoefficients>> AttentionFields() {
  using C = AttentionCoefficients;
  static constexpr CoefficientField<C> kFields[] = {
      {"mma_fraction", &C::mma_fraction, 0.75, {0.05, 0.99}},
      {"softmax_dim", &C::softmax_dim, 20, {0, 200}},
      {"tail", &C::tail, 0.5, {0, 1}},
      {"floor_s", &C::floor_s, 3e-6, {5e-7, 1.5e-5}},
      {"causal_loss", &C::causal_loss, 0.05, {0, 0.6}},
      {"memory_fraction", &C::memory_fraction, 0.7, {0.2, 0.98}},
      {"backward_factor", &C::backward_factor, 1.2, {0.8, 3}},
      {"backward_floor_s", &C::backward_floor_s, 6e-6, {1e-6, 4e-5}},
      {"latent_backward_factor", &C::latent_backward_factor, 1, {0.5, 2}},
  };
  return kFields;
}

absl::Span<const CoefficientField<MemoryCoefficients>> MemoryFields() {
  using C = MemoryCoefficients;
  static constexpr CoefficientField<C> kFields[] = {
      {"memory_fraction", &C::memory_fraction, 0.8, {0.05, 0.98}},
      {"floor_s", &C::floor_s, 2e-6, {5e-7, 2e-5}},
  };
  return kFields;
}

std::vector<GemmCoefficients::Tile> LibraryTiles() {
  std::vector<GemmCoefficients::Tile> tiles;
  constexpr int64_t kTiles[][2] = {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64},
                                   {64, 128},  {128, 64},  {64, 64},   {16, 64}};
  for (const auto& [m, n] : kTiles) tiles.push_back(GemmCoefficients::Tile::Of(m, n));
  return tiles;
}

std::vector<int> LibrarySplits() { return {1, 2, 3, 4, 6, 8, 16}; }

}  // namespace plancast
