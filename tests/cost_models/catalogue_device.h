#ifndef PLANCAST_TESTS_COST_MODELS_CATALOGUE_DEVICE_H_
#define PLANCAST_TESTS_COST_MODELS_CATALOGUE_DEVICE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"

namespace plancast {

// A shipped accelerator by name, e.g. `H100-SXM-80GB`.
absl::StatusOr<DeviceType> CatalogueDevice(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_TESTS_COST_MODELS_CATALOGUE_DEVICE_H_
