#include "interop/astra/simulator/astra_system.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

bool IsPowerOfTwo(int64_t n) { return (n & (n - 1)) == 0; }

absl::Status CheckAlgorithms(absl::string_view key, const std::vector<AstraAlgorithm>& algorithms,
                             const AstraNetwork& network) {
  if (algorithms.size() > network.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat("`", key, "` has ", algorithms.size(),
                                                   " entries; the network has ",
                                                   network.dims.size(), " dimensions"));
  }
  for (size_t d = 0; d < algorithms.size(); ++d) {
    const AstraAlgorithm& algorithm = algorithms[d];
    const int64_t n = algorithm.one ? network.npus() : network.dims[d].npus;
    const bool halving = algorithm.kind == AstraAlgorithm::Kind::kHalvingDoubling;
    if ((halving || algorithm.kind == AstraAlgorithm::Kind::kDoubleBinaryTree) &&
        !IsPowerOfTwo(n)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", key, "`: ", halving ? "halvingDoubling" : "doubleBinaryTree", " over ", n,
          " NPUs never ends in ASTRA-sim: it needs a power of two. Take `ring` or `direct`."));
    }
    if (halving && key == "all-to-all-implementation") {
      return absl::InvalidArgumentError(
          absl::StrCat("`", key, "`: halvingDoubling has no all-to-all. Take `ring` or `direct`."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<AstraAlgorithm>& AstraSystem::AlgorithmsOf(AstraCollective collective) const {
  switch (collective) {
    case AstraCollective::kAllGather:
      return all_gather;
    case AstraCollective::kReduceScatter:
      return reduce_scatter;
    case AstraCollective::kAllToAll:
      return all_to_all;
    default:
      return all_reduce;
  }
}

absl::Status AstraSystem::Verify(const AstraNetwork& network) const {
  // A chunk looks for its place among all that wait with it, on every NPU.
  constexpr double kMostWork = 1 << 28;
  const double npus = static_cast<double>(network.npus());
  if (splits < 1 || npus * splits * splits > kMostWork) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`preferred-dataset-splits` is ", splits, "; on ", network.npus(), " NPUs, 1 to ",
        static_cast<int64_t>(std::max(1.0, std::sqrt(kMostWork / npus))), " will do"));
  }
  if (active_chunks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("`active-chunks-per-dimension` is ", active_chunks, "; 1 or more will do"));
  }
  if (endpoint_delay_ns < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("`endpoint-delay` is ", endpoint_delay_ns, "; it must be at least 0 ns"));
  }
  if (!(local_mem_gb_per_s > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`local-mem-bw` is ", local_mem_gb_per_s, "; it must be above 0 GB/s"));
  }
  if (roofline && !(peak_tflops > 0)) {
    return absl::InvalidArgumentError("`roofline-enabled` needs `peak-perf` above 0 TFLOP/s");
  }
  for (const auto& [key, algorithms] :
       {std::make_pair("all-reduce-implementation", &all_reduce),
        std::make_pair("all-gather-implementation", &all_gather),
        std::make_pair("reduce-scatter-implementation", &reduce_scatter),
        std::make_pair("all-to-all-implementation", &all_to_all)}) {
    if (absl::Status status = CheckAlgorithms(key, *algorithms, network); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
