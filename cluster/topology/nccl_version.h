#ifndef PLANCAST_CLUSTER_TOPOLOGY_NCCL_VERSION_H_
#define PLANCAST_CLUSTER_TOPOLOGY_NCCL_VERSION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// The releases of NCCL whose rules are known: 2.17.1, 2.27.7 and 2.30.7.
enum class NcclVersion : uint8_t { k2_17, k2_27, k2_30 };
inline constexpr NcclVersion kLatestNccl = NcclVersion::k2_30;

absl::string_view NcclVersionName(NcclVersion version);  // `2.17.1`, ...
// `2.27`, `2.27.7`; of other releases the latest known one that is not newer, and
// 2.17 for older ones. Fails where the text is no version of NCCL 2.
absl::StatusOr<NcclVersion> ParseNcclVersion(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_TOPOLOGY_NCCL_VERSION_H_
