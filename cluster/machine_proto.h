#ifndef PLANCAST_CLUSTER_MACHINE_PROTO_H_
#define PLANCAST_CLUSTER_MACHINE_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "proto/machine.pb.h"

namespace plancast {

// Fills what is absent from the preset, the catalogue of GPUs and the link
// types, in this order.
absl::StatusOr<Machine> MachineFromProto(const proto::Machine& proto);
// Complete: names neither a preset nor a GPU of the catalogue.
proto::Machine MachineToProto(const Machine& machine);

// `what` names the text in errors, usually its path. `gpu` may be a name.
absl::StatusOr<Machine> MachineFromJson(absl::string_view json, absl::string_view what = "machine");
std::string MachineToJson(const Machine& machine);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_MACHINE_PROTO_H_
