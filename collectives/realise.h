#ifndef PLANCAST_COLLECTIVES_REALISE_H_
#define PLANCAST_COLLECTIVES_REALISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "graph/collective_kind.h"
#include "graph/fused_work.h"
#include "graph/row_copies.h"

namespace plancast {

// A group of devices as a mixed-radix pattern: device ids are base + sum of
// c_i * stride_i for 0 <= c_i < extent_i. Only groups of a job that is placed
// irregularly on the machine are lists.
struct GroupPattern {
  struct Dim {
    int64_t extent = 1, stride = 1;
    friend bool operator==(const Dim& a, const Dim& b) {
      return a.extent == b.extent && a.stride == b.stride;
    }
  };
  int64_t base = 0;
  std::vector<Dim> dims;              // innermost (smallest stride) first
  std::vector<int64_t> devices = {};  // instead, if not empty: ascending

  // The pattern of these members, which ascend; a list if they have none.
  static GroupPattern Of(absl::Span<const int64_t> members);

  int64_t size() const;
  std::vector<int64_t> Members() const;  // ascending; for small groups and tests
};

struct CollectivePolicy {
  // Empty: the cheaper of those that kernels run. `copy` (copy engines) stands for sends by kernels
  // where no copy reaches, over several nodes.
  std::string algorithm;
  std::string protocol;          // empty: chosen by size
  double bandwidth_scale = 1.0;  // inside hosts and domains: a software profile's factor
  bool nominal = false;          // links as their data sheets have them, not as measured
  RowCopies copies = {};         // of an all-to-all: CommSpec::copies
  FusedWork fused = {};          // in its kernel
};

// Load that a closed-form collective puts on the links: per byte of work, each
// instance of the link class that serves a member carries `coefficient` bytes
// per direction. Coefficients are fixed point, 2^-20.
struct LinkLoad {
  int link_class = 0;
  int64_t coefficient_q20 = 0;
  // Of a message one way, what links of receivers carry; below 0: as those of senders.
  int64_t to_q20 = -1;

  int64_t ReceivedQ20() const { return to_q20 < 0 ? coefficient_q20 : to_q20; }
};

// A collective realised on the machine: `delay` (latency, protocol, pipeline
// fill; consumes nothing), then `work` bytes flowing at most at `rate_cap`,
// loading links as said. Alone on an idle machine it takes
// delay + work / min(rate_cap, capacity_l / coefficient_l).
struct RealisedCollective {
  std::string algorithm, protocol;
  int64_t delay_ps = 0;
  int64_t fused_ps = 0;  // of the delay, what is computed in its kernel
  int64_t work_bytes = 0;
  int64_t rate_cap_bytes_per_s = 0;
  std::vector<LinkLoad> loads;  // ascending link class
  int channels = 0;             // blocks of its kernels, each of which keeps an SM busy
  double sm_fraction = 0;       // the share of the SMs that this is
  // Copy engines and the host do it: it does not slow kernels down, nor they it.
  bool uses_no_sms = false;
  Provenance provenance;
  std::string factor;  // shared latent error, e.g. `nvlink3/ring`
  double factor_sigma = 0;
};

// Chooses algorithm and protocol for `kind` over `group` on `machine`.
// `bytes`: see CollectiveKind. A group of one takes nothing.
absl::StatusOr<RealisedCollective> Realise(const Machine& machine, const GroupPattern& group,
                                           CollectiveKind kind, int64_t bytes,
                                           const CollectivePolicy& policy = {});

// The same with its links to itself whoever else uses them: it takes what it takes alone,
// and loads nothing.
RealisedCollective WithLinksOfItsOwn(const Machine& machine, RealisedCollective collective);

// The time of a realised collective alone on the idle machine, picoseconds.
int64_t AloneTime(const Machine& machine, const RealisedCollective& collective);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_REALISE_H_
