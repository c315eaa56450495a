#ifndef PLANCAST_CLUSTER_CATALOGUE_H_
#define PLANCAST_CLUSTER_CATALOGUE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/machine.pb.h"

// The shipped accelerators, machines and link types (cluster/data/*.textproto).
// Errors about an unknown name list the names and suggest.

namespace plancast {

// `gpu` with the figures of the catalogue entries that it is `like` filled in;
// `like` then names the last of the chain.
absl::StatusOr<proto::Gpu> CompleteGpu(const proto::Gpu& gpu);

// A shipped accelerator, complete.
absl::StatusOr<proto::Gpu> FindGpu(absl::string_view name);
std::vector<std::string> GpuNames();  // sorted

// One host of a shipped machine, as written in the catalogue. `sizes` is what the user wrote
// behind the name, `:2x4`, which errors repeat.
absl::StatusOr<proto::Machine> FindMachinePreset(absl::string_view name,
                                                 absl::string_view sizes = "");

// Defaults of a link generation or fabric; nullptr where the name is unknown.
const proto::LinkType* FindIntraLinkType(absl::string_view name);
const proto::LinkType* FindFabricType(absl::string_view name);
// LinkCatalogue::host_update_share.
double ShippedHostUpdateShare();

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_CATALOGUE_H_
