#ifndef PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_PROTO_H_
#define PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_PROTO_H_

#include "absl/status/statusor.h"
#include "cost_models/coefficients/coefficients.h"
#include "proto/kernel_cost.pb.h"

namespace plancast {

// From the wire, verified.
absl::StatusOr<GemmCoefficients> FromProto(const proto::GemmCoefficients& in);
absl::StatusOr<ConvolutionCoefficients> FromProto(const proto::ConvolutionCoefficients& in);
absl::StatusOr<AttentionCoefficients> FromProto(const proto::AttentionCoefficients& in);
absl::StatusOr<MemoryCoefficients> FromProto(const proto::MemoryCoefficients& in);
absl::StatusOr<RooflineCoefficients> FromProto(const proto::RooflineCoefficients& in);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENTS_PROTO_H_
