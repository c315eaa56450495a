#include "cluster/topology/gpu_element.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/topology/link_rates.h"

namespace plancast {
namespace {

constexpr int kMostCapability = 10000;

}  // namespace

bool IsGpuClass(absl::string_view pci_class) {
  return absl::StartsWith(pci_class, "0x03") || absl::StartsWith(pci_class, "0x12");
}

absl::StatusOr<int> CapabilityOf(const SystemElement& gpu) {
  if (const std::string* gcn = gpu.Find("gcn")) return AmdGpuOf(*gcn).compute_capability();
  RETURN_IF_ERROR(gpu.Text("sm").status());
  ASSIGN_OR_RETURN(const int64_t sm, gpu.Integer("sm", 0));
  if (sm >= 1 && sm <= kMostCapability) return static_cast<int>(sm);
  return absl::InvalidArgumentError(
      absl::StrCat(gpu.Place(), ": sm=\"", sm, "\" is no compute capability such as `90`."));
}

float GpuLinkRate(NcclVersion version, const SystemElement& gpu, int compute_capability) {
  if (const std::string* gcn = gpu.Find("gcn")) return AmdGpuOf(*gcn).gb_per_s();
  return NvlinkRate(version, compute_capability);
}

}  // namespace plancast
