#include "executor/cluster/cluster_simulation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "executor/cluster/check_jobs.h"

namespace plancast {

ClusterSimulation::ClusterSimulation(const Fabric& fabric, absl::Span<const ClusterJob> jobs,
                                     const ClusterOptions& options)
    : fabric_(fabric),
      jobs_(jobs),
      options_(options),
      free_(fabric),
      routes_(fabric, options.seed),
      arrivals_(jobs.size()),
      running_(jobs.size()),
      link_bytes_(fabric.capacities().size(), 0.0),
      link_jobs_(fabric.capacities().size(), 0),
      competition_(fabric.capacities(),
                   [this](int32_t j) -> const Loop& { return running_[j].placed.loop; }) {
  out_.jobs.resize(jobs.size());
  std::iota(arrivals_.begin(), arrivals_.end(), 0);
  std::stable_sort(arrivals_.begin(), arrivals_.end(),
                   [&](int32_t a, int32_t b) { return jobs_[a].arrival_ps < jobs_[b].arrival_ps; });
  FindReference();
}

absl::StatusOr<bool> ClusterSimulation::Run(const std::function<bool()>& pauses) {
  for (;;) {
    const int64_t arrival = next_ < static_cast<int64_t>(arrivals_.size())
                                ? jobs_[arrivals_[next_]].arrival_ps
                                : kNever;
    const int64_t time = std::min(arrival, NextEnd());
    if (time == kNever || time >= options_.until_ps) return true;
    if (time >= SteadyRun::kLatest) return RunsTooLong();
    if (pauses != nullptr && pauses()) return false;
    now_ = time;
    Retire([&](const Group& group) { return group.run->end() == time; });
    while (next_ < static_cast<int64_t>(arrivals_.size()) &&
           jobs_[arrivals_[next_]].arrival_ps == time) {
      queue_.push_back(arrivals_[next_++]);
    }
    RETURN_IF_ERROR(StartJobs());
    Regroup();
  }
}

absl::Status ClusterSimulation::RunsTooLong() const {
  std::string who;
  for (const Group& group : groups_) {
    if (group.run->end() >= SteadyRun::kLatest) who = InWords(jobs_[group.members[0]]);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(who, ", or one that it shares links with, has not ended after ",
                   ToSeconds(SteadyRun::kLatest),
                   " s (92 days), the most that is simulated. Give fewer iterations, or say "
                   "`until`."));
}

int64_t ClusterSimulation::NextEnd() const {
  int64_t end = kNever;
  for (const Group& group : groups_) end = std::min(end, group.run->end());
  return end;
}

// The job with the most traffic, whose intensity stays as it is.
void ClusterSimulation::FindReference() {
  double most = 0;
  for (size_t j = 0; j < jobs_.size(); ++j) {
    double seconds = 0, bytes = 0;
    for (const ClusterJob::Phase& phase : jobs_[j].phases) {
      seconds += ToSeconds(phase.transfer_ps);
      bytes += phase.bytes;
    }
    if (bytes == 0) bytes = seconds * static_cast<double>(fabric_.spec().nic_bytes_per_s);
    if (bytes > most) {
      most = bytes;
      reference_ = static_cast<int32_t>(j);
    }
  }
}

// The reference on its own: as it would be if interfaces were all that limits it.
const Loop& ClusterSimulation::ReferenceLoop() {
  if (reference_loop_.phases.empty()) {
    const ClusterJob& job = jobs_[reference_];
    const int64_t nic = fabric_.spec().nic_bytes_per_s;
    reference_loop_.alone_level = std::max<int64_t>(nic << 16, 1);
    for (const ClusterJob::Phase& phase : job.phases) {
      const double seconds = phase.transfer_ps > 0
                                 ? ToSeconds(phase.transfer_ps)
                                 : phase.bytes / static_cast<double>(nic) /
                                       static_cast<double>(fabric_.spec().nics_per_host);
      reference_loop_.phases.push_back(
          {phase.compute_ps, int128{RoundToPicoseconds(seconds)} * reference_loop_.AloneQ16()});
    }
  }
  return reference_loop_;
}

absl::Status ClusterSimulation::StartJobs() {
  bool started = false;
  for (auto waiting = queue_.begin(); waiting != queue_.end();) {
    const int32_t j = *waiting;
    const ClusterJob& job = jobs_[j];
    std::vector<int64_t> gpus = job.devices;
    if (job.placement == GpuPlacement::kGiven) {
      RETURN_IF_ERROR(CheckFree(job));
    } else {
      gpus = free_.Find(job.gpus, job.placement);
    }
    if (gpus.empty()) {
      if (!options_.backfill) break;
      ++waiting;
      continue;
    }
    waiting = queue_.erase(waiting);
    RETURN_IF_ERROR(StartJob(j, std::move(gpus)));
    started = true;
  }
  if (started && options_.paths == PathChoice::kIntensity) ChooseAllPaths();
  return absl::OkStatus();
}

absl::Status ClusterSimulation::CheckFree(const ClusterJob& job) const {
  for (int64_t gpu : job.devices) {
    const int32_t other = free_.UserOf(gpu);
    if (other == FreeGpus::kNobody) continue;
    const std::string& where = jobs_[other].where;
    return absl::InvalidArgumentError(absl::StrCat(
        InWords(job), " is given GPU ", gpu % fabric_.spec().gpus_per_host, " of host ",
        gpu / fabric_.spec().gpus_per_host, " at ", ToSeconds(now_), " s, where job `",
        jobs_[other].name, "`", where.empty() ? "" : absl::StrCat(" (", where, ")"),
        " still runs. Let it arrive later, or give it other GPUs."));
  }
  return absl::OkStatus();
}

absl::Status ClusterSimulation::StartJob(int32_t j, std::vector<int64_t> gpus) {
  Running& job = running_[j];
  free_.Take(gpus, j);
  const int64_t weight = options_.sharing == ClusterSharing::kWeighted ? jobs_[j].weight : 1;
  job.placed = routes_.Place(jobs_[j], gpus, weight);
  routes_.Choose(jobs_[j], j, options_.paths != PathChoice::kHash, &job.placed);
  RETURN_IF_ERROR(CheckTimes(jobs_[j], job.placed.loop));
  routes_.Count(job.placed, 1);
  job.state = LoopState::Fresh(job.placed.loop);
  job.runs = true;
  ClusterJobOutcome& row = out_.jobs[j];
  row.start_ps = now_;
  row.devices = std::move(gpus);
  row.alone_ps = job.placed.loop.IterationPs();
  row.steady_ps = static_cast<double>(row.alone_ps);
  row.intensity = GpuIntensity(jobs_[j].work, job.placed.loop);
  if (by_intensity() && !job.placed.loop.uses.empty()) {
    row.correction = CorrectionFactor(job.placed.loop, ReferenceLoop());
  }
  for (const Fluid::Use& use : job.placed.loop.uses) ++link_jobs_[use.resource];
  now_running_.push_back(j);
  return absl::OkStatus();
}

void ClusterSimulation::EndJob(int32_t j) {
  CountBytes(j);
  out_.jobs[j].end_ps = now_;
  routes_.Count(running_[j].placed, -1);
  free_.Release(out_.jobs[j].devices);
  running_[j].runs = false;
  running_[j].placed = {};
  now_running_.erase(std::find(now_running_.begin(), now_running_.end(), j));
}

void ClusterSimulation::CountBytes(int32_t j) {
  Running& job = running_[j];
  const auto fresh = static_cast<double>(job.state.iterations - job.counted);
  job.counted = job.state.iterations;
  for (const Fluid::Use& use : job.placed.loop.uses) {
    link_bytes_[use.resource] +=
        fresh * job.placed.flow_bytes * static_cast<double>(use.coefficient_q20 >> 20);
  }
}

// Descending; of alike ones those that came first.
void ClusterSimulation::SortByPriority(std::vector<int32_t>* jobs) const {
  std::sort(jobs->begin(), jobs->end(), [&](int32_t a, int32_t b) {
    const double x = PriorityOf(a), y = PriorityOf(b);
    return x != y ? x > y : a < b;
  });
}

void ClusterSimulation::ChooseAllPaths() {
  std::vector<int32_t> order = now_running_;
  SortByPriority(&order);
  for (int32_t j : order) routes_.Count(running_[j].placed, -1);
  for (int32_t j : order) {
    Running& job = running_[j];
    const std::vector<Fluid::Use> before = job.placed.loop.uses;
    const auto same = [](const Fluid::Use& a, const Fluid::Use& b) {
      return a.resource == b.resource && a.coefficient_q20 == b.coefficient_q20;
    };
    PlacedLoop placed = job.placed;
    routes_.Choose(jobs_[j], j, true, &placed);
    if (!std::equal(before.begin(), before.end(), placed.loop.uses.begin(), placed.loop.uses.end(),
                    same)) {
      job.moved = true;
      moves_.emplace_back(j, std::move(placed));
      routes_.Count(moves_.back().second, 1);
    } else {
      routes_.Count(job.placed, 1);
    }
  }
}

ClusterOutcome ClusterSimulation::TakeOutcome() {
  if (options_.until_ps != kNever) {
    now_ = options_.until_ps;
  } else if (!groups_.empty()) {
    now_ = std::max(now_, options_.slices_until);
  }
  Finish();
  return std::move(out_);
}

}  // namespace plancast
