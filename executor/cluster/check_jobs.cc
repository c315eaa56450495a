#include "executor/cluster/check_jobs.h"

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"

namespace plancast {
namespace {

// Of a phase, and of an arrival; a clock of 2^63 ps ends after 106 days.
constexpr int64_t kLongestPhase = int64_t{1'000'000} * 1'000'000'000'000;
constexpr int64_t kLatestArrival = int64_t{7'000'000} * 1'000'000'000'000;
constexpr int64_t kMostWeight = 1000;
constexpr double kMostBytes = 1e15;

absl::Status Refused(const ClusterJob& job, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(InWords(job), " ", what));
}

absl::Status CheckPhases(const ClusterJob& job) {
  bool something = false;
  for (const ClusterJob::Phase& phase : job.phases) {
    for (int64_t time : {phase.compute_ps, phase.transfer_ps}) {
      if (time < 0 || time > kLongestPhase) {
        return Refused(job, absl::StrCat("has a phase of ", ToSeconds(time),
                                         " s; give 0 to a million seconds."));
      }
    }
    if (!(phase.bytes >= 0 && phase.bytes <= kMostBytes)) {
      return Refused(job, absl::StrCat("sends ", phase.bytes,
                                       " bytes in an iteration; give 0 to a petabyte."));
    }
    something = something || phase.compute_ps > 0 || phase.transfer_ps > 0 || phase.bytes >= 1;
  }
  if (!something) return Refused(job, "neither computes nor communicates. Say `compute`.");
  return absl::OkStatus();
}

}  // namespace

std::string InWords(const ClusterJob& job) {
  return absl::StrCat(job.where.empty() ? "" : absl::StrCat(job.where, ": "), "job `", job.name,
                      "`");
}

absl::Status CheckJob(const ClusterJob& job, const Fabric& fabric) {
  if (job.arrival_ps < 0 || job.arrival_ps > kLatestArrival) {
    return Refused(job, absl::StrCat("arrives at ", ToSeconds(job.arrival_ps),
                                     " s; give seconds from 0 to 7 million (81 days)."));
  }
  if (job.iterations < 1) {
    return Refused(job, "has no iterations. Give a whole number from 1 on.");
  }
  if (job.weight < 1 || job.weight > kMostWeight) {
    return Refused(job, absl::StrCat("has the weight ", job.weight,
                                     "; give a whole number from 1 to ", kMostWeight, "."));
  }
  if (job.gpus < 1 || job.gpus > fabric.num_gpus()) {
    return Refused(
        job, absl::StrCat("needs ", job.gpus, " GPUs; the cluster has ", fabric.num_gpus(), "."));
  }
  if (job.placement == GpuPlacement::kGiven) {
    if (static_cast<int64_t>(job.devices.size()) != job.gpus) {
      return Refused(
          job, absl::StrCat("needs ", job.gpus, " GPUs and is given ", job.devices.size(), "."));
    }
    int64_t previous = -1;
    for (int64_t gpu : job.devices) {
      if (gpu <= previous || gpu >= fabric.num_gpus()) {
        return Refused(job, absl::StrCat("is given GPU ", gpu,
                                         gpu >= fabric.num_gpus()
                                             ? absl::StrCat("; the cluster has ", fabric.num_gpus(),
                                                            ", counted from 0.")
                                             : " twice. Name each once."));
      }
      previous = gpu;
    }
  }
  return CheckPhases(job);
}

absl::Status CheckTimes(const ClusterJob& job, const Loop& loop) {
  for (int p = 0; p < static_cast<int>(loop.phases.size()); ++p) {
    if (loop.TransferPs(p) <= kLongestPhase) continue;
    return Refused(job, absl::StrCat("communicates for more than ", ToSeconds(kLongestPhase),
                                     " s in an iteration. Let it send less, or over more links."));
  }
  return absl::OkStatus();
}

}  // namespace plancast
