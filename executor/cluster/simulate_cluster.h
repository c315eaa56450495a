#ifndef PLANCAST_EXECUTOR_CLUSTER_SIMULATE_CLUSTER_H_
#define PLANCAST_EXECUTOR_CLUSTER_SIMULATE_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/enum_names.h"
#include "executor/cluster/cluster_job.h"
#include "executor/cluster/fabric.h"

namespace plancast {

// How jobs share links.
enum class ClusterSharing : uint8_t {
  kFair,      // every flow alike
  kWeighted,  // in proportion to ClusterJob::weight
  kStrict,    // by priority, see ClusterOrder
};
inline constexpr auto kClusterSharingNames =
    NamesOf<ClusterSharing>("max-min", "weighted", "strict");

// Whose communication goes first under kStrict.
enum class ClusterOrder : uint8_t {
  kGiven,      // ClusterJob::priority, the lowest first
  kIntensity,  // the highest corrected GPU intensity (CRUX)
  kReverse,    // the lowest
};
inline constexpr auto kClusterOrderNames = NamesOf<ClusterOrder>("given", "intensity", "reverse");

// Which uplink of a bundle a flow takes.
enum class PathChoice : uint8_t {
  kHash,       // by chance, as ECMP
  kLoad,       // the least loaded when its job starts
  kIntensity,  // the same, jobs in order of intensity, all again when a job starts (CRUX)
};
inline constexpr auto kPathChoiceNames = NamesOf<PathChoice>("hash", "load", "intensity");

struct ClusterOptions {
  ClusterSharing sharing = ClusterSharing::kFair;
  ClusterOrder order = ClusterOrder::kIntensity;
  int32_t levels = 0;  // of priority that links know; 0: as many as jobs
  PathChoice paths = PathChoice::kHash;
  bool backfill = false;  // jobs that fit may start before one that waits for GPUs
  uint64_t seed = 1;
  int64_t until_ps = Fluid::kNever;
  bool waits = true;           // who waits for whom
  int64_t slices_until = 0;    // phases as they ran, of the first so many ps
  int64_t most_events = 6000;  // see SteadyRun
  bool shortcuts = true;
};

struct ClusterJobOutcome {
  int64_t start_ps = -1, end_ps = -1;  // -1: never
  int64_t iterations = 0;              // done
  int64_t alone_ps = 0;                // its iteration with its links to itself
  double steady_ps = 0;                // its iteration beside those that it met last, on average
  double intensity = 0, correction = 1;
  int32_t level = 0;  // of priority, at last; 0 goes first
  std::vector<int64_t> devices;
};

struct ClusterOutcome {
  // Lost in all; where jobs remain that have no end, by them in an iteration as things stand.
  struct Wait {
    int32_t waiter = 0, other = 0;  // jobs
    int32_t link = 0;
    double seconds = 0;
  };
  // Of a job, while the same others were about.
  struct Stretch {
    int32_t job = 0;
    int64_t from_ps = 0, to_ps = 0;
    double iteration_ps = 0;  // on average
  };
  struct Slice {
    int32_t job = 0;
    bool transfer = false;
    int64_t iteration = 0, start_ps = 0, end_ps = 0;
  };
  // Per link: what it carried, and what it carries a second as things stand at the end.
  struct Link {
    int32_t link = 0;
    double bytes = 0, bytes_per_s = 0;
    int32_t jobs = 0;  // that ever crossed it
  };

  std::vector<ClusterJobOutcome> jobs;  // as handed in
  std::vector<Link> links;              // that carried anything
  std::vector<Wait> waits;
  std::vector<Stretch> stretches;
  std::vector<Slice> slices;
  int64_t end_ps = 0;       // when the last thing changed, or options.until_ps
  int64_t steady_runs = 0;  // sets of jobs whose steady state was looked for
  double off_by = 0;        // SteadyRun::off_by of these, on average over the time of their jobs
};

// Runs jobs as they arrive, wait for GPUs, start, share links and end, from one change to the
// next by steady states. Without an end of every job, until nothing changes any more.
// Errors: jobs that cannot run on this fabric; given GPUs that another job has.
absl::StatusOr<ClusterOutcome> SimulateCluster(const Fabric& fabric,
                                               absl::Span<const ClusterJob> jobs,
                                               const ClusterOptions& options);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_SIMULATE_CLUSTER_H_
