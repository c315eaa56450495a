#include "cluster/topology/link_rates.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "cluster/topology/topology_data.h"
#include "proto/nccl_rules.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

const proto::NcclLinksCatalogue& Catalogue() {
  static const auto& catalogue = *[] {
    const EmbeddedFile* file = FindByStem(TopologyData(), "nccl_links");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = ParseTextProto<proto::NcclLinksCatalogue>(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new proto::NcclLinksCatalogue(*std::move(parsed));
  }();
  return catalogue;
}

const proto::NcclLinks& Links(NcclVersion version) {
  for (const proto::NcclLinks& links : Catalogue().release()) {
    if (links.version() == NcclVersionName(version)) return links;
  }
  PLANCAST_CHECK(false) << NcclVersionName(version);
  return Catalogue().release(0);
}

bool Fits(const proto::SocketRate& row, absl::string_view arch, absl::string_view vendor,
          int family, int model) {
  if (row.has_arch() && row.arch() != arch) return false;
  if (row.vendor_size() > 0 &&
      std::find(row.vendor().begin(), row.vendor().end(), vendor) == row.vendor().end()) {
    return false;
  }
  if (row.has_family() && row.family() != family) return false;
  if (row.has_model_from() && model < row.model_from()) return false;
  return !row.has_model_to() || model <= row.model_to();
}

// Of one lane, in units of 100 Mbit/s as NCCL's table has it.
int LaneSpeed(absl::string_view speed) {
  if (absl::StartsWith(speed, "2.5 GT/s")) return 15;
  if (speed == "5 GT/s" || speed == "5.0 GT/s PCIe") return 30;
  if (speed == "16 GT/s" || speed == "16.0 GT/s PCIe") return 120;
  if (speed == "32 GT/s" || speed == "32.0 GT/s PCIe") return 240;
  if (speed == "64 GT/s" || speed == "64.0 GT/s PCIe") return 480;
  return 60;
}

}  // namespace

float LocalRate(NcclVersion version) { return Links(version).local_gb_per_s(); }

float NvlinkRate(NcclVersion version, int compute_capability) {
  for (const proto::NvlinkRate& row : Links(version).nvlink()) {
    if (row.exactly() ? compute_capability == row.compute_capability()
                      : compute_capability >= row.compute_capability()) {
      return row.gb_per_s();
    }
  }
  return LocalRate(version);
}

const proto::AmdGpu& AmdGpuOf(absl::string_view gcn) {
  const std::string name =
      absl::StartsWith(gcn, "gfx") ? std::string(gcn) : absl::StrCat("gfx", gcn);
  for (const proto::AmdGpu& amd : Catalogue().amd()) {
    if (absl::StartsWith(name, amd.gcn())) return amd;
  }
  PLANCAST_CHECK(false) << name;
  return Catalogue().amd(0);
}

float SocketRate(NcclVersion version, absl::string_view arch, absl::string_view vendor, int family,
                 int model) {
  for (const proto::SocketRate& row : Links(version).socket()) {
    if (Fits(row, arch, vendor, family, model)) return row.gb_per_s();
  }
  return LocalRate(version);
}

float PcieRate(absl::string_view speed, int width) {
  return (width == 0 ? 16 : width) * LaneSpeed(speed) / 80.0;
}

}  // namespace plancast
