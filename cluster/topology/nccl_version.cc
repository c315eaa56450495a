#include "cluster/topology/nccl_version.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace plancast {

absl::string_view NcclVersionName(NcclVersion version) {
  switch (version) {
    case NcclVersion::k2_17:
      return "2.17.1";
    case NcclVersion::k2_27:
      return "2.27.7";
    case NcclVersion::k2_30:
      return "2.30.7";
  }
  return "";
}

absl::StatusOr<NcclVersion> ParseNcclVersion(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int32_t major = 0, minor = 0, patch = 0;
  if (parts.size() < 2 || parts.size() > 3 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor) || major != 2 || minor < 0 ||
      (parts.size() == 3 && !absl::SimpleAtoi(parts[2], &patch))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text, "` is no version of NCCL 2; there are rules for 2.17.1, 2.27.7 and ",
        "2.30.7. Write `2.30`, or the version that the library prints."));
  }
  if (minor < 27) return NcclVersion::k2_17;
  return minor < 30 ? NcclVersion::k2_27 : NcclVersion::k2_30;
}

}  // namespace plancast
