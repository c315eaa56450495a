#ifndef PLANCAST_STRATEGY_PROFILE_OP_PROFILE_PROTO_H_
#define PLANCAST_STRATEGY_PROFILE_OP_PROFILE_PROTO_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "proto/software_profile.pb.h"
#include "strategy/profile/op_profile.h"

namespace plancast {

// What a profile's file says of single ops. Errors name the field.

// extra_kernels, by rule.
absl::StatusOr<std::map<std::string, ExtraKernels>> ExtraKernelsFromProto(
    const proto::SoftwareProfile& p);

// op_memory, by rule.
absl::StatusOr<std::map<std::string, OpMemory>> OpMemoryFromProto(const proto::SoftwareProfile& p);

// forward_calls, backward_calls, quantize_launches, host_waits and graph_scopes.
absl::StatusOr<HostCallsOfOps> HostCallsFromProto(const proto::SoftwareProfile& p);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_OP_PROFILE_PROTO_H_
