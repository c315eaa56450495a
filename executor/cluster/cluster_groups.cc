#include "executor/cluster/cluster_simulation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/picoseconds.h"

namespace plancast {

// What ends now, and groups of which `which` is true: members' states are taken out of them.
void ClusterSimulation::Retire(const std::function<bool(const Group&)>& which) {
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

// Sets of running jobs that compete for links, each with its order of priorities; keeps the
// groups that are as before and starts the others from where their members are.
void ClusterSimulation::Regroup() {
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

std::vector<int32_t> ClusterSimulation::LevelsOf(const std::vector<int32_t>& members) {
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
    level_of = CompressedLevels(static_cast<int32_t>(order.size()), PairsOf(order), options_.levels,
                                options_.seed);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const auto at = std::lower_bound(members.begin(), members.end(), order[i]);
    levels[at - members.begin()] = level_of[i];
  }
  return levels;
}

// What either loses if both get one level.
std::vector<CompetingPair> ClusterSimulation::PairsOf(const std::vector<int32_t>& order) const {
  std::vector<CompetingPair> pairs;
  for (const auto& [a, b] : competition_.Pairs(order)) {
    pairs.push_back({a, b, std::max(PriorityOf(order[a]), PriorityOf(order[b]))});
  }
  return pairs;
}

void ClusterSimulation::Begin(Group group) {
  group.since = now_;
  for (size_t m = 0; m < group.members.size(); ++m) {
    running_[group.members[m]].placed.loop.priority = group.levels[m];
    out_.jobs[group.members[m]].level = group.levels[m];
  }
  group.run = RunOf(group);
  out_.steady_runs += group.members.size() > 1 ? 1 : 0;
  groups_.push_back(std::move(group));
}

// From where its members were when it began.
std::unique_ptr<SteadyRun> ClusterSimulation::RunOf(const Group& group) {
  std::vector<LoopSet::Member> members;
  for (int32_t j : group.members) {
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
  return std::make_unique<SteadyRun>(
      LoopSet(std::move(members), fabric_.capacities(), group.since, options), steady);
}

// Keeps what is to be told of a group that is over.
void ClusterSimulation::Note(const Group& group, const LoopSet& set) {
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
      iteration = static_cast<double>(period->time_ps) / static_cast<double>(period->iterations[m]);
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
void ClusterSimulation::NotePeriod(const Group& group, const SteadyRun::Period& period) {
  for (const LoopWait& wait : group.run->PeriodWaits()) {
    const int64_t iterations = period.iterations[wait.waiter];
    if (iterations == 0) continue;
    waits_[{group.members[wait.waiter], group.members[wait.other], wait.link}] =
        wait.seconds / static_cast<double>(iterations);
  }
}

void ClusterSimulation::Finish() {
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

}  // namespace plancast
