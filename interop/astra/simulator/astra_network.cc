#include "interop/astra/simulator/astra_network.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {

int64_t AstraNetwork::npus() const {
  int64_t count = 1;
  for (const Dim& dim : dims) {
    if (__builtin_mul_overflow(count, dim.npus, &count)) return kMaxNpus + 1;
  }
  return count;
}

absl::Status AstraNetwork::Verify() const {
  if (dims.empty() || dims.size() > 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("the network has ", dims.size(), " dimensions; 1 to 16 will do"));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = dims[i];
    if (dim.npus < 2) {
      return absl::InvalidArgumentError(absl::StrCat("`npus_count` of dimension ", i, " is ",
                                                     dim.npus, "; it must be 2 or more"));
    }
    if (!(dim.gib_per_s > 0) || !std::isfinite(dim.gib_per_s)) {
      return absl::InvalidArgumentError(absl::StrCat("`bandwidth` of dimension ", i, " is ",
                                                     dim.gib_per_s, "; it must be above 0 GiB/s"));
    }
    if (!(dim.latency_ns >= 0) || dim.latency_ns > 1e15) {
      return absl::InvalidArgumentError(absl::StrCat("`latency` of dimension ", i, " is ",
                                                     dim.latency_ns, "; it must be at least 0 ns"));
    }
  }
  if (npus() > kMaxNpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("the network has more than ", kMaxNpus, " NPUs, which is the limit"));
  }
  if (queues_per_dim < 1 || queues_per_dim > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("num-queues-per-dim is ", queues_per_dim, "; 1 to 1024 will do"));
  }
  return absl::OkStatus();
}

}  // namespace plancast
