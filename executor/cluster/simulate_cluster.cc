#include "executor/cluster/simulate_cluster.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "executor/cluster/check_jobs.h"
#include "executor/cluster/competition.h"
#include "executor/cluster/free_gpus.h"
#include "executor/cluster/priorities.h"
#include "executor/cluster/routes.h"
#include "executor/cluster/steady_run.h"

namespace plancast {
namespace {

constexpr int64_t kNever = Fluid::kNever;

class Simulation {
 public:
  Simulation(const Fabric& fabric, absl::Span<const ClusterJob> jobs, const ClusterOptions& options)
      : fabric_(fabric),
        jobs_(jobs),
        options_(options),
        free_(fabric),
        routes_(fabric, options.seed),
        running_(jobs.size()),
        link_bytes_(fabric.capacities().size(), 0.0),
        link_jobs_(fabric.capacities().size(), 0),
        competition_(fabric.capacities(),
                     [this](int32_t j) -> const Loop& { return running_[j].placed.loop; }) {
    out_.jobs.resize(jobs.size());
  }

  absl::StatusOr<ClusterOutcome> Run() {
    std::vector<int32_t> arrivals(jobs_.size());
    std::iota(arrivals.begin(), arrivals.end(), 0);
    std::stable_sort(arrivals.begin(), arrivals.end(), [&](int32_t a, int32_t b) {
      return jobs_[a].arrival_ps < jobs_[b].arrival_ps;
    });
    FindReference();
    size_t next = 0;
    for (;;) {
      const int64_t arrival = next < arrivals.size() ? jobs_[arrivals[next]].arrival_ps : kNever;
      const int64_t time = std::min(arrival, NextEnd());
      if (time == kNever || time >= options_.until_ps) break;
      if (time >= SteadyRun::kLatest) return RunsTooLong();
      now_ = time;
      Retire([&](const Group& group) { return group.run->end() == time; });
      while (next < arrivals.size() && jobs_[arrivals[next]].arrival_ps == time) {
        queue_.push_back(arrivals[next++]);
      }
      RETURN_IF_ERROR(StartJobs());
      Regroup();
    }
    if (options_.until_ps != kNever) {
      now_ = options_.until_ps;
    } else if (!groups_.empty()) {
      now_ = std::max(now_, options_.slices_until);
    }
    Finish();
    return std::move(out_);
  }

 private:
  struct Running {
    PlacedLoop placed;
    LoopState state;
    int64_t counted = 0;               // iterations whose bytes are in link_bytes_
    bool runs = false, moved = false;  // `moved`: has other paths than in its group
  };
  struct Group {
    std::vector<int32_t> members;  // ascending
    std::vector<int32_t> levels;   // of priority
    int64_t since = 0;
    std::unique_ptr<SteadyRun> run;
  };

