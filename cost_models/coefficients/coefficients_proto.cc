#include "cost_models/coefficients/coefficients_proto.h"

#include "base/status_macros.h"

namespace plancast {
absl::StatusOr<GemmCoefficients> FromProto(const proto::GemmCoefficients& in) {
  GemmCoefficients out;
  for (const proto::Tile& tile : in.tile()) {
    out.tiles.push_back(GemmCoefficients::Tile::Of(tile.m(), tile.n()));
  }
  out.splits.assign(in.split_k().begin(), in.split_k().end());
  out.mma_fraction = in.mma_fraction();
  out.tile_overhead_k = in.tile_overhead_k();
  out.wave_quantization = in.wave_quantization();
  out.memory_fraction = in.memory_fraction();
  out.small_tile_cost = in.small_tile_cost();
  out.floor_s = in.floor_s();
  out.sustained_loss = in.sustained_loss();
  out.quantize_bytes = in.quantize_bytes();
  out.saturating_sms = in.saturating_sms();
  out.split_floors = in.split_floors();
  if (in.has_forward_factor()) out.forward_factor = in.forward_factor();
  if (in.has_dgrad_factor()) out.dgrad_factor = in.dgrad_factor();
  if (in.has_wgrad_factor()) out.wgrad_factor = in.wgrad_factor();
  out.accumulation_bytes = in.accumulation_bytes();
  if (in.has_promotion_factor()) out.promotion_factor = in.promotion_factor();
  RETURN_IF_ERROR(out.Verify());
  return out;
}

absl::StatusOr<ConvolutionCoefficients> FromProto(const proto::ConvolutionCoefficients& in) {
  ConvolutionCoefficients out;
  const proto::PassFactors* shapes[] = {&in.pointwise(), &in.strided_pointwise(), &in.window3(),
                                        &in.other()};
  for (int shape = 0; shape < ConvolutionCoefficients::kShapes; ++shape) {
    out.factors[shape] = {shapes[shape]->forward(), shapes[shape]->dgrad(), shapes[shape]->wgrad()};
  }
  RETURN_IF_ERROR(out.Verify());
  return out;
}

absl::StatusOr<AttentionCoefficients> FromProto(const proto::AttentionCoefficients& in) {
  AttentionCoefficients out;
  out.mma_fraction = in.mma_fraction();
  out.softmax_dim = in.softmax_dim();
  out.tail = in.tail();
  out.floor_s = in.floor_s();
  out.causal_loss = in.causal_loss();
  out.backward_factor = in.backward_factor();
  out.backward_floor_s = in.backward_floor_s();
  out.memory_fraction = in.memory_fraction();
  if (in.has_latent_backward_factor()) out.latent_backward_factor = in.latent_backward_factor();
  out.backward_measured = in.backward_fit().rows() > 0;
  out.kernel = in.kernel();
  out.architecture = in.architecture();
  out.backward_factor_sigma = in.backward_fit().factor_sigma();
  out.backward_sigma = in.backward_fit().sigma();
  RETURN_IF_ERROR(out.Verify());
  return out;
}

absl::StatusOr<MemoryCoefficients> FromProto(const proto::MemoryCoefficients& in) {
  MemoryCoefficients out{in.memory_fraction(), in.floor_s()};
  RETURN_IF_ERROR(out.Verify());
  return out;
}

absl::StatusOr<RooflineCoefficients> FromProto(const proto::RooflineCoefficients& in) {
  RooflineCoefficients out{in.compute_fraction(), in.memory_fraction(), in.floor_s()};
  RETURN_IF_ERROR(out.Verify());
  return out;
}

}  // namespace plancast
