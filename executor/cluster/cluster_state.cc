#include <algorithm>
#include <utility>

#include "executor/cluster/archive.h"
#include "executor/cluster/cluster_simulation.h"

namespace plancast {
// A set of jobs that compete, without its run, which follows from where its members were.
struct SavedGroup {
  std::vector<int32_t> members, levels;
  int64_t since = 0;
};

struct SavedWait {
  int32_t waiter = 0, other = 0, link = 0;
  double seconds = 0;
};

template <typename Archive>
void Fields(Archive& a, LoopPhase& phase) {
  a(phase.compute_ps, phase.work);
}

template <typename Archive>
void Fields(Archive& a, Fluid::Use& use) {
  a(use.resource, use.coefficient_q20);
}

template <typename Archive>
void Fields(Archive& a, LoopState& state) {
  a(state.phase, state.compute_left_ps, state.work_left, state.iterations);
}

// Flows and loads of a loop follow from the job and its GPUs; paths depend on who came before.
template <typename Archive>
void Fields(Archive& a, ClusterSimulation::Running& job) {
  Loop& loop = job.placed.loop;
  a(loop.phases, loop.uses, loop.priority, loop.alone_level, job.placed.flow_bytes, job.state,
    job.counted, job.runs);
}

template <typename Archive>
void Fields(Archive& a, ClusterJobOutcome& job) {
  a(job.start_ps, job.end_ps, job.iterations, job.alone_ps, job.steady_ps, job.intensity,
    job.correction, job.level, job.devices);
}

template <typename Archive>
void Fields(Archive& a, ClusterOutcome::Stretch& stretch) {
  a(stretch.job, stretch.from_ps, stretch.to_ps, stretch.iteration_ps);
}

template <typename Archive>
void Fields(Archive& a, ClusterOutcome::Slice& slice) {
  a(slice.job, slice.transfer, slice.iteration, slice.start_ps, slice.end_ps);
}

template <typename Archive>
void Fields(Archive& a, SavedGroup& group) {
  a(group.members, group.levels, group.since);
}

template <typename Archive>
void Fields(Archive& a, SavedWait& wait) {
  a(wait.waiter, wait.other, wait.link, wait.seconds);
}

namespace {

bool AllBelow(const std::vector<int32_t>& values, size_t limit) {
  return std::all_of(values.begin(), values.end(), [&](int32_t value) {
    return value >= 0 && static_cast<size_t>(value) < limit;
  });
}

}  // namespace

template <typename Archive>
void ClusterSimulation::AllFields(Archive& archive) {
  std::vector<int32_t> queue(queue_.begin(), queue_.end());
  archive(now_, next_, running_, now_running_, queue, link_bytes_, link_jobs_, off_by_,
          off_by_time_, routes_.loads(), out_.jobs, out_.stretches, out_.slices, out_.steady_runs);
  queue_.assign(queue.begin(), queue.end());
}

std::string ClusterSimulation::Save() {
  ArchiveWriter writer;
  AllFields(writer);
  std::vector<SavedGroup> groups;
  for (const Group& group : groups_) groups.push_back({group.members, group.levels, group.since});
  std::vector<SavedWait> waits;
  for (const auto& [key, seconds] : waits_) waits.push_back({key[0], key[1], key[2], seconds});
  writer(groups, waits);
  return writer.Take();
}

absl::Status ClusterSimulation::Restore(absl::string_view saved) {
  ArchiveReader reader(saved);
  AllFields(reader);
  std::vector<SavedGroup> groups;
  std::vector<SavedWait> waits;
  reader(groups, waits);
  bool sound = reader.whole() && IsSound();
  for (const SavedGroup& group : groups) {
    sound = sound && !group.members.empty() && group.members.size() == group.levels.size() &&
            AllBelow(group.members, jobs_.size());
    for (size_t m = 0; sound && m < group.members.size(); ++m) {
      sound = running_[group.members[m]].runs;
    }
  }
  for (const SavedWait& wait : waits) {
    sound = sound && AllBelow({wait.waiter, wait.other}, jobs_.size()) &&
            AllBelow({wait.link}, link_bytes_.size());
    waits_[{wait.waiter, wait.other, wait.link}] = wait.seconds;
  }
  if (!sound) {
    return absl::InvalidArgumentError("the saved state is not one of these jobs on this fabric.");
  }
  for (int32_t j : now_running_) {
    Running& job = running_[j];
    free_.Take(out_.jobs[j].devices, j);
    const int64_t weight = options_.sharing == ClusterSharing::kWeighted ? jobs_[j].weight : 1;
    PlacedLoop placed = routes_.Place(jobs_[j], out_.jobs[j].devices, weight);
    placed.flow_bytes = job.placed.flow_bytes;
    placed.loop = std::move(job.placed.loop);
    placed.loop.weight = weight;
    job.placed = std::move(placed);
  }
  for (SavedGroup& group : groups) {
    groups_.push_back({std::move(group.members), std::move(group.levels), group.since, nullptr});
    groups_.back().run = RunOf(groups_.back());
  }
  return absl::OkStatus();
}

// Whether all numbers of jobs, links and GPUs are such.
bool ClusterSimulation::IsSound() const {
  const size_t jobs = jobs_.size(), links = fabric_.capacities().size();
  bool sound = running_.size() == jobs && out_.jobs.size() == jobs && link_bytes_.size() == links &&
               link_jobs_.size() == links && routes_.loads().size() == links && next_ >= 0 &&
               next_ <= static_cast<int64_t>(jobs) && AllBelow(now_running_, jobs) &&
               AllBelow({queue_.begin(), queue_.end()}, jobs);
  for (size_t j = 0; sound && j < jobs; ++j) {
    const Loop& loop = running_[j].placed.loop;
    for (const Fluid::Use& use : loop.uses) sound = sound && AllBelow({use.resource}, links);
    for (int64_t gpu : out_.jobs[j].devices) {
      sound = sound && gpu >= 0 && gpu < fabric_.num_gpus();
    }
    if (!running_[j].runs) continue;
    const LoopState& state = running_[j].state;
    sound = sound && loop.alone_level > 0 &&
            AllBelow({state.phase}, std::max<size_t>(loop.phases.size(), 1)) &&
            !out_.jobs[j].devices.empty();
  }
  for (const ClusterOutcome::Stretch& stretch : out_.stretches) {
    sound = sound && AllBelow({stretch.job}, jobs);
  }
  for (const ClusterOutcome::Slice& slice : out_.slices) {
    sound = sound && AllBelow({slice.job}, jobs);
  }
  return sound;
}

}  // namespace plancast