  absl::Status RunsTooLong() const {
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

  int64_t NextEnd() const {
    int64_t end = kNever;
    for (const Group& group : groups_) end = std::min(end, group.run->end());
    return end;
  }

  bool strict() const { return options_.sharing == ClusterSharing::kStrict; }
  bool by_intensity() const {
    return (strict() && options_.order != ClusterOrder::kGiven) ||
           options_.paths == PathChoice::kIntensity;
  }

  // The job with the most traffic, whose intensity stays as it is.
  void FindReference() {
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
  const Loop& ReferenceLoop() {
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

  // What ends now, and groups of which `which` is true: members' states are taken out of them.
  template <typename Which>
  void Retire(const Which& which) {
    std::vector<Group> kept;
    for (Group& group : groups_) {
      if (!which(group)) {
        kept.push_back(std::move(group));
        continue;
      }
      const bool ends = group.run->end() == now_;
      LoopSet set = ends ? group.run->at_end() : group.run->At(now_);
      Note(group, set);
      const std::vector<int> stopped = ends ? set.stopped() : std::vector<int>();
      for (size_t m = 0; m < group.members.size(); ++m) {
        const int32_t j = group.members[m];
        running_[j].state = set.StateOf(static_cast<int>(m));
        out_.jobs[j].iterations = running_[j].state.iterations;
        if (std::find(stopped.begin(), stopped.end(), static_cast<int>(m)) != stopped.end()) {
          EndJob(j);
        }
      }
    }
    groups_ = std::move(kept);
  }

  // Keeps what is to be told of a group that is over.
  void Note(const Group& group, const LoopSet& set) {
    const SteadyRun::Period* period = group.run->period();
    if (group.members.size() > 1) {
      const double job_time =
          ToSeconds(now_ - group.since) * static_cast<double>(group.members.size()) + 1e-12;
      off_by_ += group.run->off_by() * job_time;
      off_by_time_ += job_time;
    }
    for (size_t m = 0; m < group.members.size(); ++m) {
      const int32_t j = group.members[m];
      const int64_t done = set.IterationsOf(static_cast<int>(m)) - running_[j].state.iterations;
      double iteration = 0;
      if (period != nullptr && period->iterations[m] > 0) {
        iteration =
            static_cast<double>(period->time_ps) / static_cast<double>(period->iterations[m]);
      } else if (done > 0) {
        iteration = static_cast<double>(now_ - group.since) / static_cast<double>(done);
      }
      if (iteration > 0) out_.jobs[j].steady_ps = iteration;
      if (now_ > group.since) {
        out_.stretches.push_back({j, group.since, now_, iteration});
      }
    }
    for (const LoopWait& wait : set.Waits()) {
      if (wait.seconds <= 0) continue;
      waits_[{group.members[wait.waiter], group.members[wait.other], wait.link}] += wait.seconds;
    }
    for (const LoopSlice& slice : set.slices()) {
      out_.slices.push_back({group.members[slice.member], slice.transfer, slice.iteration,
                             slice.start_ps, slice.end_ps});
    }
  }

  // What is lost in an iteration from now on, in place of what was until now.
  void NotePeriod(const Group& group, const SteadyRun::Period& period) {
    for (const LoopWait& wait : group.run->PeriodWaits()) {
      const int64_t iterations = period.iterations[wait.waiter];
      if (iterations == 0) continue;
      waits_[{group.members[wait.waiter], group.members[wait.other], wait.link}] =
          wait.seconds / static_cast<double>(iterations);
    }
  }

  void CountBytes(int32_t j) {
    Running& job = running_[j];
    const auto fresh = static_cast<double>(job.state.iterations - job.counted);
    job.counted = job.state.iterations;
    for (const Fluid::Use& use : job.placed.loop.uses) {
      link_bytes_[use.resource] +=
          fresh * job.placed.flow_bytes * static_cast<double>(use.coefficient_q20 >> 20);
    }
  }

  void EndJob(int32_t j) {
    CountBytes(j);
    out_.jobs[j].end_ps = now_;
    routes_.Count(running_[j].placed, -1);
    free_.Release(out_.jobs[j].devices);
    running_[j].runs = false;
    running_[j].placed = {};
    now_running_.erase(std::find(now_running_.begin(), now_running_.end(), j));
  }

  absl::Status StartJobs() {
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

  absl::Status CheckFree(const ClusterJob& job) const {
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

  absl::Status StartJob(int32_t j, std::vector<int64_t> gpus) {
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

  double PriorityOf(int32_t j) const { return out_.jobs[j].intensity * out_.jobs[j].correction; }

  // Descending; of alike ones those that came first.
  void SortByPriority(std::vector<int32_t>* jobs) const {
    std::sort(jobs->begin(), jobs->end(), [&](int32_t a, int32_t b) {
      const double x = PriorityOf(a), y = PriorityOf(b);
      return x != y ? x > y : a < b;
    });
  }

  void ChooseAllPaths() {
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
      if (!std::equal(before.begin(), before.end(), placed.loop.uses.begin(),
                      placed.loop.uses.end(), same)) {
        job.moved = true;
        moves_.emplace_back(j, std::move(placed));
        routes_.Count(moves_.back().second, 1);
      } else {
        routes_.Count(job.placed, 1);
      }
    }
  }

  // Sets of running jobs that compete for links, each with its order of priorities; keeps the
  // groups that are as before and starts the others from where their members are.
  void Regroup() {
    if (!moves_.empty()) {
      Retire([&](const Group& group) {
        return std::any_of(group.members.begin(), group.members.end(),
                           [&](int32_t j) { return running_[j].moved; });
      });
      for (auto& [j, placed] : moves_) {
        CountBytes(j);
        running_[j].placed = std::move(placed);
        running_[j].moved = false;
      }
      moves_.clear();
    }
    std::vector<std::vector<int32_t>> sets = competition_.Sets(now_running_);
    std::map<int32_t, size_t> old;  // groups by their first member
    for (size_t g = 0; g < groups_.size(); ++g) old[groups_[g].members[0]] = g;
    std::vector<Group> wanted;
    std::vector<bool> keep(groups_.size(), false);
    for (std::vector<int32_t>& members : sets) {
      Group group;
      group.levels = LevelsOf(members);
      group.members = std::move(members);
      const auto found = old.find(group.members[0]);
      if (found != old.end() && groups_[found->second].members == group.members &&
          groups_[found->second].levels == group.levels) {
        keep[found->second] = true;
        continue;
      }
      wanted.push_back(std::move(group));
    }
    // Groups are taken apart before new ones begin with their members.
    size_t g = 0;
    Retire([&](const Group&) { return !keep[g++]; });
    for (Group& group : wanted) Begin(std::move(group));
  }

  std::vector<int32_t> LevelsOf(const std::vector<int32_t>& members) {
    std::vector<int32_t> levels(members.size(), 0);
    if (!strict() || members.size() < 2) return levels;
    if (options_.order == ClusterOrder::kGiven) {
      for (size_t m = 0; m < members.size(); ++m) levels[m] = jobs_[members[m]].priority;
      if (options_.levels > 0) {
        for (int32_t& level : levels) level = std::min(level, options_.levels - 1);
      }
      return levels;
    }
    std::vector<int32_t> order = members;
    SortByPriority(&order);
    if (options_.order == ClusterOrder::kReverse) std::reverse(order.begin(), order.end());
    std::vector<int32_t> level_of(order.size());
    std::iota(level_of.begin(), level_of.end(), 0);
    if (options_.levels > 0 && static_cast<size_t>(options_.levels) < order.size()) {
      level_of = CompressedLevels(static_cast<int32_t>(order.size()), PairsOf(order),
                                  options_.levels, options_.seed);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const auto at = std::lower_bound(members.begin(), members.end(), order[i]);
      levels[at - members.begin()] = level_of[i];
    }
    return levels;
  }

  // What either loses if both get one level.
  std::vector<CompetingPair> PairsOf(const std::vector<int32_t>& order) const {
    std::vector<CompetingPair> pairs;
    for (const auto& [a, b] : competition_.Pairs(order)) {
      pairs.push_back({a, b, std::max(PriorityOf(order[a]), PriorityOf(order[b]))});
    }
    return pairs;
  }

  void Begin(Group group) {
    group.since = now_;
    std::vector<LoopSet::Member> members;
    for (size_t m = 0; m < group.members.size(); ++m) {
      const int32_t j = group.members[m];
      running_[j].placed.loop.priority = group.levels[m];
      out_.jobs[j].level = group.levels[m];
      members.push_back({&running_[j].placed.loop, running_[j].state, jobs_[j].iterations});
    }
    LoopSet::Options options;
    options.sharing = strict() ? LinkSharing::kPriority : LinkSharing::kMaxMin;
    options.waits = options_.waits && members.size() > 1;
    options.slices_until = options_.slices_until;
    SteadyRun::Options steady;
    steady.most_events = options_.most_events;
    steady.whole_until = std::min(options_.slices_until, options_.until_ps);
    steady.shortcuts = options_.shortcuts;
    group.run = std::make_unique<SteadyRun>(
        LoopSet(std::move(members), fabric_.capacities(), now_, options), steady);
    out_.steady_runs += group.members.size() > 1 ? 1 : 0;
    groups_.push_back(std::move(group));
  }

  void Finish() {
    if (options_.until_ps == kNever && !groups_.empty()) waits_.clear();
    std::vector<double> rates(link_bytes_.size(), 0.0);
    for (const Group& group : groups_) {
      LoopSet set = group.run->At(now_);
      const SteadyRun::Period* period = group.run->period();
      Note(group, set);
      if (options_.until_ps == kNever && period != nullptr) NotePeriod(group, *period);
      for (size_t m = 0; m < group.members.size(); ++m) {
        const int32_t j = group.members[m];
        running_[j].state = set.StateOf(static_cast<int>(m));
        out_.jobs[j].iterations = running_[j].state.iterations;
        CountBytes(j);
        const PlacedLoop& placed = running_[j].placed;
        if (out_.jobs[j].steady_ps <= 0) continue;
        const double per_s = placed.flow_bytes / (out_.jobs[j].steady_ps * 1e-12);
        for (const Fluid::Use& use : placed.loop.uses) {
          rates[use.resource] += per_s * static_cast<double>(use.coefficient_q20 >> 20);
        }
      }
    }
    for (size_t l = 0; l < link_bytes_.size(); ++l) {
      if (link_jobs_[l] == 0) continue;
      out_.links.push_back({static_cast<int32_t>(l), link_bytes_[l], rates[l], link_jobs_[l]});
    }
    for (const auto& [key, seconds] : waits_) {
      out_.waits.push_back({key[0], key[1], key[2], seconds});
    }
    std::stable_sort(out_.slices.begin(), out_.slices.end(),
                     [](const auto& a, const auto& b) { return a.start_ps < b.start_ps; });
    out_.end_ps = now_;
    if (off_by_time_ > 0) out_.off_by = off_by_ / off_by_time_;
  }

  const Fabric& fabric_;
  const absl::Span<const ClusterJob> jobs_;
  const ClusterOptions& options_;
  FreeGpus free_;
  Routes routes_;
  int64_t now_ = 0;
  int32_t reference_ = 0;
  Loop reference_loop_;
  std::vector<Running> running_;
  std::vector<int32_t> now_running_;
  std::deque<int32_t> queue_;
  std::vector<Group> groups_;
  std::vector<std::pair<int32_t, PlacedLoop>> moves_;
  std::vector<double> link_bytes_;
  std::vector<int32_t> link_jobs_;
  Competition competition_;
  std::map<std::array<int32_t, 3>, double> waits_;
  double off_by_ = 0, off_by_time_ = 0;
  ClusterOutcome out_;
};

}  // namespace

absl::StatusOr<ClusterOutcome> SimulateCluster(const Fabric& fabric,
                                               absl::Span<const ClusterJob> jobs,
                                               const ClusterOptions& options) {
  for (const ClusterJob& job : jobs) RETURN_IF_ERROR(CheckJob(job, fabric));
  return Simulation(fabric, jobs, options).Run();
}

}  // namespace plancast
